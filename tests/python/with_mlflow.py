# SPDX-License-Identifier: Apache-2.0
"""Imports of stores (SQLite and folders) made by MLflow 3.17.2 itself, and pictures that its client logs to our
server, where they are media. Run by tests/python/all in an environment with mlflow."""
import contextlib
import hashlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request

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


MODELS = '''
import sys
import mlflow

mlflow.set_tracking_uri(sys.argv[1])
mlflow.set_registry_uri(sys.argv[1])
mlflow.create_experiment('ex', artifact_location=sys.argv[2] or None)
mlflow.set_experiment('ex')

class Same(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input):
        return model_input

with mlflow.start_run(run_name='r1'):
    made = mlflow.pyfunc.log_model(name='net', python_model=Same(), registered_model_name='reg', pip_requirements=[], params={'p': '1'}, tags={'t': 'v'})
    for step in (3, 4):
        mlflow.log_metric('acc', step / 8, step=step, model_id=made.model_id)
client = mlflow.MlflowClient()
client.set_registered_model_alias('reg', 'champion', '1')
mlflow.create_external_model(name='ext', model_type='agent')
client.delete_logged_model(mlflow.create_external_model(name='gone').model_id)
'''

SAID = '''
import json, os, sys
import mlflow

mlflow.set_tracking_uri(sys.argv[1])
mlflow.set_registry_uri(sys.argv[1])
loaded = mlflow.pyfunc.load_model('models:/reg@champion').predict([1, 2])  # leaves registered_model_meta in the model's folder
client = mlflow.MlflowClient()
experiment = client.get_experiment_by_name('ex').experiment_id
out = {'models': {}, 'runs': {}}
for m in client.search_logged_models([experiment]):
    files = []
    def walk(path=None):
        for f in client.list_logged_model_artifacts(m.model_id, path):
            walk(f.path) if f.is_dir else files.append((f.path, f.file_size))
    if m.name != 'ext':
        walk()
    out['models'][m.model_id] = [m.name, m.model_type or '', m.source_run_id or '', str(m.status), m.tags, m.params, sorted(files),
                                 sorted((x.key, x.value, x.step, x.timestamp, x.run_id) for x in m.metrics or [])[-1:]]  # MLflow's folders give the newest
for r in client.search_runs([experiment]):
    out['runs'][r.info.run_id] = [[(o.model_id, o.step) for o in r.outputs.model_outputs] if r.outputs else [],
                                  sorted((x.step, x.value) for x in client.get_metric_history(r.info.run_id, 'acc'))]
out['registered'] = [(m.name, {alias: str(version) for alias, version in m.aliases.items()}) for m in client.search_registered_models()]
out['versions'] = [(v.name, str(v.version), v.source, v.run_id) for v in client.search_model_versions("name='reg'")]
print(json.dumps([out, list(loaded)], sort_keys=True))
'''


def models(folder):
    """Logged models, a version registered from one, an alias, outputs: as MLflow's own client finds them in the original."""
    more = {'HOME': folder, 'GIT_PYTHON_REFRESH': 'quiet', 'PYTHONWARNINGS': 'ignore', 'MLFLOW_ALLOW_FILE_STORE': 'true',
            'MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING': 'false'}
    for name, address in (('mlflow.db', 'sqlite:///%s/mlflow.db' % folder), ('mlruns', 'file://%s/mlruns' % folder)):
        lib.run(folder, MODELS, address, 'file://%s/of-db' % folder if name == 'mlflow.db' else '', **more)
        want = json.loads(lib.run(folder, SAID, address, folder, **more)[0].strip().split('\n')[-1])
        into = os.path.join(folder, 'into-' + name)
        for _ in range(2):  # a repeat changes nothing
            done = subprocess.run([os.path.join(lib.BUILD, 'dptrack'), 'import', os.path.join(folder, name), '--logdir', into], capture_output=True,
                                  text=True, timeout=120, env=lib.environment(into, DPTRACK_PYTHON=sys.executable))
            assert done.returncode == 0 and 'version' not in done.stdout, done
            with Server(into) as server:
                got = json.loads(lib.run(folder, SAID, server.url, folder, **more)[0].strip().split('\n')[-1])
            assert got == want, (name, got, want, done.stdout)
    return '%d models' % len(want[0]['models'])


def served(folder):
    """The store behind MLflow's own server, asked by its REST API: the same runs, points, data sets, files, versions and aliases."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(('MLFLOW', 'DPTRACK'))}
    env.update(srcdir=lib.SRC, builddir=lib.BUILD, HOME=folder, GIT_PYTHON_REFRESH='quiet', PYTHONDONTWRITEBYTECODE='1', PYTHONPATH=BRING)
    subprocess.run([sys.executable, os.path.join(BRING, 'make_mlflow.py'), folder], env=env, cwd=folder, capture_output=True, timeout=lib.LIMIT_S, check=True)
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    url, into = 'http://127.0.0.1:%d' % port, os.path.join(folder, 'into')
    server = subprocess.Popen([sys.executable, '-m', 'mlflow', 'server', '--backend-store-uri', 'sqlite:///%s/mlflow.db' % folder, '--port', str(port),
                               '--workers', '1'], env=env, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        until = time.monotonic() + 200
        while time.monotonic() < until:
            with contextlib.suppress(OSError), urllib.request.urlopen(url + '/health', timeout=5):
                break
            time.sleep(0.5)
        for _ in range(2):
            done = subprocess.run([os.path.join(lib.BUILD, 'dptrack'), 'import', url, '--logdir', into], capture_output=True, text=True, timeout=200,
                                  env=lib.environment(into, DPTRACK_PYTHON=sys.executable))
            assert done.returncode == 0 and done.stdout.startswith('5 runs, '), done
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=60)
    compare = ("import json, sys; sys.path.insert(0, %r); sys.argv = sys.argv[:1]; import from_mlflow, lib; server = lib.Server(%r); want = json.load(open(%r))['db']; "
               "from_mlflow.compare(from_mlflow.Store(server).said(), want, 'served'); server.stop(); lib.finish('served')"
               % (BRING, into, os.path.join(folder, 'mlflow.json')))
    said = subprocess.run([sys.executable, '-c', compare], env=env, capture_output=True, text=True, timeout=200)
    assert said.returncode == 0, (said.stdout[-3000:], said.stderr[-2000:], done.stdout)
    return said.stdout.strip().split('\n')[-1]


ALPHABET = 'ab \n\t\'":#-[]{}|>&*!%@`,?\\é日\x00\x07 x y 0 1.e~'
WORDS = ('null', '~', 'yes', '- a', '1e5', 'word ' * 40, '|', '> x', ' lead', 'trail ')


def yaml(folder):
    """The reader of meta.yaml against PyYAML's emitter: random mappings of scalars and of mappings, with sequences among them."""
    import yaml as pyyaml
    sys.path.insert(0, lib.PACKAGE)
    from dptrack.importers._yaml import read_yaml
    seed = int(os.environ.get('SEED', random.randrange(1 << 30)))
    draw, compared = random.Random(seed), 0

    def text():
        return ''.join(draw.choice(ALPHABET) for _ in range(draw.choice((0, 1, 3, 8, 40, 200))))

    def scalar():
        return draw.choice((text, text, text, lambda: None, lambda: draw.randrange(10 ** 6), lambda: draw.choice(WORDS), lambda: True))()

    def shown(value):
        return value if value is None or isinstance(value, str) else str(value).lower()

    def value():
        return draw.choice((scalar, scalar, scalar, lambda: {text() or 'k': scalar() for _ in range(draw.randrange(3))},
                            lambda: [scalar() for _ in range(draw.randrange(3))]))()
    while compared < 3000:
        made = {text() or 'k': value() for _ in range(draw.randrange(1, 5))}
        written = pyyaml.dump(made, default_flow_style=False, allow_unicode=draw.random() < 0.5, Dumper=pyyaml.SafeDumper)
        want = {k: {a: shown(b) for a, b in v.items()} if isinstance(v, dict) else shown(v) for k, v in made.items() if not isinstance(v, list) and v != {}}
        if want and not any(line.lstrip().startswith('? ') for line in written.split('\n')):  # keys that MLflow never has
            got = read_yaml(written)
            assert got == want, (seed, written, got, want)
            compared += 1
    return '%d documents' % compared


if __name__ == '__main__':
    lib.choose(stores, log_image, models, served, yaml)
