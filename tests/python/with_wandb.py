"""Unmodified programs that use W&B: once with wandb 0.31.0 offline, once by `python -m dptrack.as_wandb`: the numbers,
their steps and the settings are equal. Run by tests/python/all in an environment with wandb, transformers, lightning
and keras."""
import glob
import json
import math
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

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
        rows.append({(i.key or '/'.join(i.nested_key)): json.loads(i.value_json) for i in record.history.item})
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
            yield from leaves(inner, prefix + '/' + key)
    else:
        yield prefix, value


def is_timed(key):
    return key.startswith(CLOCKED) or 'runtime' in key or 'per_second' in key


def recorded_by_wandb(folder, counter_of):
    """Returns [({key: [(step, value)]}, config)] of the offline runs."""
    out = []
    for path in glob.glob(os.path.join(folder, 'wandb', 'offline-run-*', '*.wandb')):
        rows, config = json.loads(python('-c', READ, path, os.path.join(lib.SRC, 'tests', 'cli', 'bring'), cwd=folder))
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
    bring = os.path.join(lib.SRC, 'tests', 'cli', 'bring')
    out = ''
    for script in ('make_wandb.py', 'from_wandb.py'):
        out = python(os.path.join(bring, script), folder, cwd=folder, srcdir=lib.SRC, builddir=lib.BUILD)
    return out.strip().split('\n')[-1]


if __name__ == '__main__':
    lib.choose(rows, trainer, lightning, keras, store)
