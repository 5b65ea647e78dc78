# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the Python package: starts programs that record, and reads their journals by the format's
description alone."""
import glob
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import traceback
import urllib.parse
import urllib.request

SRC = os.path.abspath(os.environ.get('srcdir', '.'))
BUILD = os.path.abspath(os.environ.get('builddir', 'build'))
PACKAGE = os.path.join(SRC, 'tracker', 'python')
LIBRARY = os.path.join(BUILD, '.libs', 'libdptrack.so')
sys.path.insert(0, os.path.join(SRC, 'tests', 'tracker'))
import journal  # noqa: E402

LIMIT_S = 250  # for a program; a busy machine is slow to load large packages
JOB_VARIABLES = ('RANK', 'WORLD_SIZE', 'SLURM', 'OMPI', 'PMI', 'TORCHELASTIC', 'DPTRACK')


def environment(runs, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(JOB_VARIABLES) or k == 'DPTRACK_PURE'}
    env.update(PYTHONPATH=PACKAGE, DPTRACK_LIBRARY=LIBRARY, DPTRACK_RUNS_DIR=runs, PYTHONDONTWRITEBYTECODE='1')
    env.update(more)
    return env


def start(runs, code, *words, python=sys.executable, **more):
    """Starts a program, from a file so that spawned children can import it."""
    path = os.path.join(os.path.dirname(runs) or '.', 'program-%d.py' % len(glob.glob(os.path.join(os.path.dirname(runs), 'program-*'))))
    with open(path, 'w') as f:
        f.write(textwrap.dedent(code))
    return subprocess.Popen([python, path, *words], env=environment(runs, **more), cwd=os.path.dirname(path),
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(runs, code, *words, status=0, **more):
    """Returns (stdout, stderr) of a program that exits with this status."""
    process = start(runs, code, *words, **more)
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == status, (process.returncode, out, err)
    return out, err


def journals(runs, name='*', experiment='*'):
    """Journals of all runs with the name, in the order of their segments and ranks."""
    found = [j for folder in glob.glob('%s/%s/%s-????????' % (runs, experiment, name)) for j in journal.journals(folder)]
    return sorted(found, key=lambda j: (j.header['run_id'], j.header['segment'], j.header['rank']))


def only(runs, name='*', experiment='*'):
    found = journals(runs, name, experiment)
    assert len(found) == 1, [j.path for j in found]
    return found[0]


def ask(url, route, **query):
    """Returns the reply of a server to /api/v1/ROUTE."""
    with urllib.request.urlopen('%s/api/v1/%s?%s' % (url, route, urllib.parse.urlencode(query)), timeout=60) as reply:
        return json.loads(reply.read())


def choose(*cases):
    """Runs the cases named on the command line, by default all, each with an empty folder; prints what a case returns.
    --list prints their names. Exits with 1 if one failed."""
    asked, failed = sys.argv[1:], False
    if asked == ['--list']:
        print('\n'.join(case.__name__ for case in cases))
        sys.exit(0)
    assert set(asked) <= {case.__name__ for case in cases}, asked
    for case in cases:
        if asked and case.__name__ not in asked:
            continue
        quiet = {'ignore_cleanup_errors': True} if sys.version_info >= (3, 10) else {}
        with tempfile.TemporaryDirectory(prefix='dptrack-test.', **quiet) as folder:
            try:
                print('ok %s: %s' % (case.__name__, case(folder) or ''), flush=True)
            except Exception as error:
                failed = True
                traceback.print_exc()
                print('FAILED %s: %s: %s' % (case.__name__, type(error).__name__, error), flush=True)
    sys.exit(1 if failed else 0)
