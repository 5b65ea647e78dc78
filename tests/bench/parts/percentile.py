# SPDX-License-Identifier: Apache-2.0
"""Percentiles of request times."""


def percentile(values, p):
    """The value below which a share p (0 to 1) of the values is; 0 if there are none. values: in any order."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * p), len(ordered) - 1)] if ordered else 0.0
