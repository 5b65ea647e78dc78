# SPDX-License-Identifier: Apache-2.0
"""Offline folders that wandb 0.31.0 writes, imported: they hold what the program logged. Run by tests/python/all in an environment with
wandb and numpy."""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import lib  # noqa: E402
from told import Server  # noqa: E402


def python(*words, cwd, **more):
    env = lib.environment(os.path.join(cwd, 'runs'), WANDB_MODE='offline', WANDB_DIR=cwd, WANDB_SILENT='true', DPTRACK_PYTHON=sys.executable, **more)
    done = subprocess.run([sys.executable, *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=lib.LIMIT_S)
    assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-3000:])
    return done.stdout


def store(folder):
    """A fresh offline folder made by W&B, imported and compared with what its own classes read."""
    samples = os.path.join(lib.SRC, 'tests', 'cli', 'import')
    out = ''
    for script in ('make_wandb.py', 'from_wandb.py'):
        out = python(os.path.join(samples, script), folder, cwd=folder, srcdir=lib.SRC, builddir=lib.BUILD)
    return out.strip().split('\n')[-1]


PROGRAM = '''
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
run.alert('high', 'the loss')
run.summary['best'] = 0.5
run.summary['loss'] = 0.01
wandb.summary.word = 'end'
run.finish()
run = wandb.init(project='made', id='doors', resume='allow')  # without a name it keeps the first one
run.log({'loss': 0.125}, step=30)
run.finish()
'''


def program(folder):
    """Nested keys, steps of other metrics, lists of pictures, what is set in the summary, hidden keys, a resumed run."""
    path, runs = os.path.join(folder, 'program.py'), os.path.join(folder, 'runs')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(PROGRAM)
    python(path, cwd=folder)
    env = lib.environment(runs, DPTRACK_PYTHON=sys.executable)
    done = subprocess.run([os.path.join(lib.BUILD, 'dptrack'), 'import', os.path.join(folder, 'wandb'), '--logdir', runs], env=env, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, done
    with Server(runs) as server:
        run, = lib.ask(server.url, 'runs')['runs']
        whole = server.get(run['id'])
        points = [(p['key'], p['step'], str(p['value'])) for p in lib.ask(server.url, 'series', run=run['id'], rank=-1, segments='all')['points']]
        media = sorted((m['key'], m['kind'], m['step']) for m in server.get(run['id'], 'media')['media'])
        alerts = [(a['title'], a['text']) for a in server.get(run['id'], 'alerts')['alerts']]
    assert (run['name'], run['experiment'], run['status'], whole['notes']) == ('after', 'made', 'finished', 'first'), run
    assert run['params'] == {'lr': '0.2', 'small': '1e-05', 'n': '3', 'yes': 'true', 'none': 'null', 'empty': '{}', 'deep.er': '[1,"x",null]',
                             'deep.two.three': '2.5', 'api_key': '(hidden)', 'pad_token': '<pad>', 'words': 'a b'}, run['params']
    tags = {k: v for k, v in run['tags'].items() if k != 'wandb.run_id'}
    assert tags == {'one': '', 'two': '', 'wandb.group': 'g', 'wandb.job_type': 'j', 'summary.loss': '0.01', 'word': 'end'}, run['tags']
    want = [('loss', 2 * i, 1 / (i + 1)) for i in range(6)] + [('loss', 30, 0.125)] + [('deep.er.est', 2 * i, i) for i in range(6)]
    want += [('_own', 2 * i, i) for i in range(6)] + [('flag', 2 * i, int(i % 2 == 0)) for i in range(6)] + [('val/acc', 10 * i, i / 10) for i in range(6)]
    want += [('epoch', 2 * i + 1, 10 * i) for i in range(6)] + [('odd', 20, 'NaN'), ('inf', 20, '-Infinity'), ('best', 21, 0.5)]
    got = [p for p in points if not p[0].startswith('system/')]
    want = [(key, step, str(int(v) if isinstance(v, float) and v == int(v) else v)) for key, step, v in want]
    assert sorted(got) == sorted(want), (sorted(got), sorted(want))
    assert media == [('h', 'histogram', 21), ('ims/0', 'image', 21), ('ims/1', 'image', 21), ('one', 'image', 21), ('said', 'text', 20), ('t', 'table', 21)], media
    assert alerts == [('high', 'the loss')], alerts
    return '%d points' % len(got)


if __name__ == '__main__':
    lib.choose(store, program)
