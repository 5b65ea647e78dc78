# SPDX-License-Identifier: Apache-2.0
"""`python -m dptrack.importers`: a repository written by Aim 3.29.1, Parquet files in the schema of Neptune's
exporter, and W&B's API as the client wandb 0.31.0 calls it (a server here answers): every run, param, point, tag,
picture and file is imported, a repeat adds nothing, skipped data are listed. Queries become pandas data frames. Run by
tests/python/all in an environment with aim, pyarrow, pandas and wandb."""
import datetime
import decimal
import gzip
import http.server
import json
import os
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


# ---- Neptune ----

def parquet(path, rows):
    """Writes rows in the schema of neptune-exporter (its README: Parquet schema)."""
    import pyarrow
    import pyarrow.parquet
    types = {'project_id': pyarrow.string(), 'run_id': pyarrow.string(), 'attribute_path': pyarrow.string(), 'attribute_type': pyarrow.string(),
             'step': pyarrow.decimal128(18, 6), 'timestamp': pyarrow.timestamp('ms', 'UTC'), 'int_value': pyarrow.int64(),
             'float_value': pyarrow.float64(), 'string_value': pyarrow.string(), 'bool_value': pyarrow.bool_(),
             'datetime_value': pyarrow.timestamp('ms', 'UTC'), 'string_set_value': pyarrow.list_(pyarrow.string()),
             'file_value': pyarrow.struct([('path', pyarrow.string())]),
             'histogram_value': pyarrow.struct([('type', pyarrow.string()), ('edges', pyarrow.list_(pyarrow.float64())),
                                                ('values', pyarrow.list_(pyarrow.float64()))])}
    os.makedirs(os.path.dirname(path), exist_ok=True)
    table = pyarrow.Table.from_pylist([dict(dict.fromkeys(types), **row) for row in rows], schema=pyarrow.schema(list(types.items())))
    pyarrow.parquet.write_table(table, path, compression='snappy')


def instant(second):
    return datetime.datetime.fromtimestamp(1700000000 + second, datetime.timezone.utc)


def neptune_rows(run):
    def row(path, kind, step=None, second=None, **value):
        return dict({'project_id': 'team/vision', 'run_id': run, 'attribute_path': path, 'attribute_type': kind}, **value,
                    step=None if step is None else decimal.Decimal(str(step)), timestamp=None if second is None else instant(second))
    facts = [row('sys/name', 'string', string_value=run.lower()), row('sys/creation_time', 'datetime', datetime_value=instant(0)),
             row('sys/modification_time', 'datetime', datetime_value=instant(90)), row('sys/failed', 'bool', bool_value=run == 'B'),
             row('sys/tags', 'string_set', string_set_value=['t2', 't1']), row('sys/description', 'string', string_value='a note'),
             row('sys/owner', 'string', string_value='ada'), row('params/lr', 'float', float_value=0.1), row('params/n', 'int', int_value=3),
             row('params/amp', 'bool', bool_value=True), row('params/names', 'string_set', string_set_value=['b', 'a']),
             row('data/desc', 'file', file_value={'path': 'p/desc.json'}), row('lost', 'file', file_value={'path': 'p/none'})]
    fine = 0.5 if run == 'A' else 1
    series = [row('loss', 'float_series', fine * s, s, float_value=1 / (s + 1)) for s in range(200)]
    series += [row('monitoring/0/stdout', 'string_series', s, s, string_value='line %d\n' % s) for s in range(3)]
    series += [row('words', 'string_series', 1, 5, string_value='said'), row('weights', 'histogram_series', 2, 6, histogram_value={
        'type': 'COUNTING', 'edges': [0, 0.5, 1], 'values': [1, 2]}), row('img', 'file_series', 3, 7, file_value={'path': 'p/3.png'}),
        row('odd', 'odd_series', 3, 7)]
    return facts, series


def of_neptune(folder):
    data, files = os.path.join(folder, 'data'), os.path.join(folder, 'files')
    os.makedirs(os.path.join(files, 'p'))
    for name, content in (('desc.json', b'{}'), ('3.png', png(1))):
        with open(os.path.join(files, 'p', name), 'wb') as f:
            f.write(content)
    for run in ('A', 'B'):
        facts, series = neptune_rows(run)
        parquet(os.path.join(data, 'team_vision_0a1b', '%s_part_0.parquet' % run), facts + series[:100])
        parquet(os.path.join(data, 'team_vision_0a1b', '%s_part_1.parquet' % run), series[100:])

    def check(brought):
        assert {n: r['status'] for n, r in brought.runs.items()} == {'a': 'finished', 'b': 'failed'}
        for name, run in brought.runs.items():
            fine = 10 if name == 'a' else 1  # fractional steps: stored times ten
            whole = brought.ask('runs/' + run['id'])
            assert (run['experiment'], run['start_time'], run['end_time'], whole['notes']) == ('team/vision', 1700000000000, 1700000090000, 'a note'), run
            assert run['params'] == {'params/lr': '0.1', 'params/n': '3', 'params/amp': 'true', 'params/names': '["a","b"]'}, run['params']
            tags = dict({'t1': '', 't2': '', 'neptune.run_id': name.upper(), 'neptune.owner': 'ada'}, **({'neptune.steps_a_whole': '10'} if fine == 10 else {}))
            assert run['tags'] == tags, run['tags']
            assert brought.points(name) == {'loss': [(s * 5 if fine == 10 else s, 1700000000 + s, 1 / (s + 1) if s else 1) for s in range(200)]}
            lines = brought.ask('runs/%s/console' % run['id'])['lines']
            assert [(x['stream'], x['text']) for x in lines] == [('stdout', 'line %d' % s) for s in range(3)]
            media = brought.media(name)
            assert media == {('words', fine): ('text', b'said'), ('img', 3 * fine): ('image', png(1)),
                             ('weights', 2 * fine): ('histogram', {'edges': [0, 0.5, 1], 'counts': [1, 2]})}, media
            assert brought.file(name, 'data/desc.json') == b'{}'

    said = repeated(folder, ['neptune', data], check)
    assert '2 runs, 400 points, 2 files' in said and 'odd_series of Neptune' in said and 'p/none' in said, said
    assert 'no Parquet files' in bring(folder, 'neptune', files, status=2)
    with open(os.path.join(data, 'torn.parquet'), 'wb') as f:
        f.write(b'PAR1')
    assert 'torn.parquet: not a Parquet file' in bring(folder, 'neptune', data, status=2)
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
                                          ('rows', 5): ('table', {'rows': [['a'], ['1.5']]})}, brought.media('first')
        assert [x['text'] for x in brought.ask('runs/%s/console' % run['id'])['lines']] == ['line 0', 'line 1', 'line 2']
        assert brought.file('first', 'saved.txt') == b'saved\n' and brought.ask('runs/' + run['id'])['notes'] == 'a note'

    said = repeated(folder, ['wandb', 'ada/vision'], check, **own)
    assert '1 run, 101 points, 1 file' in said and 'a text or list in the history: word' in said and 'which W&B returns only as samples' in said, said
    assert 'ada/none' in bring(folder, 'wandb', 'ada/none', status=2, **own)
    assert 'expected ENTITY/PROJECT' in bring(folder, 'wandb', 'ada', status=2, **own)
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
    lib.choose(of_aim, of_neptune, of_wandb, as_frames)
