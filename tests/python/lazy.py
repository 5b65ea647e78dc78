#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`import dptrack` alone brings everything, also where no other package is installed: what needs one names it when it is
called. The folder of runs is the argument, else DPTRACK_RUNS_DIR, else runs, in the package and in both programs; recorded
runs are read with and without the program dptrack, with the same result. Signatures are explicit and documented."""
import inspect
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

PROGRAM = os.path.join(lib.BUILD, 'dptrack')
TRAIN = os.path.join(lib.BUILD, 'dptrain')

# Every way to use a package that is not there, and the package's name in the message.
CALLS = {'dptrack.torch.instrument(None, None)': 'torch', 'dptrack.watch(None)': 'torch', 'dptrack.transformers.Callback(experiment="x")': 'transformers',
         'dptrack.lightning.Logger()': 'lightning', 'dptrack.keras.Callback(every=2)': 'keras', 'dptrack.accelerate.Tracker()': 'accelerate',
         'dptrack.optuna.track()': 'optuna', 'dptrack.optuna.run_of(None)': 'optuna', 'dptrack.runs().to_pandas()': 'pandas'}

RECORD = '''
import dptrack
for n in range(3):
    with dptrack.init(experiment='e%d' % (n // 2), run_name='run%d' % n, config={'lr': 0.1 * (n + 1), 'same': 1}, tags={'team': 'a'}) as run:
        for step in range(1, 6):
            run.log({'loss': n + 1 / step, 'acc': float('nan') if step == 3 else float(step)}, step=step)
        if n == 1:
            run.finish('failed', 'on purpose')
with dptrack.init(experiment='e0', run_id=run.id, resume=True) as again:
    again.log({'loss': -1.0}, step=4)
'''

READ = '''
import dptrack, json, math
from dptrack import _query
def plain(value):
    return 'NaN' if isinstance(value, float) and math.isnan(value) else value
out = []
for run in sorted(dptrack.runs(), key=lambda run: run.name):
    metrics = {key: {k: plain(sums[k]) for k in ('first', 'last', 'min', 'max')} for key, sums in run.metrics.items() if not key.startswith('system/')}
    points = [[p['key'], p['rank'], p['segment'], p['step'], plain(p['value'])] for p in run.points(rank=-1)]
    out.append([run.id, run.name, run.experiment, run.status, run.params, run.tags, metrics, points, len(run.points('loss', segments='all')),
                [[row['step'], row.get('loss')] for row in run.history('loss')]])
print(type(_query._source(None, None)).__name__, json.dumps(out))
print(json.dumps(dptrack.compare(*dptrack.runs('e0')).params), json.dumps([[row['name'], row['run_count']] for row in dptrack.experiments() if row['run_count']]))
print(dptrack.compare('run0', dptrack.runs('e0')[0].id[:8]))
'''


def in_one_import(folder):
    code = 'import sys; sys.path.insert(0, sys.argv[1]); import os; before = set(sys.modules); import dptrack; print(*sorted({*sys.modules} - before))'
    loaded = subprocess.run([sys.executable, '-I', '-c', code, lib.PACKAGE], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == ['__future__', 'dptrack', 'dptrack._run'], 'import dptrack takes no time for other modules: %s' % loaded
    runs = folder + '/runs'
    os.makedirs(runs)
    code = 'import sys\nsys.path = [p for p in sys.path if "site-packages" not in p and "dist-packages" not in p]\nimport dptrack\n'
    for call, package in CALLS.items():
        code += 'try:\n    %s\nexcept dptrack.Error as error:\n    print(error)\nelse:\n    raise AssertionError(%r)\n' % (call, call)
    out, _ = lib.run(runs, code, DPTRACK_PROGRAM=PROGRAM)
    said = out.strip().split('\n')
    assert len(said) == len(CALLS), out
    for (call, package), line in zip(CALLS.items(), said):
        assert 'requires the package %s: pip install %s' % (package, package) in line, (call, line)
    lib.run(runs, 'import sys, dptrack\ndir(dptrack)\nassert not {"torch", "json", "ctypes", "subprocess"} & set(sys.modules)\nfrom dptrack import *\n')
    return '%d calls' % len(CALLS)


def a_package_that_cannot_be_imported(folder):
    """Its own message is passed on."""
    os.makedirs(folder + '/broken')
    with open(folder + '/broken/keras.py', 'w') as f:
        f.write('raise ImportError("no backend")')
    out, _ = lib.run(folder + '/runs', 'import dptrack\ntry:\n    dptrack.keras.Callback()\nexcept dptrack.Error as error:\n    print(error)\n',
                     PYTHONPATH=lib.PACKAGE + os.pathsep + folder + '/broken')
    assert 'requires the package keras, which cannot be imported: no backend' in out, out


def read(folder, **more):
    out, err = lib.run(folder + '/runs', READ, **more)
    first, second, third = out.strip().split('\n')
    return first.partition(' ')[0], json.loads(first.partition(' ')[2]), second, third


def with_and_without_the_program(folder):
    lib.run(folder + '/runs', RECORD)
    nowhere = folder + '/empty'
    os.makedirs(nowhere)
    source, want, params, compared = read(folder, DPTRACK_PROGRAM=PROGRAM)
    assert source == '_Folder' and len(want) == 3 and want[2][8] == 6, (source, want)
    source, got, own_params, own = read(folder, PATH=nowhere)
    assert source == '_Journals' and got == want, (source, got, want)
    assert (own_params, own) == (params, compared) and '"lr": [' in params and '"same"' not in params, (own_params, params)
    refused, _ = lib.run(folder + '/runs', 'import dptrack\ntry:\n    dptrack.runs(filter="params.lr = 1")\nexcept dptrack.Error as error:\n    print(error)\n', PATH=nowhere)
    assert 'filter requires the program dptrack' in refused and 'on PATH' in refused and 'DPTRACK_PROGRAM' in refused, refused
    missing, _ = lib.run(folder + '/none', 'import dptrack\ntry:\n    dptrack.runs()\nexcept dptrack.Error as error:\n    print(error)\n', PATH=nowhere)
    assert 'no folder' in missing, missing
    # the program of the interpreter's own environment is found without PATH
    subprocess.run([sys.executable, '-m', 'venv', '--without-pip', folder + '/venv'], check=True)
    os.symlink(PROGRAM, folder + '/venv/bin/dptrack')
    assert read(folder, PATH=nowhere, python=folder + '/venv/bin/python')[:2] == ('_Folder', want)
    return '3 runs, one restarted'


def dptrack(*words, status=0, **env):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, env=lib.environment('', **env), timeout=60, cwd=env.get('HOME'))
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done.stdout + done.stderr


def names(*words, **env):
    return {run['name'] for run in json.loads(dptrack('ls', '--json', *words, **env))['runs']}


def one_folder_for_all(folder):
    a, b = folder + '/a', folder + '/b'
    for place, name in ((a, 'in-a'), (b, 'in-b'), (folder + '/runs', 'in-runs')):
        lib.run(folder + '/x', 'import dptrack\nwith dptrack.init(runs_dir=%r, run_name=%r) as run: run.log({"x": 1})' % (place, name))
    assert names(DPTRACK_RUNS_DIR=a) == {'in-a'} and names(HOME=folder) == {'in-runs'}
    for flag in ('--logdir', '--runs-dir', '--runs_dir'):
        assert names(flag, b, DPTRACK_RUNS_DIR=a) == {'in-b'} and names(flag + '=' + b, DPTRACK_RUNS_DIR=a) == {'in-b'}
    assert 'use --logdir or DPTRACK_RUNS_DIR' in dptrack('ls', status=2, DPTRACK_RUNS_DIR=folder + '/none')
    if not os.path.exists(TRAIN):
        return 'without dptrain'
    for words, env, want in (((), {'DPTRACK_RUNS_DIR': a}, a), (('--logdir', b), {'DPTRACK_RUNS_DIR': a}, b), (('--runs-dir', b), {}, b), ((), {}, folder + '/runs')):
        before = set(os.listdir(want))
        done = subprocess.run([TRAIN, '--synthetic', '--model', 'resnet20', '--max-steps', '1', '-b', '2', '--experiment', 'trained', *words],
                              capture_output=True, text=True, env=dict(lib.environment(''), DPTRACK_RUNS_DIR='', **env) if not env else lib.environment('', **env),
                              cwd=folder, timeout=250)
        assert done.returncode == 0 and 'trained' in set(os.listdir(want)) - before, (words, env, done.stdout[-500:], done.stderr[-500:])
        shutil.rmtree(want + '/trained')
    return 'both programs and the package'


def signatures(folder):
    """No **options in what users call; a docstring with what its signature has."""
    sys.path.insert(0, lib.PACKAGE)
    import dptrack as package
    for module in ('torch', 'transformers', 'lightning', 'keras', 'accelerate', 'optuna'):
        getattr(package, module)
    public = [getattr(package, name) for name in package.__all__ if name not in ('Error', 'Run', 'RecordedRun', 'Comparison', 'active')]
    public += [package.torch.instrument, package.transformers.Callback, package.lightning.Logger, package.keras.Callback, package.accelerate.Tracker,
               package.optuna.track, package.optuna.run_of]
    public += [getattr(package.Run, name) for name in ('log', 'log_rank', 'define_metric', 'alert', 'code', 'keep', 'tag', 'note', 'flush', 'finish')]
    public += [getattr(package.RecordedRun, name) for name in ('points', 'history')] + [package.Comparison.to_pandas]
    for thing in public:
        text = inspect.getdoc(thing) or ''
        signature = inspect.signature(thing.__init__ if inspect.isclass(thing) else thing)
        wanted = [p for p in signature.parameters.values() if p.name != 'self']
        assert not [p for p in wanted if p.kind == p.VAR_KEYWORD], thing
        assert 'Example:' in text and '>>> ' in text, thing
        described = re.findall(r'^    (\w+): ', text.partition('Args:')[2].partition('\n\n')[0], re.M)
        assert described == [p.name for p in wanted], (thing, described, [p.name for p in wanted])
        assert inspect.isclass(thing) or signature.return_annotation in ('None', None) or 'Returns:' in text, thing
    assert os.path.exists(os.path.join(lib.PACKAGE, 'dptrack', 'py.typed'))
    return '%d documented' % len(public)


if __name__ == '__main__':
    lib.choose(in_one_import, a_package_that_cannot_be_imported, with_and_without_the_program, one_folder_for_all, signatures)
