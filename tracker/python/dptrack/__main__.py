# SPDX-License-Identifier: Apache-2.0
"""python -m dptrack: the program dptrack."""
from dptrack._program import main

main()
