#!/usr/bin/env python3
"""Programs that import wandb, run by `python -m dptrack.as_wandb` where W&B is not installed: rows, their steps, a
resumed run, a child process; missing features are reported. Comparison with the real W&B: with_wandb.py."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

ROWS = '''
import importlib.metadata, os, subprocess, sys
import wandb

assert importlib.metadata.version('wandb') == wandb.__version__ == '0.31.0' and wandb.run is None
run = wandb.init(project='stands', name='rows', id='abc', resume='allow', config={'lr': 0.1, 'deep': {'er': 1}}, tags=['word'], group='g')
assert wandb.run is run and (run.resumed, run.starting_step) == (False, 0)
wandb.log({'loss': 1.0, 'deep': {'er': 2}, 'none': None})
wandb.log({'a': 1}, commit=False)
wandb.log({'b': 2, 'a': 3})
wandb.log({'c': 1}, step=7)
wandb.log({'c': 2}, step=7)
wandb.log({'late': 1}, step=3)
wandb.define_metric('val/*', step_metric='epoch')
wandb.log({'val/acc': 0.5, 'epoch': 40}, step=9)
wandb.config.update({'lr': 0.2, 'new': 'x'}, allow_val_change=True)
assert wandb.config['lr'] == 0.1 and wandb.config.get('none') is None and wandb.summary['c'] == 2
os.makedirs('some/where')
for name in ('a.pt', 'b.pt'):
    with open('some/where/' + name, 'w') as f:
        f.write(name)
assert wandb.save('some/where/*.pt') == ['some/where/a.pt', 'some/where/b.pt'] and wandb.save('nothing*') == []
assert run.save(os.path.abspath('some/where/a.pt'), base_path='some') == [os.path.abspath('some/where/a.pt')]
for name in ('Video', 'plot'):
    assert not hasattr(wandb, name)
try:
    wandb.Artifact('model', type='model')
except NotImplementedError as error:
    assert 'records no artifacts (model)' in str(error)
else:
    assert False
subprocess.run([sys.executable, '-c', "import wandb; wandb.init(project='stands', name='child').log({'x': 1})"], check=True)
wandb.finish(exit_code=3)
assert wandb.run is None
try:
    wandb.log({})
except wandb.Error as error:
    assert 'wandb.init()' in str(error)
else:
    assert False
'''

AGAIN = '''
import wandb
with wandb.init(project='stands', name='rows', id='abc', resume='must') as run:
    print(run.resumed, run.starting_step)
    run.log({'loss': 0.5})
with wandb.init(project='stands', name='off', mode='disabled') as run:
    run.log({'loss': 0.5})
'''


def run_shim(folder, *words, status=0):
    env = {k: v for k, v in lib.environment(os.path.join(folder, 'runs')).items() if not k.startswith('WANDB')}
    done = subprocess.run([sys.executable, '-m', 'dptrack.as_wandb', *words], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


def program(folder, name, text):
    path = os.path.join(folder, name + '.py')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    return path


def main():
    with tempfile.TemporaryDirectory(prefix='dptrack-test.') as folder:
        _, err = run_shim(folder, program(folder, 'rows', ROWS), '--lr', '0.1')
        assert 'step 3 comes after step 7' in err, err
        j = lib.only(folder + '/runs', 'rows', 'stands')
        want = {'loss': [(0, 1.0)], 'deep/er': [(0, 2.0)], 'a': [(1, 3.0)], 'b': [(1, 2.0)], 'c': [(7, 2.0)], 'epoch': [(9, 40.0)], 'val/acc': [(40, 0.5)]}
        assert {key: j.series(key) for key in {p[0] for p in j.points} if not key.startswith('system/')} == want, j.points
        assert (j.params['lr'], j.params['deep.er'], j.params['new']) == (0.1, 1, 'x') and j.statuses == [(2, 'exit code 3'), (2, '')], (j.params, j.statuses)
        assert j.tags == {'word': '', 'wandb.run_id': 'abc', 'wandb.group': 'g'}, j.tags
        files = os.path.join(os.path.dirname(j.path), 'files')
        kept = {os.path.relpath(os.path.join(at, name), files) for at, _, names in os.walk(files) for name in names}
        assert kept == {'some/where/a.pt', 'some/where/b.pt', 'where/a.pt'}, kept
        assert lib.only(folder + '/runs', 'child', 'stands').series('x') == [(0, 1.0)]
        out, _ = run_shim(folder, '-m', os.path.basename(program(folder, 'again', AGAIN))[:-3])
        assert out == 'True 41\n', out
        first, second = lib.journals(folder + '/runs', 'rows', 'stands')
        assert (second.header['run_id'], second.header['segment'], second.series('loss')) == (first.header['run_id'], 1, [(41, 0.5)]), second.header
        assert not lib.journals(folder + '/runs', 'off')
        assert 'nowhere.py: not a file' in run_shim(folder, 'nowhere.py', status=2)[1]
        assert 'usage:' in run_shim(folder, status=2)[1]
    print('wandb_shim: ok')


main()
