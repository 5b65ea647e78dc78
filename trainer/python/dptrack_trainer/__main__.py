# SPDX-License-Identifier: Apache-2.0
"""python -m dptrack_trainer: the program dptrain."""
from dptrack_trainer import main

main()
