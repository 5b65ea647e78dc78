# SPDX-License-Identifier: Apache-2.0
"""`python -m dptrack.importers`: a repository written by Aim 3.29.1, projects of trackio 0.43.0, and W&B's API as the client wandb
0.31.0 calls it (a server here answers): every run, param, point, tag, picture and file is imported, a repeat adds nothing, skipped data
are listed. Queries become pandas data frames. Run by tests/python/all in an environment with aim, trackio, pandas and wandb."""
import contextlib
import datetime
import gzip
import http.server
import json
import os
import sqlite3
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402
from media import WAV, png  # noqa: E402
from told import Server  # noqa: E402

PROGRAM = os.path.join(lib.BUILD, 'dptrack')


def bring(folder, *words, status=0, **more):
    env = lib.environment(os.path.join(folder, 'runs'), DPTRACK_PROGRAM=PROGRAM, PYTHONWARNINGS='ignore', **more)
    done = subprocess.run([sys.executable, '-m', 'dptrack.importers', *words], cwd=folder, env=env, capture_output=True, text=True, timeout=lib.LIMIT_S)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done.stdout if status == 0 else done.stderr


class Brought:
    """What a store returns about its runs."""

    def __init__(self, server):
        self.server = server
        self.runs = {r['name']: r for r in self.ask('runs', limit=100)['runs']}

    def ask(self, what, **query):
        import urllib.parse
        import urllib.request
        with urllib.request.urlopen('%s/api/v1/%s?%s' % (self.server.url, what, urllib.parse.urlencode(query))) as reply:
            data = reply.read()
            return json.loads(data) if reply.headers['Content-Type'].startswith('application/json') else data

    def points(self, name):
        rows = self.ask('export/series.jsonl', run=self.runs[name]['id']).decode().splitlines()
        out = {}
        for p in map(json.loads, rows):
            out.setdefault(p['key'], []).append((p['step'], p['wall_time'], p['value']))
        return out

    def media(self, name):
        run = self.runs[name]['id']
        return {(m['key'], m['step']): (m['kind'], self.ask('runs/%s/media/%s' % (run, m['content'])))
                for m in self.ask('runs/%s/media' % run, limit=1000)['media']}

    def file(self, name, path):
        return self.ask('runs/%s/artifacts/%s' % (self.runs[name]['id'], path))

    def whole(self):
        """All data of the store, to compare with a later state."""
        return {n: (r['id'], r['status'], r['params'], r['tags'], self.points(n), sorted(map(str, self.media(n)))) for n, r in self.runs.items()}


def repeated(folder, words, check, **more):
    """Imports twice; check(Brought) is called after both imports, which give the same."""
    said = bring(folder, *words, **more)
    seen = []
    for _ in range(2):
        with Server(os.path.join(folder, 'runs')) as server:
            brought = Brought(server)
            check(brought)
            seen.append(brought.whole())
        assert '0 files' in bring(folder, *words, **more), 'a repeat imports no file again'
    assert seen[0] == seen[1], 'a repeat changes nothing'
    return said


# ---- Aim ----

AIM = '''
import sys
import aim, numpy
repo = aim.Repo.from_path(sys.argv[1], init=True)
run = aim.Run(repo=repo, experiment='vision', system_tracking_interval=None, log_system_params=True)
run.name, run.description = 'first', 'a note'
run.add_tag('t1')
run['hparams'] = {'lr': 0.1, 'deep': {'n': [1, 2]}, 'flag': True, 'none': None}
for step in range(300):
    run.track(1 / (step + 1), name='loss', step=step, context={'subset': 'train'})
    run.track(step / 2, name='acc', step=step, context={'head': 3})
run.track(float('nan'), name='loss', step=300, context={'subset': 'train'})
pixels = numpy.arange(60, dtype=numpy.uint8).reshape(4, 5, 3)
run.track(aim.Image(pixels, caption='said'), name='img', step=3)
run.track([aim.Image(pixels), aim.Image(pixels + 1)], name='imgs', step=4)
run.track(aim.Text('hello'), name='text', step=2)
run.track(aim.Audio(sys.argv[2], format='wav'), name='sound', step=1)
run.track(aim.Distribution(hist=numpy.array([1, 0, 4]), bin_range=(-1, 2)), name='weights', step=5)
run.set_artifacts_uri('file://' + sys.argv[3])
run.log_artifact(sys.argv[2], name='kept.wav', block=True)
run.close()
other = aim.Run(repo=repo, experiment='vision', system_tracking_interval=None, capture_terminal_logs=False)
other.name = 'second'
other.track(1.5, name='loss', step=0)
other.archived = True  # an archived run keeps its points (aim#3105, #198)
other.close()
print(run.hash)
'''

AIM_MORE = '''
import sys
import aim
run = aim.Run(sys.argv[2], repo=sys.argv[1], system_tracking_interval=None, capture_terminal_logs=False)
run.track(0.25, name='loss', step=301, context={'subset': 'train'})
run.close()
'''


def of_aim(folder):
    wav, store = os.path.join(folder, 'sound.wav'), os.path.join(folder, 'artifacts')
    with open(wav, 'wb') as f:
        f.write(WAV)
    os.makedirs(store)
    out, _ = lib.run(os.path.join(folder, 'runs'), AIM, folder, wav, store, MY_TOKEN='t0ps3cret-value')
    name = out.split()[-1]

    def check(brought):
        first = brought.runs['first']
        assert (first['experiment'], first['status'], first['tags']) == ('vision', 'finished', {'t1': '', 'aim.run_hash': name}), first
        assert first['params'] == {'hparams.lr': '0.1', 'hparams.deep.n': '[1,2]', 'hparams.flag': 'true', 'hparams.none': 'null'}, first['params']
        assert brought.ask('runs/' + first['id'])['notes'] == 'a note'
        code = {c['name']: c['text'] for c in brought.ask('runs/%s/code' % first['id'])['code']}
        assert 'aim==3.29.1' in code['packages'] and 't0ps3cret' not in json.dumps(brought.ask('runs/' + first['id'])), code
        points = brought.points('first')
        assert set(points) == {'train/loss', 'acc{head=3}'}, set(points)
        assert [p[0::2] for p in points['train/loss']] == [(s, 1 / (s + 1)) for s in range(300)] + [(300, 'NaN')]
        assert [p[0::2] for p in points['acc{head=3}']] == [(s, s / 2) for s in range(300)]
        media = brought.media('first')
        assert {k: v[0] for k, v in media.items()} == {('img', 3): 'image', ('img/caption', 3): 'text', ('imgs/0', 4): 'image', ('imgs/1', 4): 'image',
                                                       ('text', 2): 'text', ('sound', 1): 'audio', ('weights', 5): 'histogram'}, media
        assert media['text', 2][1] == b'hello' and media['img', 3][1] == media['imgs/0', 4][1] != media['imgs/1', 4][1] and media['sound', 1][1] == WAV
        assert media['weights', 5][1] == {'edges': [-1, 0, 1, 2], 'counts': [1, 0, 4]}, media['weights', 5]
        assert brought.file('first', 'kept.wav') == WAV
        assert [p[0::2] for p in brought.points('second')['loss']] == [(0, 1.5)]

    said = repeated(folder, ['aim', folder], check)
    assert '2 runs, 602 points, 1 file' in said and 'environment variables' in said, said
    lib.run(os.path.join(folder, 'runs'), AIM_MORE, folder, name)
    bring(folder, 'aim', os.path.join(folder, '.aim'))
    with Server(os.path.join(folder, 'runs')) as server:
        grown = Brought(server).points('first')['train/loss']
        assert [p[0::2] for p in grown][-2:] == [(300, 'NaN'), (301, 0.25)] and len(grown) == 302, 'a run that has grown'
    with open(os.path.join(folder, '.aim', 'seqs', 'chunks', name, 'CURRENT'), 'w') as f:
        f.write('damaged')
    said = bring(folder, 'aim', folder)
    assert '1 run,' in said and 'run %s, which cannot be read' % name in said, said
    assert 'not an Aim repository' in bring(folder, 'aim', store, status=2)
    return said.split('\n')[0]


# ---- trackio ----

TRACKIO = '''
import sys
import numpy, trackio
def write(name, **more):
    run = trackio.init(project='vision-1', name=name, embed=False, **more)
    for step in range(200):
        trackio.log({'loss': 1 / (step + 1), 'deep': {'er': step}})
    return run
run = write('first', config={'lr': 0.1, 'deep': {'n': [1, 2]}, 'flag': True}, group='g')
trackio.log({'odd': float('nan'), 'low': float('-inf')}, step=300)
trackio.log({'img': trackio.Image(numpy.full((4, 5, 3), 7, numpy.uint8), caption='said'), 'weights': trackio.Histogram(np_histogram=([1, 2], [0, 0.5, 1])),
             'rows': trackio.Table(columns=['a', 'b'], data=[[1, 'x'], [2.5, 'y']]), 'words': trackio.Markdown('a *b*')}, step=301)
trackio.alert('high', text='the loss', level=trackio.AlertLevel.WARN)
trackio.finish()
write('second')
trackio.finish()
'''


def of_trackio(folder):
    store = os.path.join(folder, 'store')
    os.makedirs(store)
    lib.run(os.path.join(folder, 'runs'), TRACKIO, TRACKIO_DIR=store, HF_HUB_OFFLINE='1', HOME=folder)
    with contextlib.closing(sqlite3.connect(os.path.join(store, 'vision-1.db'))) as db:
        rows = db.execute("SELECT step, timestamp FROM metrics WHERE run_name = 'first' ORDER BY id").fetchall()

    def check(brought):
        first = brought.runs['first']
        assert (first['experiment'], first['status'], first['params']) == ('vision-1', 'finished', {'lr': '0.1', 'deep.n': '[1,2]', 'flag': 'true'}), first
        assert first['tags']['trackio.group'] == 'g', first['tags']
        points = brought.points('first')
        want = [(step, datetime.datetime.fromisoformat(at).timestamp(), 1 / (step + 1)) for step, at in rows[:200]]
        assert points['loss'] == want and [p[0::2] for p in points['deep.er']] == [(s, s) for s in range(200)], points['loss'][:3]
        assert [p[0::2] for p in points['odd'] + points['low']] == [(300, 'NaN'), (300, '-Infinity')], points
        media = brought.media('first')
        assert {k: v[0] for k, v in media.items()} == {('img', 301): 'image', ('img/caption', 301): 'text', ('weights', 301): 'histogram', ('rows', 301): 'table',
                                                       ('words', 301): 'text'}, media
        assert media['weights', 301][1] == {'edges': [0, 0.5, 1], 'counts': [1, 2]} and media['words', 301][1] == b'a *b*', media
        assert media['rows', 301][1] == {'rows': [['a', 'b'], ['1', 'x'], ['2.5', 'y']]}, media['rows', 301]
        picture, = (os.path.join(at, name) for at, _, names in os.walk(store) for name in names if name.endswith('.png'))
        with open(picture, 'rb') as f:
            assert media['img', 301][1] == f.read()
        alerts = brought.ask('runs/%s/alerts' % first['id'])['alerts']
        assert [(a['title'], a['text']) for a in alerts] == [('high', 'the loss')], alerts
        assert [p[0::2] for p in brought.points('second')['loss']] == [(s, 1 / (s + 1)) for s in range(200)]

    said = repeated(folder, ['trackio', store], check)
    assert said.startswith('2 runs, '), said
    env = lib.environment(os.path.join(folder, 'other'), DPTRACK_PYTHON=sys.executable)
    done = subprocess.run([PROGRAM, 'import', os.path.join(store, 'vision-1.db'), '--logdir', os.path.join(folder, 'other')], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split(' from ')[0].split(', ')[:2] == said.split(', ')[:2], done
    assert "dptrack.db: a SQLite file without trackio's table" in bring(folder, 'trackio', os.path.join(folder, 'runs'), status=2)
    return said.split('\n')[0]


# ---- W&B ----

ROWS = [{'loss': 1 / (s + 1), 'deep': {'er': s}, '_step': s, '_timestamp': 1700000000.5 + s, '_runtime': s} for s in range(50)]
ROWS[3].update(img={'_type': 'image-file', 'path': 'media/images/a.png', 'width': 3, 'height': 2, 'format': 'png'}, word='text')
ROWS[4].update({'hist': {'_type': 'histogram', 'values': [1, 2], 'bins': [0, 0.5, 1]}, 'loss': 'NaN'})
ROWS[5].update(rows={'_type': 'table-file', 'path': 'media/table/t.json', 'ncols': 1, 'nrows': 1})
FILES = {'saved.txt': b'saved\n', 'media/images/a.png': png(2), 'media/table/t.json': b'{"columns": ["a"], "data": [[1.5]]}'}
NO_MORE = {'endCursor': None, 'hasNextPage': False}


class Api(http.server.BaseHTTPRequestHandler):
    """Answers the client's requests, by the fields of W&B's schema that its queries name."""

    def log_message(self, *_):
        pass

    def reply(self, data, kind='application/json'):
        self.send_response(200)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.reply(FILES[self.path[len('/files/'):]], 'application/octet-stream')

    def run(self, asked):
        names = asked.get('fileNames') or list(FILES)
        files = [{'node': {'id': n, 'name': n, 'url': 'http://127.0.0.1:%d/files/%s' % (self.server.server_address[1], n), 'directUrl': None,
                           'sizeBytes': len(FILES[n]), 'mimetype': '', 'updatedAt': None, 'md5': ''}, 'cursor': n} for n in names if n in FILES]
        low, high = asked.get('minStep', 0), asked.get('maxStep', 1 << 60)
        lines = [{'node': {'number': n, 'timestamp': '2023-11-14T22:13:%02d.000Z' % (20 + n), 'level': 'info', 'label': '', 'line': 'line %d' % n}} for n in range(3)]
        keys = {'sets': [], 'keys': {'loss': {'typeCounts': [{'type': 'number', 'count': 50}], 'monotonic': False}}, 'lastStep': 49}
        return {'id': 'Uid', 'projectId': '7', 'name': 'abcd1234', 'displayName': 'first', 'sweepName': None, 'state': 'crashed', 'group': 'g', 'jobType': None,
                'config': json.dumps({'lr': {'value': 0.1}, 'deep': {'value': {'er': [1, 2]}}, '_wandb': {'value': {}}}), 'commit': None, 'readOnly': False,
                'tags': ['t1'], 'createdAt': '2023-11-14T22:13:20Z', 'heartbeatAt': '2023-11-14T22:15:00Z', 'description': 'd', 'notes': 'a note',
                'systemMetrics': '{}', 'summaryMetrics': json.dumps({'loss': 0.02, 'best': 0.01, 'verdict': 'good', '_step': 49}), 'historyLineCount': 50,
                'user': {'name': 'ada', 'username': 'ada'}, 'historyKeys': keys, 'parquetHistory': {'parquetUrls': [], 'liveData': ROWS},
                'history': [json.dumps(r) for r in ROWS if low <= r['_step'] < high], 'fileCount': len(FILES), 'files': {'edges': files, 'pageInfo': NO_MORE},
                'logLineCount': 3, 'logLines': {'edges': lines, 'pageInfo': NO_MORE}, 'artifacts': {'totalCount': 0, 'edges': [], 'pageInfo': NO_MORE}}

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        if not self.path.endswith('/graphql'):
            return self.reply(b'')
        asked = json.loads(gzip.decompress(body) if self.headers.get('Content-Encoding') == 'gzip' else body)
        run = self.run(asked.get('variables') or {})
        project = {'id': 'P', 'internalId': '7', 'runCount': 1, 'readOnly': False, 'run': run,
                   'runs': {'edges': [{'node': run, 'cursor': 'c'}], 'pageInfo': {'endCursor': 'c', 'hasNextPage': False}}}
        if (asked.get('variables') or {}).get('project', 'vision') != 'vision':
            project = None
        viewer = {'id': 'V', 'username': 'ada', 'email': 'a@b', 'entity': 'ada', 'admin': False, 'flags': '{}', 'teams': {'edges': []}}
        self.reply(json.dumps({'data': {'viewer': viewer, 'serverInfo': {'features': []}, 'project': project}}).encode())


def of_wandb(folder):
    service = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Api)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    own = {name: os.path.join(folder, name.lower()) for name in ('WANDB_DIR', 'WANDB_CACHE_DIR', 'WANDB_CONFIG_DIR')}
    for path in own.values():
        os.makedirs(path)
    own.update(WANDB_BASE_URL='http://127.0.0.1:%d' % service.server_address[1], WANDB_API_KEY='0' * 40, WANDB_SILENT='true')

    def check(brought):
        run = brought.runs['first']
        assert (run['experiment'], run['status'], run['start_time'], run['end_time']) == ('vision', 'failed', 1700000000000, 1700000100000), run
        assert run['params'] == {'lr': '0.1', 'deep.er': '[1,2]'}, run['params']
        assert run['tags'] == {'t1': '', 'wandb.run_id': 'abcd1234', 'wandb.entity': 'ada', 'wandb.group': 'g', 'verdict': 'good'}, run['tags']
        points = brought.points('first')
        assert points.pop('best') == [(49, 1700000049.5, 0.01)], points
        want = [(r['_step'], r['_timestamp'], r['loss']) for r in ROWS]
        assert points == {'loss': want, 'deep.er': [(r['_step'], r['_timestamp'], r['deep']['er']) for r in ROWS]}, points
        assert brought.media('first') == {('img', 3): ('image', png(2)), ('hist', 4): ('histogram', {'edges': [0, 0.5, 1], 'counts': [1, 2]}),
                                          ('rows', 5): ('table', {'rows': [['a'], ['1.5']]}), ('word', 3): ('text', b'text')}, brought.media('first')
        assert [x['text'] for x in brought.ask('runs/%s/console' % run['id'])['lines']] == ['line 0', 'line 1', 'line 2']
        assert brought.file('first', 'saved.txt') == b'saved\n' and brought.ask('runs/' + run['id'])['notes'] == 'a note'

    said = repeated(folder, ['wandb', 'ada/vision'], check, **own)
    assert '1 run, 101 points, 1 file' in said and 'which W&B returns only as samples' in said, said
    assert 'ada/none' in bring(folder, 'wandb', 'ada/none', status=2, **own)
    assert 'nor ENTITY/PROJECT' in bring(folder, 'wandb', 'ada', status=2, **own)
    service.shutdown()
    return said.split('\n')[0]


# ---- queries ----

FRAMES = '''
import dptrack, math
for n in range(3):
    with dptrack.init(experiment='q', run_name='run%d' % n, config={'lr': 0.1 * n, 'name': '0%d' % n}, tags={'team': 'a'}) as run:
        for step in range(1, 6):
            run.log({'loss': n + 1 / step, 'acc': math.nan if step == 3 else float(step)}, step=step)
runs = dptrack.runs('q', order_by='metrics."loss".min DESC')
table = runs.to_pandas()
assert list(table['name']) == ['run2', 'run1', 'run0'] and list(table['params.lr']) == [0.2, 0.1, 0.0], table
assert list(table['params.name']) == ['02', '01', '00'], table
assert list(table['metrics.loss']) == [2.2, 1.2, 0.2] and set(table['status']) == {'finished'} and set(table['tags.team']) == {'a'}
history = runs[0].history(['loss', 'acc']).to_pandas().set_index('step')
assert list(history.index) == [1, 2, 3, 4, 5] and history['acc'].isna().tolist() == [False, False, True, False, False]
assert history['loss'].tolist() == [2 + 1 / s for s in range(1, 6)]
points = runs[0].points('loss').to_pandas()
assert points['value'].tolist() == history['loss'].tolist() and points['wall_time'].is_monotonic_increasing
assert dptrack.experiments().to_pandas().set_index('name').loc['q', 'run_count'] == 3
print('frames')
'''


def as_frames(folder):
    out, _ = lib.run(os.path.join(folder, 'runs'), FRAMES, DPTRACK_PROGRAM=PROGRAM)
    assert 'frames' in out, out
    return 'runs, history, points, experiments'


if __name__ == '__main__':
    lib.choose(of_aim, of_trackio, of_wandb, as_frames)
