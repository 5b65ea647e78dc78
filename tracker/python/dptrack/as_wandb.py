# SPDX-License-Identifier: Apache-2.0
"""Runs a program that calls W&B, unmodified, and records it as a dptrack run:

    python -m dptrack.as_wandb train.py --lr 0.1
    python -m dptrack.as_wandb -m accelerate.commands.launch train.py
    torchrun --nproc-per-node 2 -m dptrack.as_wandb train.py

`import wandb` then finds the module in the folder wandb_shim instead of an installed W&B, also in child processes. It has what
trainers and their callbacks call; anything else raises. Nothing is sent to W&B."""
from __future__ import annotations

import os
import runpy
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'wandb_shim')
USAGE = 'usage: python -m dptrack.as_wandb [-m MODULE | FILE] [ARGUMENT...]'


def use_shim() -> None:
    """Makes `import wandb` find the shim, here and in child processes."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.insert(1, FOLDER)
    known = [part for part in os.environ.get('PYTHONPATH', '').split(os.pathsep) if part]
    os.environ['PYTHONPATH'] = os.pathsep.join([FOLDER, *known, *([] if package in known else [package])])


def main(words: list[str]) -> int:
    """words: the arguments after this module's name."""
    if not words or words[0] in ('-h', '--help') or (words[0] == '-m' and len(words) < 2):
        print(USAGE, file=sys.stdout if words and words[0] != '-m' else sys.stderr)
        return 0 if words and words[0] != '-m' else 2
    if 'wandb' in sys.modules and not hasattr(sys.modules['wandb'], 'STANDS_FOR'):
        print('dptrack: wandb is already imported: remove what imports it before the program starts', file=sys.stderr)
        return 2
    use_shim()
    if words[0] == '-m':
        sys.argv = words[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(words[1], run_name='__main__', alter_sys=True)
        return 0
    if not os.path.isfile(words[0]):
        print('dptrack: %s: not a file; %s' % (words[0], USAGE), file=sys.stderr)
        return 2
    sys.argv = list(words)
    sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
    runpy.run_path(words[0], run_name='__main__')
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
