#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real TensorBoard (2.21.0 from PyPI, in build/venv/tensorboard) reads every scalar and all hparams of a run written
by libdptrack: its Python reader, and its server with the fast reader. The values equal those of `dptrack export`,
which equal those in the journal. Skipped where it cannot be installed."""
import csv
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import urllib.request

SRC = os.environ.get('srcdir', '.')
BUILD = os.environ.get('builddir', 'build')
VENV = os.path.join(BUILD, 'venv', 'tensorboard')
PYTHON = os.path.join(VENV, 'bin', 'python')
sys.path.insert(0, os.path.join(SRC, 'tests', 'tracker'))
import journal  # noqa: E402

SCRIPT = '''f64 lr 0.1
i64 batch 128
bool amp 1
param opt sgd
burst 3000 train/loss 1
log 1 odd/value nan
log 2 odd/value inf
log 3 odd/value -inf
log 4 odd/value 1e-300
log 1 größe/µ 3.4e38
rank 0 1 phase/step 0.125
rank 0 2 phase/step 0.25
note # A *note*
flush 5
%s
close 1
'''


def skip(reason):
    print('skipped: ' + reason)
    sys.exit(77)


def install():
    if os.path.exists(PYTHON) and not subprocess.run([PYTHON, '-c', 'import tensorboard'], capture_output=True).returncode:
        return
    made = subprocess.run([sys.executable, '-m', 'venv', VENV], capture_output=True, text=True)
    if made.returncode:
        skip('no virtual environment: ' + (made.stderr or made.stdout).strip().split('\n')[-1])
    got = subprocess.run([os.path.join(VENV, 'bin', 'pip'), 'install', '-q', '--timeout', '20', '--retries', '1',
                          'tensorboard==2.21.0', 'setuptools<81'], capture_output=True, text=True)
    if got.returncode:
        skip('tensorboard 2.21.0 cannot be installed: ' + got.stderr.strip().split('\n')[-1])


def record(runs, script, *options):
    out = subprocess.run([os.path.join(BUILD, 'tests', 'tracker', 'record'), 'runs_dir=' + runs, 'experiment=tb',
                          'run_name=first', 'url=', *options], input=script, capture_output=True, text=True, check=True)
    word = out.stdout.split('\n')[0].split(' ')
    assert word[0] == 'run' and 'closed 0 0' in out.stdout, out.stdout
    return word[1], word[2]


def recorded(folder):
    """{tag: [(step, wall time, value)]} of rank 0's journals, without what a later segment repeats."""
    points = {}
    for j in sorted((j for j in journal.journals(folder) if j.header['rank'] == 0), key=lambda j: j.header['segment']):
        if j.header['segment']:
            points = {t: [p for p in ps if p[0] < j.header['first_step']] for t, ps in points.items()}
        for p in j.points:
            points.setdefault(p[0], []).append((p[2], p[3], p[4]))
    return points


def exported(runs, run_id):
    """The same from the CSV export."""
    out = subprocess.run([os.path.join(BUILD, 'dptrack'), 'export', '--series', '--csv', '--logdir', runs, run_id],
                         capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    points = {}
    for row in csv.DictReader(out.stdout.splitlines()):
        if row['rank'] in ('-1', '0'):
            value = number(row['value'])
            points.setdefault(row['key'], []).append((int(row['step']), float(row['wall_time']), float(value)))
    return points


def equal_exactly(a, b):
    return repr(sorted(a.items())) == repr(sorted(b.items()))


def same(a, b):
    """Whether a equals b as a float32, which TensorBoard stores."""
    import struct
    try:
        b = struct.unpack('<f', struct.pack('<f', b))[0]
    except OverflowError:
        b = math.copysign(math.inf, b)
    return a == b or (a != a and b != b)


def check_python_reader(folder, want):
    code = '''
import json, sys
from tensorboard.backend.event_processing import event_accumulator
a = event_accumulator.EventAccumulator(sys.argv[1], size_guidance={k: 0 for k in event_accumulator.DEFAULT_SIZE_GUIDANCE})
a.Reload()
tags = a.Tags()
print(json.dumps({'scalars': {t: [[e.step, e.wall_time, repr(e.value)] for e in a.Scalars(t)] for t in tags['scalars']},
                  'tensors': tags['tensors'], 'plugins': {p: sorted(a.PluginTagToContent(p)) for p in ('hparams', 'text')}}))
'''
    out = subprocess.run([PYTHON, '-W', 'ignore', '-c', code, folder], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    got = json.loads(out.stdout)
    for tag, points in want.items():
        read = got['scalars'][tag]
        assert len(read) == len(points), (tag, len(read), len(points))
        for (step, wall, value), point in zip(read, points):
            assert step == point[0] and wall == point[1] and same(float(value), point[2]), (tag, step, value, point)
    assert set(got['scalars']) == set(want), set(got['scalars']) ^ set(want)
    assert got['plugins']['hparams'] == ['_hparams_/session_end_info', '_hparams_/session_start_info']
    assert got['plugins']['text'] == ['notes']
    print('python reader: %d scalars of %d tags, hparams, text' % (sum(map(len, want.values())), len(want)))


class Server:
    def __init__(self, logdir):
        self.log = tempfile.TemporaryFile('w+')
        self.process = subprocess.Popen([PYTHON, '-W', 'ignore', '-m', 'tensorboard.main', '--logdir', logdir, '--port', '0',
                                         '--load_fast=true', '--samples_per_plugin', 'scalars=100000', '--reload_interval', '1'],
                                        stdout=self.log, stderr=self.log)
        self.base = None

    def __enter__(self):
        end = time.time() + 60
        while not self.base and time.time() < end and self.process.poll() is None:
            time.sleep(0.2)
            self.log.seek(0)
            for word in self.log.read().split():
                if word.startswith('http://'):
                    self.base = word.rstrip('/')
        assert self.base, 'tensorboard did not start'
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)

    def get(self, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.base + path, data=data, headers={'Content-Type': 'application/json'})
        with urllib.request.urlopen(request, timeout=20) as reply:
            return json.loads(reply.read())


def number(value):
    return {'NaN': math.nan, 'Infinity': math.inf, '-Infinity': -math.inf}.get(value, value)


def check_server(runs, want, params):
    with Server(runs) as server:
        end = time.time() + 60
        tags = {}
        while time.time() < end and len(next(iter(tags.values()), ())) < len(want):
            time.sleep(0.5)
            tags = server.get('/data/plugin/scalars/tags')
        (run, read_tags), = tags.items()
        assert set(read_tags) == set(want), set(read_tags) ^ set(want)
        for tag, points in want.items():
            from urllib.parse import quote
            read = server.get('/data/plugin/scalars/scalars?run=%s&tag=%s' % (quote(run), quote(tag, safe='')))
            assert len(read) == len(points), (tag, len(read), len(points))
            for (wall, step, value), point in zip(read, points):
                assert step == point[0] and wall == point[1] and same(number(value), point[2]), (tag, step, value, point)
        groups = server.get('/data/plugin/hparams/session_groups',
                            {'experimentName': '', 'allowedStatuses': ['STATUS_UNKNOWN', 'STATUS_SUCCESS', 'STATUS_FAILURE',
                                                                       'STATUS_RUNNING'],
                             'colParams': [], 'startIndex': 0, 'sliceSize': 10})
        group, = groups['sessionGroups']
        assert group['hparams'] == params, group['hparams']
        assert group['sessions'][0]['status'] == 'STATUS_SUCCESS', group['sessions'][0]['status']
        metrics = {m['name']['tag'] for m in server.get('/data/plugin/hparams/experiment', {'experimentName': ''})['metricInfos']}
        assert 'train/loss' in metrics, metrics
    print('server with the fast reader: the same, hparams %s with %d metrics' % (params, len(metrics)))


def main():
    install()
    with tempfile.TemporaryDirectory() as runs:
        run_id, folder = record(runs, SCRIPT % '')
        record(runs, 'burst 10 train/loss 1\nrank 1 1 phase/step 1\nclose 0\n', 'run_id=' + run_id, 'rank=1')
        want = recorded(folder)
        assert equal_exactly(exported(runs, run_id), want), 'the export differs from the journal'
        check_python_reader(folder, want)
        check_server(runs, want, {'lr': 0.1, 'batch': 128, 'amp': True, 'opt': 'sgd'})
        # A restart from a checkpoint after step 2000: both readers drop the repeated steps.
        record(runs, 'burst 1500 train/loss 2001\nclose 1\n', 'run_id=' + run_id, 'reopen=1', 'first_step=2001')
        want = recorded(folder)
        assert len(want['train/loss']) == 3500 and equal_exactly(exported(runs, run_id), want)
        check_python_reader(folder, want)
    pictures = os.path.join(SRC, 'tests', 'python', 'with_pictures.py')
    subprocess.run([os.path.join(VENV, 'bin', 'python'), pictures, 'read_by_tensorboard'], check=True)
    print('passed')


if __name__ == '__main__':
    main()
