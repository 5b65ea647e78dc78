# SPDX-License-Identifier: Apache-2.0
"""What callbacks name of W&B's insides."""


class RunDisabled:
    """Never made: a disabled run is a Run that records nothing."""
