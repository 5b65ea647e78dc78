"""What the tests of the Python package share: programs that record, and the journals that they leave, read by the format's
description alone."""
import glob
import os
import subprocess
import sys
import textwrap

SRC = os.path.abspath(os.environ.get('srcdir', '.'))
BUILD = os.path.abspath(os.environ.get('builddir', 'build'))
PACKAGE = os.path.join(SRC, 'tracker', 'python')
LIBRARY = os.path.join(BUILD, '.libs', 'libdptrack.so')
sys.path.insert(0, os.path.join(SRC, 'tests', 'tracker'))
import journal  # noqa: E402

JOB_VARIABLES = ('RANK', 'WORLD_SIZE', 'SLURM', 'OMPI', 'PMI', 'TORCHELASTIC', 'DPTRACK')


def environment(runs, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(JOB_VARIABLES)}
    env.update(PYTHONPATH=PACKAGE, DPTRACK_LIBRARY=LIBRARY, DPTRACK_RUNS_DIR=runs, PYTHONDONTWRITEBYTECODE='1')
    env.update(more)
    return env


def start(runs, code, *words, python=sys.executable, **more):
    """A program of its own, written to a file so that spawned children can import it."""
    path = os.path.join(os.path.dirname(runs) or '.', 'program-%d.py' % len(glob.glob(os.path.join(os.path.dirname(runs), 'program-*'))))
    with open(path, 'w') as f:
        f.write(textwrap.dedent(code))
    return subprocess.Popen([python, path, *words], env=environment(runs, **more), cwd=os.path.dirname(path),
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(runs, code, *words, status=0, **more):
    """(stdout, stderr) of a program that ends with this status."""
    process = start(runs, code, *words, **more)
    out, err = process.communicate(timeout=120)
    assert process.returncode == status, (process.returncode, out, err)
    return out, err


def journals(runs, name='*', experiment='*'):
    """Of all runs of a name, in the order of their segments and ranks."""
    found = [j for folder in glob.glob('%s/%s/%s-????????' % (runs, experiment, name)) for j in journal.journals(folder)]
    return sorted(found, key=lambda j: (j.header['run_id'], j.header['segment'], j.header['rank']))


def only(runs, name='*', experiment='*'):
    found = journals(runs, name, experiment)
    assert len(found) == 1, [j.path for j in found]
    return found[0]
