"""One figure for how long requests took."""


def percentile(values, p):
    """The value that a share p (0 to 1) of them lies below; 0 of none. values: in any order."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * p), len(ordered) - 1)] if ordered else 0.0
