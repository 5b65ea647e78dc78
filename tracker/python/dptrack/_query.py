# SPDX-License-Identifier: Apache-2.0
"""Reads recorded runs, their params, metrics and points from a server ($DPTRACK_URL, or url=), else from a folder of runs with
the program dptrack."""
import json
import math
import os
import re
import shutil
import subprocess
from urllib.parse import urlencode

from dptrack._run import Error

PAGE = 500
_NUMBER = re.compile(r'-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]+)?')
_WORDS = {'NaN': math.nan, 'Infinity': math.inf, '-Infinity': -math.inf}


class Rows(list):
    """A list of mappings with the same keys."""

    def to_pandas(self):
        """The same as a pandas.DataFrame."""
        import pandas
        return pandas.DataFrame(list(self))


def _number(value):
    return _WORDS[value] if isinstance(value, str) else value


class _Server:
    """Queries over HTTP."""

    def __init__(self, url):
        self.url = url.rstrip('/')

    def lines(self, path, pairs):
        import ssl
        import urllib.error
        import urllib.request
        request = urllib.request.Request('%s/api/v1/%s?%s' % (self.url, path, urlencode(pairs)))
        if os.environ.get('DPTRACK_TOKEN'):
            request.add_header('Authorization', 'Bearer ' + os.environ['DPTRACK_TOKEN'])
        trusted = ssl.create_default_context(cafile=os.environ.get('DPTRACK_CA')) if self.url.startswith('https') else None
        try:
            with urllib.request.urlopen(request, timeout=120, context=trusted) as reply:
                yield from reply
        except urllib.error.HTTPError as error:
            raise Error(_refusal(error)) from None
        except OSError as error:
            raise Error('%s does not answer: %s' % (self.url, getattr(error, 'reason', error))) from None

    def runs(self, pairs, limit):
        token = None
        while limit > 0:
            page = dict(pairs, limit=min(limit, PAGE), **({'page_token': token} if token else {}))
            reply = json.loads(b''.join(self.lines('runs', page)))
            yield from reply['runs']
            limit, token = limit - PAGE, reply.get('next_page_token')
            if not token:
                return

    def experiments(self):
        return json.loads(b''.join(self.lines('experiments', {})))['experiments']

    def points(self, run_id, pairs):
        return self.lines('export/series.jsonl', [('run', run_id), *pairs])


def _refusal(error):
    try:
        return json.loads(error.read())['error']['message']
    except (ValueError, KeyError, TypeError):
        return str(error)


class _Folder:
    """Queries with the program dptrack, which reads a folder or asks its server."""

    def __init__(self, runs_dir):
        self.runs_dir = runs_dir
        self.program = os.environ.get('DPTRACK_PROGRAM') or shutil.which('dptrack')
        if not self.program:
            raise Error('reading runs requires a server (DPTRACK_URL, or url=) or the program dptrack on PATH')

    def ask(self, command, *words):
        process = subprocess.Popen([self.program, command, '--logdir', self.runs_dir, *words], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        yield from process.stdout
        said = process.stderr.read().decode('utf-8', 'replace').strip()
        if process.wait():
            raise Error(said.split('\n')[-1].replace('dptrack: error: ', '') or '%s ended with status %d' % (self.program, process.returncode))

    def runs(self, pairs, limit):
        words = [word for name, value in pairs.items() for word in ('--' + name.replace('_', '-'), value)]
        return json.loads(b''.join(self.ask('ls', '--json', '--limit', str(limit), *words)))['runs']

    def experiments(self):
        return json.loads(b''.join(self.ask('ls', '--json', '--experiments')))['experiments']

    def points(self, run_id, pairs):
        keys = {name: value for name, value in pairs}
        words = [word for name, value in keys.items() for word in ('--' + name, value)]
        return self.ask('export', '--series', '--jsonl', *words, run_id)


class RecordedRun:
    """A run as the store has it: id, name, experiment, status, params, tags, metrics ({key: {'last', 'min', 'max', ...}}),
    start_time and end_time in milliseconds since 1970."""

    def __init__(self, source, row):
        self._source, self.raw = source, row
        self.id, self.name, self.experiment, self.status = row['id'], row['name'], row['experiment'], row['status']
        self.params, self.tags = row.get('params', {}), row.get('tags', {})
        self.start_time, self.end_time = row.get('start_time'), row.get('end_time')
        self.metrics = {key: {k: _number(v) for k, v in sums.items()} for key, sums in row.get('metrics', {}).items()}

    def points(self, key=None, rank=None, segments=None):
        """Every point: {'key', 'rank', 'segment', 'step', 'wall_time', 'value'}. rank: of one rank, -1 the run as a whole;
        segments='all': also those that a restart hides."""
        pairs = [(n, str(v)) for n, v in (('key', key), ('rank', rank), ('segments', segments)) if v is not None]
        rows = Rows()
        for line in self._source.points(self.id, pairs):
            if line.strip():
                row = json.loads(line)
                row['value'], row['wall_time'] = float(_number(row['value'])), float(_number(row['wall_time']))
                rows.append({name: row[name] for name in ('key', 'rank', 'segment', 'step', 'wall_time', 'value')})
        return rows

    def history(self, keys=None):
        """One row a step: {'step', key: value, ...} of the run's own series, in the order of steps; the newest value where a
        step has several. keys: one, or several; by default all."""
        wanted = [keys] if isinstance(keys, str) else keys
        points = self.points(wanted[0] if wanted and len(wanted) == 1 else None, rank=-1)
        by_step = {}
        for p in points:
            if wanted is None or p['key'] in wanted:
                by_step.setdefault(p['step'], {'step': p['step']})[p['key']] = p['value']
        return Rows(by_step[step] for step in sorted(by_step))

    def __repr__(self):
        return 'RecordedRun(%r, id=%r, %s)' % (self.name, self.id, self.status)


class Runs(list):
    """A list of RecordedRun."""

    def to_pandas(self):
        """One row a run: run_id, name, experiment, status, params.KEY, tags.KEY, metrics.KEY (the last value). Params that are
        numbers in all runs that have them are numbers here."""
        import pandas
        rows = []
        for run in self:
            row = {'run_id': run.id, 'name': run.name, 'experiment': run.experiment, 'status': run.status,
                   'start_time': run.start_time, 'end_time': run.end_time}
            row.update(('params.' + key, value) for key, value in run.params.items())
            row.update(('tags.' + key, value) for key, value in run.tags.items())
            row.update(('metrics.' + key, sums.get('last')) for key, sums in run.metrics.items())
            rows.append(row)
        table = pandas.DataFrame(rows)
        for name in table.columns:
            known = table[name].dropna() if name.startswith('params.') else ()
            if len(known) and all(_NUMBER.fullmatch(value) for value in known):
                table[name] = pandas.to_numeric(table[name])
        return table


def _source(url, runs_dir):
    url = url or (None if runs_dir else os.environ.get('DPTRACK_URL'))
    return _Server(url) if url else _Folder(runs_dir or os.environ.get('DPTRACK_RUNS_DIR') or 'runs')


def runs(experiment=None, filter=None, order_by=None, limit=1000, url=None, runs_dir=None):
    """The runs that match. filter such as: metrics."epoch/top1".max > 90 AND params.lr = 0.1; order_by such as:
    metrics."epoch/top1".max DESC."""
    source = _source(url, runs_dir)
    pairs = {n: v for n, v in (('experiment', experiment), ('filter', filter), ('order_by', order_by)) if v is not None}
    return Runs(RecordedRun(source, row) for row in source.runs(pairs, limit))


def experiments(url=None, runs_dir=None):
    """[{'id', 'name', 'run_count', ...}]."""
    return Rows(_source(url, runs_dir).experiments())
