#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pip install ./tracker/python in a new environment, without the network and with only a C compiler: the package
records with its own library, has a version, and imports nothing that it does not need. The same from an archive of the
sources, as pip installs dptrack-VERSION.tar.gz."""
import glob
import os
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

PROGRAM = '''
import sys
before = set(sys.modules)
import dptrack
brought = {name.partition('.')[0] for name in set(sys.modules) - before} - {'dptrack'}
assert not brought & {'ctypes', 'json', 'subprocess', 'urllib', 'multiprocessing', 'torch', 'numpy'}, brought
with dptrack.init(run_name='installed') as run:
    run.log({'x': 0.5})
import dptrack._library
print(dptrack._library.places()[0])
print(dptrack.__version__)
'''


def skip(reason):
    print('skipped: ' + reason)
    sys.exit(77)


def pack_sources(folder):
    """An archive with one folder, as `make dist` makes it, of the files that pip needs."""
    path = os.path.join(folder, 'dptrack-0.tar.gz')
    with tarfile.open(path, 'w:gz') as archive:
        for name in ('pyproject.toml', 'configure.ac', 'tracker', 'schema'):
            archive.add(os.path.join(lib.SRC, name), 'dptrack-0/' + name, filter=lambda f: None if '__pycache__' in f.name else f)
    return path


def list_sources():
    """Without the bytecode that other tests, which import the package from here, may write at any time."""
    return {path for path in glob.glob(lib.PACKAGE + '/**', recursive=True) if '__pycache__' not in path}


def main():
    with tempfile.TemporaryDirectory() as folder:
        venv = folder + '/venv'
        made = subprocess.run([sys.executable, '-m', 'venv', venv], capture_output=True, text=True)
        if made.returncode:
            skip('no virtual environment: ' + (made.stderr or made.stdout).strip().split('\n')[-1])
        env = {k: v for k, v in os.environ.items() if k not in ('PYTHONPATH', 'DPTRACK_LIBRARY')}
        env.update(PIP_NO_INDEX='1', PIP_DISABLE_PIP_VERSION_CHECK='1', CFLAGS='-O0', LDFLAGS='', HOME=folder,
                   PYTHONDONTWRITEBYTECODE='1')
        before = list_sources()
        got = subprocess.run([venv + '/bin/pip', 'install', '-q', lib.PACKAGE], capture_output=True, text=True, env=env, cwd=folder)
        assert got.returncode == 0, got.stdout + got.stderr
        assert list_sources() == before, 'the sources are unchanged'
        out = subprocess.run([venv + '/bin/python', '-c', PROGRAM], capture_output=True, text=True, cwd=folder,
                             env=dict(env, DPTRACK_RUNS_DIR=folder + '/runs'))
        assert out.returncode == 0, out.stderr
        library, version = out.stdout.split()
        assert library.startswith(venv) and version.endswith('+client'), out.stdout
        assert version.partition('.dev')[0] in open(os.path.join(lib.SRC, 'configure.ac')).read(), version
        assert lib.only(folder + '/runs').series('x') == [(1, 0.5)]
        again = subprocess.run([venv + '/bin/pip', 'install', '-q', '--force-reinstall', pack_sources(folder)], capture_output=True, text=True, env=env,
                               cwd=folder)
        assert again.returncode == 0, again.stdout + again.stderr
        out = subprocess.run([venv + '/bin/python', '-c', PROGRAM], capture_output=True, text=True, cwd=folder,
                             env=dict(env, DPTRACK_RUNS_DIR=folder + '/again'))
        assert out.stdout.split() == [library, version] and lib.only(folder + '/again').series('x') == [(1, 0.5)], out
    print('installed: version %s, recorded by its own library' % version)


if __name__ == '__main__':
    main()
