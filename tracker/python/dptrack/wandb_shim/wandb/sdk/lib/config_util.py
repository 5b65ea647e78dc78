# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with a config."""


class ConfigError(Exception):
    """Never raised here: a param's first value stays."""
