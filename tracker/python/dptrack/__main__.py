# SPDX-License-Identifier: Apache-2.0
"""python -m dptrack, and the wheel's command: becomes the program dptrack, whose commands in Python use this one."""
from __future__ import annotations

import os
import sys

from dptrack._program import find_program


def main() -> None:
    program = find_program()
    if program is None:
        sys.exit('dptrack: only the Python client is installed: put the program dptrack on PATH, set DPTRACK_PROGRAM to its path, '
                 'or install the wheel or the Debian package dptrack')
    if sys.executable:
        os.environ.setdefault('DPTRACK_PYTHON', sys.executable)
    os.execv(program, ['dptrack', *sys.argv[1:]])


if __name__ == '__main__':
    main()
