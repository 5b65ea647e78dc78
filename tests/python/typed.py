#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""typed.py [--all]: mypy --strict and pyright accept the package, and a program that uses all of it, for Python 3.9 to 3.14
(without --all the first and the last), and refuse a program with wrong types. Both come from PyPI; pyright's own code comes
from npm."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'bench'))
import lib  # noqa: E402
import packages  # noqa: E402

CHECKERS = ('mypy==1.19.1', 'pyright==1.1.414')
VERSIONS = ('3.9', '3.10', '3.11', '3.12', '3.13', '3.14')
# pyright takes the file dptrack/torch.py for a package torch that is not installed.
STUBS = ('torch', 'aim', 'wandb', 'keras', 'optuna', 'transformers', 'lightning', 'accelerate', 'mcp')

USER = '''
from __future__ import annotations

import dptrack
from dptrack import RecordedRun, Run


def train(lr: float) -> Run:
    with dptrack.init(experiment='e', config={'lr': lr}, tags=['a'], system=0) as run:
        run.define_metric('val/*', step_metric='epoch', summary='max')
        run.log({'loss': 0.5, 'deep': {'x': 1}, 'image': dptrack.Image(b'')}, step=1)
        run.config.update({'n': 1})
        run.summary['best'] = 1.0
        dptrack.torch.instrument(None, None, run=run)
        dptrack.watch(None, log='all').remove()
        flushed: bool = run.flush()
        assert flushed and run.dropped == 0
    return run


def read() -> list[str]:
    best: RecordedRun = dptrack.runs('e', order_by='metrics.loss.min')[0]
    best.history(['loss']).to_pandas()
    html: str = dptrack.compare(best, 'other')._repr_html_()
    address: str | None = best.url
    return [run.name for run in dptrack.runs('e')] + [html, address or '']


callbacks = [dptrack.transformers.Callback(experiment='e', system=1.5), dptrack.keras.Callback(every=2), dptrack.lightning.Logger(run_name='x'),
             dptrack.accelerate.Tracker(notes='n')]
tracked = dptrack.optuna.track(experiment='e')
current: Run | None = dptrack.run
'''
WRONG = {'dptrack.init(experimnt="e")': 'experimnt', 'dptrack.init(first_step="x")': 'first_step', 'dptrack.log(3)': 'log',
         'dptrack.keras.Callback(evry=2)': 'evry', 'dptrack.runs(limit="all")': 'limit', 'x: int = dptrack.init().id': 'int'}


def make_project(folder):
    """A copy of the package with the configurations of both checkers."""
    shutil.copytree(os.path.join(lib.PACKAGE, 'dptrack'), os.path.join(folder, 'dptrack'), ignore=shutil.ignore_patterns('__pycache__', '*.so'))
    shutil.copy(os.path.join(lib.PACKAGE, 'pyproject.toml'), folder)
    for name in STUBS:
        place = os.path.join(folder, 'typings', name)
        os.makedirs(place)
        with open(os.path.join(place, '__init__.pyi'), 'w') as f:
            f.write('from typing import Any\ndef __getattr__(name: str) -> Any: ...\n')
    with open(os.path.join(folder, 'user.py'), 'w') as f:
        f.write(USER)
    with open(os.path.join(folder, 'wrong.py'), 'w') as f:
        f.write('import dptrack\n\n' + '\n'.join(WRONG) + '\n')


def check(folder, words, want):
    """want: number of lines of wrong.py that must be named; 0: nothing may be found."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=540)
    said = done.stdout + done.stderr
    if not want:
        assert done.returncode == 0, said[-4000:]
        return
    lines = {n for n in range(3, 3 + want) if 'wrong.py:%d:' % n in said}
    assert done.returncode == 1 and len(lines) == want, (lines, said[-4000:])


def main():
    build, versions = lib.BUILD, VERSIONS if '--all' in sys.argv else (VERSIONS[0], VERSIONS[-1])
    try:
        tools = os.path.dirname(packages.python(build, 'python-types', CHECKERS))
    except packages.Unavailable as reason:
        print('skipped: %s' % reason)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        make_project(folder)
        for version in versions:
            mypy = [tools + '/mypy', '--python-version', version, '--cache-dir', folder + '/.cache']
            check(folder, mypy, 0)
            check(folder, [*mypy, '--strict', '-m', 'user'], 0)
            check(folder, [*mypy, '--strict', '-m', 'wrong'], len(WRONG))
            pyright = [tools + '/pyright', '--pythonversion', version]
            check(folder, [*pyright, '-p', 'pyproject.toml'], 0)
            print('ok %s' % version, flush=True)
        for name, want in (('user', 0), ('wrong', len(WRONG))):
            with open(os.path.join(folder, 'pyrightconfig.json'), 'w') as f:
                f.write('{"include": ["%s.py"], "reportMissingImports": "none"}' % name)
            check(folder, [tools + '/pyright'], want)
    print('mypy and pyright: %s' % ', '.join(versions))


if __name__ == '__main__':
    main()
