# SPDX-License-Identifier: Apache-2.0
"""Trainers of Hugging Face, Lightning, Keras and Accelerate on synthetic data: the run has the values they log and, as
params, their settings. Run by tests/python/all in an environment with all of them."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tracker'))
import journal  # noqa: E402
import lib  # noqa: E402

HUGGING_FACE = '''
import sys
import torch, transformers
import dptrack, dptrack.transformers

torch.manual_seed(0)
torch.set_num_threads(1)
model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=32, n_positions=16, n_embd=16, n_layer=1, n_head=2))
data = [{'input_ids': torch.arange(i, i + 8) % 32, 'labels': torch.arange(i, i + 8) % 32} for i in range(16)]
arguments = transformers.TrainingArguments(output_dir=sys.argv[1], max_steps=6, logging_steps=2, per_device_train_batch_size=4, use_cpu=True,
                                           report_to='none', disable_tqdm=True, save_strategy='no', run_name='hf')
trainer = transformers.Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=data[:4],
                               callbacks=[dptrack.transformers.Callback(experiment='trainers')])
trainer.train()
trainer.evaluate()
for entry in trainer.state.log_history:
    print(entry['step'], repr(entry.get('loss')), repr(entry.get('eval_loss')))
for fold in range(2):
    arguments.max_steps = 2
    transformers.Trainer(model=model, args=arguments, train_dataset=data,
                         callbacks=[dptrack.transformers.Callback(experiment='trainers', run_name='fold%d' % fold)]).train()
'''

LIGHTNING = '''
import sys
import torch, lightning
import dptrack.lightning

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
        print(self.global_step, repr(loss.item()))
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr)

data = torch.utils.data.DataLoader(torch.ones(16, 4), batch_size=4)
logger = dptrack.lightning.Logger(experiment='trainers', run_name='pl')
lightning.Trainer(max_epochs=2, logger=logger, log_every_n_steps=1, accelerator='cpu', enable_progress_bar=False, enable_model_summary=False,
                  enable_checkpointing=False, default_root_dir=sys.argv[1]).fit(Net(lr=0.01), data)
'''

KERAS = '''
import os
os.environ['KERAS_BACKEND'] = 'torch'
import keras, numpy
import dptrack, dptrack.keras

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile(optimizer=keras.optimizers.SGD(0.01), loss='mse')
x = numpy.linspace(0, 1, 64, dtype='float32').reshape(16, 4)
callback = dptrack.keras.Callback(experiment='trainers', run_name='keras', every=4)
history = model.fit(x, x[:, :1], epochs=3, batch_size=2, verbose=0, validation_split=0.25, callbacks=[callback]).history
for epoch in range(3):
    print(epoch + 1, repr(history['loss'][epoch]), repr(history['val_loss'][epoch]))
print('test', repr(model.evaluate(x, x[:, :1], verbose=0, callbacks=[callback])))
for fold in range(2):
    model.fit(x, x[:, :1], epochs=2, verbose=0, callbacks=[dptrack.keras.Callback(experiment='trainers', run_name='fold%d' % fold)])
'''

ACCELERATE = '''
import torch
from accelerate import Accelerator
import dptrack, dptrack.accelerate

torch.manual_seed(0)
torch.set_num_threads(1)
accelerator = Accelerator(cpu=True, log_with=dptrack.accelerate.Tracker(experiment='trainers', run_name='accelerate'))
accelerator.init_trackers('', config={'lr': 0.1, 'name': 'line'})
line = torch.nn.Linear(4, 1)
model, optimizer = accelerator.prepare(line, torch.optim.SGD(line.parameters(), lr=0.1))
for step in range(1, 6):
    loss = model(torch.ones(2, 4)).square().mean()
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
    print(step, repr(loss.item()))
    accelerator.log({'train/loss': loss}, step=step)
accelerator.get_tracker('dptrack').log_images({'picture': [torch.zeros(3, 4, 5)]}, step=5)
assert accelerator.get_tracker('dptrack', unwrap=True) is dptrack.run
accelerator.end_training()
assert dptrack.run is None
'''

WATCHED = '''
import torch
import dptrack

torch.manual_seed(0)
model = torch.nn.Linear(2, 3)
run = dptrack.init(experiment='trainers', run_name='watched')
watch = dptrack.watch(model, log='all', log_freq=2)
for step in range(1, 7):
    loss = model(torch.ones(4, 2) * step).square().mean()
    model.zero_grad()
    loss.backward()
    if step % 2 == 0:
        print(step, repr(model.weight.grad.min().item()), repr(model.weight.grad.max().item()))
    if step == 4:
        watch.remove()
    run.log({'train/loss': loss}, step=step)
'''


def lines(out, words):
    return [line.split() for line in out.splitlines() if len(line.split()) == words and line[0].isdigit()]


def folds(folder, key, steps):
    """Each callback of a k-fold loop starts a run (Lightning#8614, #8574)."""
    for name in ('fold0', 'fold1'):
        j = lib.only(folder + '/runs', name, 'trainers')
        assert [step for step, _ in j.series(key)] == steps and j.statuses[-1][0] == 1, (name, j.series(key), j.statuses)


def hugging_face(folder):
    out, err = lib.run(folder + '/runs', HUGGING_FACE, folder + '/out')
    j = lib.only(folder + '/runs', 'hf', 'trainers')
    logged = lines(out, 3)
    train = [(int(step), float(loss)) for step, loss, _ in logged if loss != 'None']
    assert len(train) == 3 and j.series('train/loss') == train, (train, j.series('train/loss'), err)
    assert j.series('eval/loss') == [(int(step), float(loss)) for step, _, loss in logged if loss != 'None'], out
    assert (j.params['max_steps'], j.params['n_embd'], j.statuses[-1][0]) == (6, 16, 1), (j.params, j.statuses)
    folds(folder, 'train/loss', [2])


def lightning(folder):
    out, err = lib.run(folder + '/runs', LIGHTNING, folder + '/out')
    j = lib.only(folder + '/runs', 'pl', 'trainers')
    want = [(int(step), float(loss)) for step, loss in lines(out, 2)]
    assert len(want) == 8 and j.series('train/loss') == want, (want, j.series('train/loss'), err)
    assert (j.params['lr'], j.statuses[-1][0]) == (0.01, 1), (j.params, j.statuses)


def keras(folder):
    out, err = lib.run(folder + '/runs', KERAS, folder + '/out')
    j = lib.only(folder + '/runs', 'keras', 'trainers')
    want = [(int(epoch), float(loss), float(val)) for epoch, loss, val in lines(out, 3)]
    assert j.series('epoch/train_loss') == [(e, loss) for e, loss, _ in want] and len(want) == 3, (want, j.series('epoch/train_loss'), err)
    assert j.series('epoch/val_loss') == [(e, val) for e, _, val in want], want
    assert j.series('test/loss') == [(18, float(out.split('test ')[1]))], j.series('test/loss')
    assert [step for step, _ in j.series('train/loss')] == [4, 8, 12, 16], j.series('train/loss')
    recorded = [j.params.get(name) for name in ('parameters', 'epochs', 'optimizer.name', 'optimizer.learning_rate')]
    assert (recorded, j.statuses[-1][0]) == ([5, 3, 'sgd', 0.01], 1), (j.params, j.statuses)
    folds(folder, 'epoch/train_loss', [1, 2])


def accelerate(folder):
    out, err = lib.run(folder + '/runs', ACCELERATE)
    j = lib.only(folder + '/runs', 'accelerate', 'trainers')
    want = [(int(step), float(loss)) for step, loss in lines(out, 2)]
    assert len(want) == 5 and j.series('train/loss') == want, (want, j.series('train/loss'), err)
    assert (j.params, j.statuses[-1][0]) == ({'lr': 0.1, 'name': 'line'}, 1) and b'picture/0' in j.data, (j.params, j.statuses)


def watched(folder):
    """Histograms of the gradients before each logged step, until watching is removed."""
    out, err = lib.run(folder + '/runs', WATCHED)
    j = lib.only(folder + '/runs', 'watched', 'trainers')
    assert [h for h in lines(out, 3)][:2], err
    found = {}
    for step, tag, low, high in histograms(j):
        found.setdefault(tag, []).append((step, low, high))
    assert set(found) == {kind + name for kind in ('gradients/', 'parameters/') for name in ('weight', 'bias')}, found
    want = [(int(step), float(low), float(high)) for step, low, high in lines(out, 3)][:2]
    assert found['gradients/weight'] == want, (found['gradients/weight'], want)
    assert [step for step, _, _ in found['parameters/weight']] == [2, 4], found


def histograms(j):
    """[(step, key, lowest edge, highest edge)] from TensorBoard's histogram tensors: rows of left, right, count."""
    import struct
    out = []
    for payload in j.payloads:
        event = dict(journal.fields(payload))
        for number, value in journal.fields(event.get(5, b'')):
            v = dict(journal.fields(value))
            if b'histograms' in v.get(9, b'') and 8 in v:
                content = dict(journal.fields(v[8]))[4]
                rows = struct.unpack('<%dd' % (len(content) // 8), content)
                out.append((event[2], v[1].decode(), rows[0], rows[-2]))
    return out


if __name__ == '__main__':
    lib.choose(hugging_face, lightning, keras, accelerate, watched)
