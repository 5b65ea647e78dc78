#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
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
assert wandb.config['lr'] == wandb.config.lr == 0.2 and wandb.config.get('none') is None and wandb.summary['c'] == 2
run.name, run.notes, run.tags = 'renamed', 'why', run.tags + ('more',)
wandb.summary.acc = 0.5
wandb.run.summary['text'], run.summary['c'] = 'end', 5
wandb.config.token, wandb.config['list'], wandb.config.nothing = 'abcdefgh1234', [1, 'x'], None
wandb.config.update({'odd': [{(1, 2): 3}], 'late': 1})
assert (run.name, run.notes, run.summary.acc, wandb.summary['c']) == ('renamed', 'why', 0.5, 5)
os.makedirs('some/where')
for name in ('a.pt', 'b.pt'):
    with open('some/where/' + name, 'w') as f:
        f.write(name)
assert wandb.save('some/where/*.pt') == ['some/where/a.pt', 'some/where/b.pt'] and wandb.save('nothing*') == []
assert run.save(os.path.abspath('some/where/a.pt'), base_path='some') == [os.path.abspath('some/where/a.pt')]
assert not hasattr(wandb, 'no_such_name') and not hasattr(run, 'no_such_name')
artifact = wandb.Artifact('model', type='model')
artifact.add_file('some/where/a.pt')
with artifact.new_file('made') as f:
    f.write('made')
assert run.log_artifact(artifact).wait() is artifact and os.path.isdir(run.use_artifact('model:latest').download())
wandb.log({'molecule': wandb.Molecule('x.pdb'), 'curve': wandb.plot.line(wandb.Table(['x'], [[1]]), 'x', 'y'), 'after': 1}, step=10)
table = wandb.Table(['x'])
table.add_row(1), table.add_data(2), table.add_column('y', [3, 4])
assert table.get_column('y') == [3, 4] and list(table.iterrows()) == [(0, [1, 3]), (1, [2, 4])] and table.columns == ['x', 'y']
table.cast('x', str), table.set_pk('x'), table.get_index()
assert not hasattr(table, 'no_such_name')
wandb.define_metric('loss', summary='mean'), wandb.define_metric('a', summary='min')
assert isinstance(wandb.Molecule('y.pdb'), wandb.Molecule) and not isinstance(1, wandb.Html)
from wandb.integration.lightgbm import wandb_callback
from wandb.sdk.data_types.trace_tree import Trace
wandb_callback()(None), Trace('t').add_child(1), wandb.Api().runs('e/p'), wandb.sweep({}), wandb.log(5), wandb.log({'odd': object()}, step=10)
called = []
wandb.agent('id', lambda: called.append(1), count=3)
assert called == [1]
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


STEPS = '''
import wandb
class Odd:
    items = None
run = wandb.init(project='steps', name='huge', tags='one word', mode='loud')
assert run.tags == ('one word',), run.tags
wandb.log({'a': 0})
for step in (10**30, -10**30, 'x', float('nan'), float('inf')):
    wandb.log({'b': 1}, step=step)
wandb.log({'a': 1}, step=10**12)
for step in range(5):
    wandb.log({'a': step}, step=step)
    wandb.log(Odd())
wandb.log({'c': 1})
for value in (10, 11):
    wandb.log({'a': value})
wandb.finish(exit_code='odd')
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
        assert err.count('step 3 is below the current step 7: this row and later ones like it are left out') == 1 and '1 row was left out' in err, err
        j = lib.only(folder + '/runs', 'rows', 'stands')
        want = {'loss': [(0, 1.0)], 'deep.er': [(0, 2.0)], 'a': [(1, 3.0)], 'b': [(1, 2.0)], 'c': [(7, 2.0)], 'epoch': [(9, 40.0)], 'val/acc': [(40, 0.5)], 'acc': [(10, 0.5)], 'after': [(10, 1.0)]}
        assert {key: j.series(key) for key in {p[0] for p in j.points} if not key.startswith('system/')} == want, j.points
        for name in ('Table.cast', 'Table.set_pk', 'Table.get_index', "define_metric(summary='mean')", 'Artifact', 'Molecule', 'plot.line', 'integration.lightgbm.wandb_callback', 'sdk.data_types.trace_tree.Trace', 'Api', 'sweep'):
            assert err.count('wandb.%s is not recorded' % name) == 1, (name, err)
        assert {k: j.params[k] for k in ('lr', 'deep.er', 'new', 'token', 'list', 'nothing', 'odd', 'late')} == {
            'lr': '0.2', 'deep.er': 1, 'new': 'x', 'token': '(hidden)', 'list': '[1,"x"]', 'nothing': 'null', 'odd': '[{(1, 2): 3}]', 'late': 1}, j.params
        assert j.statuses == [(2, 'exit code 3'), (2, '')], (j.params, j.statuses)
        assert j.tags == {'word': '', 'more': '', 'wandb.run_id': 'abc', 'wandb.group': 'g', 'dptrack.run_name': 'renamed', 'text': 'end',
                          'summary.c': '5'}, j.tags
        files = os.path.join(os.path.dirname(j.path), 'files')
        kept = {os.path.relpath(os.path.join(at, name), files) for at, _, names in os.walk(files) for name in names}
        assert kept == {'some/where/a.pt', 'some/where/b.pt', 'where/a.pt'}, kept
        assert lib.only(folder + '/runs', 'child', 'stands').series('x') == [(0, 1.0)]
        out, _ = run_shim(folder, '-m', os.path.basename(program(folder, 'again', AGAIN))[:-3])
        assert out == 'True 41\n', out
        first, second = lib.journals(folder + '/runs', 'rows', 'stands')
        assert (second.header['run_id'], second.header['segment'], second.series('loss')) == (first.header['run_id'], 1, [(41, 0.5)]), second.header
        assert not lib.journals(folder + '/runs', 'off')
        _, err = run_shim(folder, program(folder, 'steps', STEPS))
        assert err.count('below the current step') == 1 and 'step 0 is below the current step 1000000000000' in err and 'continue from 1000000000000' in err, err
        assert "mode 'loud' is taken as" in err, err
        assert '5 rows were left out' in err and err.count('expected a whole number of 64 bits') == 1 and err.count('wandb.log: not recorded') == 1, err
        assert lib.only(folder + '/runs', 'huge', 'steps').series('a') == [(0, 0.0), (10**12, 1.0), (10**12 + 1, 10.0), (10**12 + 2, 11.0)], err
        j = lib.only(folder + '/runs', 'huge', 'steps')
        assert 'one word' in j.tags and 'o' not in j.tags and j.statuses[0] == (2, 'exit code odd'), (j.tags, j.statuses)
        assert 'nowhere.py: not a file' in run_shim(folder, 'nowhere.py', status=2)[1]
        assert 'usage:' in run_shim(folder, status=2)[1]
    print('wandb_shim: ok')


main()
