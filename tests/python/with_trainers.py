"""Hugging Face's and Lightning's trainers on data made here: what they log is the run's, value by value, and their settings its
params. Run by tests/python/all in an environment that has both."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
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


def lines(out, words):
    return [line.split() for line in out.splitlines() if len(line.split()) == words and line[0].isdigit()]


def hugging_face(folder):
    out, err = lib.run(folder + '/runs', HUGGING_FACE, folder + '/out')
    j = lib.only(folder + '/runs', 'hf', 'trainers')
    logged = lines(out, 3)
    train = [(int(step), float(loss)) for step, loss, _ in logged if loss != 'None']
    assert len(train) == 3 and j.series('train/loss') == train, (train, j.series('train/loss'), err)
    assert j.series('eval/loss') == [(int(step), float(loss)) for step, _, loss in logged if loss != 'None'], out
    assert (j.params['max_steps'], j.params['n_embd'], j.statuses[-1][0]) == (6, 16, 1), (j.params, j.statuses)


def of_lightning(folder):
    out, err = lib.run(folder + '/runs', LIGHTNING, folder + '/out')
    j = lib.only(folder + '/runs', 'pl', 'trainers')
    want = [(int(step), float(loss)) for step, loss in lines(out, 2)]
    assert len(want) == 8 and j.series('train/loss') == want, (want, j.series('train/loss'), err)
    assert (j.params['lr'], j.statuses[-1][0]) == (0.01, 1), (j.params, j.statuses)


def main():
    with tempfile.TemporaryDirectory(prefix='dptrack-test.') as folder:
        hugging_face(folder)
        of_lightning(folder)
    print('with_trainers: ok')


main()
