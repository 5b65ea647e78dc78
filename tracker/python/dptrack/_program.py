# SPDX-License-Identifier: Apache-2.0
"""The program dptrack: that inside the wheel, else the one on PATH. The wheel's command `dptrack` becomes it."""
import os
import shutil
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'bin', 'dptrack')


def path():
    """The program's path, or None: only the client is installed."""
    return PROGRAM if os.access(PROGRAM, os.X_OK) else shutil.which('dptrack')


def main():
    program = path()
    if program is None:
        sys.exit('dptrack: only the Python client is installed: install the wheel or the Debian package dptrack')
    os.execv(program, ['dptrack', *sys.argv[1:]])


if __name__ == '__main__':
    main()
