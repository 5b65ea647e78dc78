# SPDX-License-Identifier: Apache-2.0
import sys

from dptrack.mcp import main

if __name__ == '__main__':
    sys.exit(main())
