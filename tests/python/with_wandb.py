# SPDX-License-Identifier: Apache-2.0
"""Unmodified programs that use W&B: once with wandb 0.31.0 offline, once by `python -m dptrack.as_wandb`: the numbers,
their steps and the settings are equal. Run by tests/python/all in an environment with wandb, transformers, lightning
and keras."""
import glob
import json
import math
import os
import subprocess
import sys
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import lib  # noqa: E402
import serving  # noqa: E402

TRAINER = '''
import sys
import torch, transformers

torch.manual_seed(0)
torch.set_num_threads(1)
model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=32, n_positions=16, n_embd=16, n_layer=1, n_head=2))
data = [{'input_ids': torch.arange(i, i + 8) % 32, 'labels': torch.arange(i, i + 8) % 32} for i in range(16)]
arguments = transformers.TrainingArguments(output_dir=sys.argv[1], max_steps=6, logging_steps=2, per_device_train_batch_size=4, use_cpu=True,
                                           report_to='wandb', disable_tqdm=True, save_strategy='no', run_name='made')
trainer = transformers.Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=data[:4])
trainer.train()
trainer.evaluate()
'''

LIGHTNING = '''
import sys
import torch, lightning
from lightning.pytorch.loggers import WandbLogger

torch.manual_seed(0)
torch.set_num_threads(1)

class Net(lightning.LightningModule):
    def __init__(self, lr):
        super().__init__()
        self.save_hyperparameters()
        self.line = torch.nn.Linear(4, 1)

    def training_step(self, batch, number):
        loss = self.line(batch).square().mean()
        self.log('train/loss', loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr)

data = torch.utils.data.DataLoader(torch.ones(16, 4), batch_size=4)
logger = WandbLogger(project='made', name='made', save_dir='.')
lightning.Trainer(max_epochs=2, logger=logger, log_every_n_steps=1, accelerator='cpu', enable_progress_bar=False, enable_model_summary=False,
                  enable_checkpointing=False, default_root_dir=sys.argv[1]).fit(Net(lr=0.01), data)
'''

KERAS = '''
import os
os.environ['KERAS_BACKEND'] = 'torch'
import keras, numpy

try:  # W&B's callback imports TensorFlow, though any Keras will do
    import tensorflow
except ImportError:
    import sys, types
    stub = types.ModuleType('tensorflow')
    stub.Variable = stub.Tensor = type(None)
    stub.keras = types.ModuleType('tensorflow.keras')
    stub.keras.callbacks = keras.callbacks
    stub.random = types.SimpleNamespace(set_seed=lambda seed: None)
    stub.__version__ = '2.0.0'
    sys.modules.update({'tensorflow': stub, 'tensorflow.keras': stub.keras, 'tensorflow.keras.callbacks': keras.callbacks})
import wandb
import wandb.integration.keras as of_wandb

def made():
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.SGD(0.01), loss='mse')
    return model

x = numpy.linspace(0, 1, 64, dtype='float32').reshape(16, 4)
for every in ('epoch', 2):
    wandb.init(project='made', name='made', config={'every': every})
    made().fit(x, x[:, :1], epochs=2, batch_size=2, verbose=0, validation_split=0.25,
               callbacks=[of_wandb.WandbMetricsLogger(log_freq=every)])
    wandb.finish()
'''

ROWS = '''
import wandb

with wandb.init(project='made', name='made', config={'lr': 0.1, 'deep': {'er': [1, 2]}}, tags=['one']) as run:
    run.log({'loss': 1.0, 'deep': {'er': 2}})
    run.log({'a': 1}, commit=False)
    run.log({'b': 2, 'a': 3})
    run.log({'c': 1}, step=7)
    run.log({'d': 1, 'c': 2}, step=7)
    run.log({'late': 1}, step=3)
    run.define_metric('val/*', step_metric='epoch')
    run.log({'val/acc': float('nan'), 'epoch': 40}, step=9)
    run.summary['best'] = 0.5
'''

READ = '''
import json, sys
sys.path.insert(0, sys.argv[2])
import make_wandb
from wandb.proto import wandb_internal_pb2 as pb

rows, config = [], {}
for _, data in make_wandb.records(sys.argv[1]):
    record = pb.Record()
    record.ParseFromString(data)
    if record.HasField('history'):
        rows.append({(i.key or '.'.join(i.nested_key)): json.loads(i.value_json) for i in record.history.item})
    updates = record.run.config if record.HasField('run') else record.config
    for i in updates.update:
        config[i.key or '.'.join(i.nested_key)] = json.loads(i.value_json)
print(json.dumps([rows, config]))
'''

def keras_counter(key, config):
    """The step counter of a key's rows, which depends on the requested logging frequency."""
    asked = 'epoch' if config['every'] == 'epoch' else 'batch'
    return {'epoch': 'epoch/epoch', 'batch': 'batch/batch_step'}[asked] if key.startswith(asked) else None


CLOCKED = ('_runtime', '_timestamp', '_step', '_wandb')


def python(*words, cwd, **more):
    env = lib.environment(os.path.join(cwd, 'runs'), WANDB_MODE='offline', WANDB_DIR=cwd, WANDB_SILENT='true', HF_HUB_OFFLINE='1', **more)
    done = subprocess.run([sys.executable, *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=lib.LIMIT_S)
    assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-3000:])
    return done.stdout


def leaves(value, prefix):
    value = {'NaN': math.nan, 'Infinity': math.inf, '-Infinity': -math.inf}.get(value, value) if isinstance(value, str) else value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, prefix + '.' + key)
    else:
        yield prefix, value


def is_timed(key):
    return key.startswith(CLOCKED) or 'runtime' in key or 'per_second' in key


def recorded_by_wandb(folder, counter_of):
    """Returns [({key: [(step, value)]}, config)] of the offline runs."""
    out = []
    for path in glob.glob(os.path.join(folder, 'wandb', 'offline-run-*', '*.wandb')):
        rows, config = json.loads(python('-c', READ, path, os.path.join(lib.SRC, 'tests', 'cli', 'import'), cwd=folder))
        series = {}
        for row in rows:
            for top, value in row.items():
                for key, number in leaves(value, top):
                    if not is_timed(key) and isinstance(number, (int, float)):
                        counter = counter_of(key, config)
                        series.setdefault(key, []).append((row[counter] if counter in row and counter != key else row['_step'], float(number)))
        out.append((series, config))
    return out


def recorded_by_us(folder):
    out = []
    for j in lib.journals(os.path.join(folder, 'runs'), 'made'):
        keys = {p[0] for p in j.points if not is_timed(p[0]) and not p[0].startswith('system/')}
        out.append(({key: j.series(key) for key in keys}, dict(j.params), j))
    return out


def same(number, other):
    return number == other or (number != number and other != other)


def compare(name, program, counter_of, folder, finals=()):
    """finals: keys set in the summary, which are points only in ours."""
    path = os.path.join(folder, 'program.py')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(program)
    python(path, os.path.join(folder, 'out'), cwd=folder)
    python('-m', 'dptrack.as_wandb', path, os.path.join(folder, 'out'), cwd=folder)
    theirs, ours = (sorted(runs, key=lambda run: sorted(run[0])) for runs in (recorded_by_wandb(folder, counter_of), recorded_by_us(folder)))
    assert len(theirs) == len(ours) > 0, (name, len(theirs), len(ours))
    for (series, config), (mine, params, j) in zip(theirs, ours):
        assert series and set(series) == set(mine) - set(finals), (name, set(series) ^ set(mine))
        for key, points in series.items():
            assert [p[0] for p in points] == [p[0] for p in mine[key]], (name, key, points, mine[key])
            assert all(same(p[1], q[1]) for p, q in zip(points, mine[key])), (name, key, points, mine[key])
        simple = {k: v for k, v in config.items() if not k.startswith('_wandb') and isinstance(v, (int, float, str)) and v != ''}
        missing = {k: (v, params.get(k)) for k, v in simple.items() if k not in params}
        assert not missing, (name, missing)
        assert j.statuses[-1][0] == 1, (name, j.statuses)
    return ours


def said(runs):
    return '%d runs, %d series' % (len(runs), sum(len(run[0]) for run in runs))


def rows(folder):
    return said(compare('rows', ROWS, lambda key, config: 'epoch' if key.startswith('val/') else None, folder, ('best',)))


def trainer(folder):
    return said(compare('trainer', TRAINER, lambda key, config: 'train/global_step', folder, ('total_flos', 'train_loss')))


def lightning(folder):
    return said(compare('lightning', LIGHTNING, lambda key, config: 'trainer/global_step', folder))


def keras(folder):
    return said(compare('keras', KERAS, keras_counter, folder))


def store(folder):
    """A fresh offline folder made by W&B, imported and compared with what its own classes read."""
    bring = os.path.join(lib.SRC, 'tests', 'cli', 'import')
    out = ''
    for script in ('make_wandb.py', 'from_wandb.py'):
        out = python(os.path.join(bring, script), folder, cwd=folder, srcdir=lib.SRC, builddir=lib.BUILD)
    return out.strip().split('\n')[-1]


DOORS = '''
import numpy, wandb

run = wandb.init(project='made', name='before', id='doors', config={'lr': 0.1, 'small': 1e-05, 'n': 3, 'yes': True, 'none': None, 'empty': {},
                 'deep': {'er': [1, 'x', None], 'two': {'three': 2.5}}, 'api_key': 'abcdefgh12345678', 'pad_token': '<pad>', 'words': 'a b'},
                 tags=['one', 'two'], group='g', job_type='j', notes='first')
run.config.update({'lr': 0.2}, allow_val_change=True)
run.name = 'after'
run.define_metric('val/*', step_metric='epoch')
for i in range(6):
    run.log({'loss': 1 / (i + 1), 'deep': {'er': {'est': i}}, '_own': i, 'flag': i % 2 == 0})
    run.log({'val/acc': i / 10, 'epoch': 10 * i})
run.log({'said': 'words', 'nothing': None, 'odd': float('nan'), 'inf': float('-inf')}, step=20)
pixels = numpy.zeros((4, 5, 3), dtype=numpy.uint8)
run.log({'one': wandb.Image(pixels), 'ims': [wandb.Image(pixels), wandb.Image(pixels + 9)], 'h': wandb.Histogram([1, 2, 3, 4]),
         't': wandb.Table(columns=['a', 'b'], data=[[1, 'x'], [2, 'y']])}, step=21)
run.summary['best'] = 0.5
run.summary['loss'] = 0.01
wandb.summary.word = 'end'
'''


def seen(runs, run_name):
    """A run as REST has it."""
    server = serving.Serving(os.path.join(lib.BUILD, 'dptrack'), '--logdir', runs, '--port', '0', env=lib.environment(runs))

    def get(path):
        with urllib.request.urlopen(server.url + '/api/v1/' + path, timeout=60) as reply:
            return json.load(reply)

    run, = [r for r in get('runs')['runs'] if r['name'] == run_name]
    whole = get('runs/' + run['id'])
    points = sorted((p['key'], p['step'], str(p['value'])) for p in get('series?run=%s&rank=-1' % run['id'])['points']
                    if not p['key'].startswith('system/'))
    media = sorted((m['key'], m['kind'], m['step']) for m in get('runs/%s/media' % run['id'])['media'])
    assert server.stop() == 0
    return {'id': run['id'], 'params': whole['params'], 'tags': whole['tags'], 'notes': whole['notes'], 'experiment': whole['experiment'],
            'status': whole['status'], 'points': points, 'media': media}


def doors(folder):
    """One program, recorded by as_wandb, and by W&B offline and then imported: the same run."""
    path = os.path.join(folder, 'program.py')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(DOORS)
    python(path, cwd=folder)
    done = subprocess.run([os.path.join(lib.BUILD, 'dptrack'), 'import', os.path.join(folder, 'wandb'), '--logdir', os.path.join(folder, 'imported')],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done
    python('-m', 'dptrack.as_wandb', path, cwd=folder)
    live, brought = seen(os.path.join(folder, 'runs'), 'after'), seen(os.path.join(folder, 'imported'), 'after')
    for part, value in live.items():
        assert value == brought[part], (part, value, brought[part])
    assert (live['params']['lr'], live['params']['api_key'], live['media'][1]) == ('0.2', '(hidden)', ('ims/0', 'image', 21)), live
    return '%d points' % len(live['points'])


NAMES = '''
import json, wandb
public = lambda of: sorted(name for name in set(dir(of)) | set(getattr(of, '__all__', ())) if not name.startswith('_'))
media = {name for of in ('Audio', 'Histogram', 'Html', 'Image', 'Table', 'Video') for name in public(getattr(wandb, of))}
print(json.dumps([public(wandb), public(wandb.Run), sorted(media)]))
'''

USE = '''
import sys, wandb
from wandb import _names

run = wandb.init(project='names', name='all')
for of, names in ((wandb, sorted(_names.MODULE)), (run, sorted(_names.RUN))):
    for name in names:
        value = getattr(of, name)
        if name in ('finish', 'join', 'init', 'login', 'agent', 'display') or not callable(value):
            continue
        if isinstance(value, type) and issubclass(value, Exception):
            continue
        print('>', name, file=sys.stderr, flush=True)
        wanted = {'log': [{'x': 1}], 'Image': [[[0]]], 'Audio': [b'RIFF'], 'Histogram': [[1]], 'alert': ['a'], 'define_metric': ['x'], 'watch': [[]]}
        try:
            value(*wanted.get(name, []))
        except TypeError as error:
            assert of is wandb and isinstance(value, type), (name, error)
run.finish()
'''


def names(folder):
    """Every public name of the package is in the lists; each is used, and is recorded or says once that it is not."""
    module, of_run, media = json.loads(python('-c', NAMES, cwd=folder))
    found = json.loads(python('-c', 'import sys, json; sys.path.insert(0, sys.argv[1]); import _names; '
                              'print(json.dumps([sorted(_names.MODULE), sorted(_names.RUN), sorted(_names.MEDIA)]))',
                              os.path.join(lib.PACKAGE, 'dptrack', 'wandb_shim', 'wandb'), cwd=folder))
    assert found == [module, of_run, media], [set(a) ^ set(b) for a, b in zip(found, (module, of_run, media))]
    path = os.path.join(folder, 'use.py')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(USE)
    env = lib.environment(os.path.join(folder, 'runs'))
    done = subprocess.run([sys.executable, '-m', 'dptrack.as_wandb', path], cwd=folder, env=env, capture_output=True, text=True, timeout=lib.LIMIT_S)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for line in done.stderr.splitlines() if ' is not recorded' in line]
    assert len(lines) == len(set(lines)) > 20, lines
    return '%d names' % (len(module) + len(of_run))


if __name__ == '__main__':
    lib.choose(rows, doors, names, trainer, lightning, keras, store)
