# SPDX-License-Identifier: Apache-2.0
"""The program dptrain with its modules. PROGRAM is its path; the command `dptrain` becomes it."""
import importlib.util
import os
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'bin', 'dptrain')


def find_cuda_libraries():
    """Folders of NVIDIA's wheels (dptrack-trainer[cuda]), joined by colons."""
    found = importlib.util.find_spec('nvidia')
    return ':'.join(found.submodule_search_locations or []) if found else ''


def main():
    libraries = find_cuda_libraries()
    if libraries:
        os.environ.setdefault('DPTRAIN_CUDA_LIBS', libraries)
    os.execv(PROGRAM, ['dptrain', *sys.argv[1:]])


if __name__ == '__main__':
    main()
