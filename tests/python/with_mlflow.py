"""Imports of stores (SQLite and folders) made by MLflow 3.17.2 itself, and pictures that its client logs to our
server, where they are media. Run by tests/python/all in an environment with mlflow."""
import hashlib
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402
import media  # noqa: E402
from told import Server  # noqa: E402

BRING = os.path.join(lib.SRC, 'tests', 'cli', 'import')


def stores(folder):
    """Fresh stores made by MLflow, imported and compared with what its client returns."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(('MLFLOW', 'DPTRACK'))}
    env.update(srcdir=lib.SRC, builddir=lib.BUILD, HOME=folder, GIT_PYTHON_REFRESH='quiet', PYTHONDONTWRITEBYTECODE='1')
    for script in ('make_mlflow.py', 'from_mlflow.py'):
        done = subprocess.run([sys.executable, os.path.join(BRING, script), folder], env=env, cwd=folder, capture_output=True, text=True, timeout=lib.LIMIT_S)
        assert done.returncode == 0, (script, done.stdout[-2000:], done.stderr[-3000:])
    return done.stdout.strip().split('\n')[-1]


PICTURES = '''
import hashlib, io, json, sys
import mlflow, numpy
from mlflow import MlflowClient

mlflow.set_tracking_uri(sys.argv[1])
mlflow.set_experiment('pictures')
with mlflow.start_run() as run:
    for step in range(3):
        mlflow.log_image(numpy.full((4, 5, 3), 40 * step, numpy.uint8), key='dogs/small', step=step, timestamp=1700000000123 + step)
    mlflow.log_image(numpy.zeros((2, 2, 3), numpy.uint8), 'named.png')
client = MlflowClient()
out = {}
for file in client.list_artifacts(run.info.run_id, 'images'):
    if file.path.endswith('.png'):
        with open(client.download_artifacts(run.info.run_id, file.path, sys.argv[2]), 'rb') as f:
            out[file.path] = hashlib.sha256(f.read()).hexdigest()
print(json.dumps([run.info.run_id, out]))
'''


def log_image(folder):
    runs = folder + '/runs'
    os.makedirs(runs)
    with Server(runs) as server:
        out, err = lib.run(runs, PICTURES, server.url, folder, HOME=folder, GIT_PYTHON_REFRESH='quiet', PYTHONWARNINGS='ignore')
        run_id, files = json.loads(out.strip().split('\n')[-1])
        shown = server.get(run_id, 'media')['media']
        assert [(m['key'], m['kind'], m['step'], m['width'], m['height'], m['type']) for m in shown] == \
            [('dogs/small', 'image', s, 5, 4, 'image/png') for s in range(3)], shown
        got = {m['step']: hashlib.sha256(media.fetch(server, run_id, m['content'])[1]).hexdigest() for m in shown}
        want = {int(path.split('+')[2]): digest for path, digest in files.items()}
        assert got == want and len(set(want.values())) == 3, (got, want)
        out = os.path.join(folder, 'out')
        subprocess.run([os.path.join(lib.BUILD, 'dptrack'), 'export', '--events', out, '--logdir', runs, run_id], check=True, capture_output=True, timeout=60)
        written = b''.join(open(os.path.join(at, name), 'rb').read() for at, _, names in os.walk(out) for name in names)
        assert all(media.fetch(server, run_id, m['content'])[1] in written for m in shown), 'exported event files lack a picture'
        assert [m['wall_time'] for m in shown] == [(1700000000123 + s) / 1000 for s in range(3)], shown
    return '%d pictures' % len(files)


if __name__ == '__main__':
    lib.choose(stores, log_image)
