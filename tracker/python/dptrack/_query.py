# SPDX-License-Identifier: Apache-2.0
"""Reads recorded runs, their params, metrics and points: from a server ($DPTRACK_URL, or url=), else from a folder of runs,
with the program dptrack or, without it, with the library's reader."""
from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from urllib.parse import quote, urlencode, urlsplit

from dptrack._program import find_program
from dptrack._run import Error, Run, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, Union

    Pairs = Union[Mapping[str, Any], Sequence[tuple[str, str]]]

PAGE = 500
_NUMBER = re.compile(r'-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]+)?')
_WORDS = {'NaN': math.nan, 'Infinity': math.inf, '-Infinity': -math.inf}
BEST_TAG = 'dptrack.best.'  # and the key of a metric: a tag that says which of its values is best
_POINT = ('key', 'rank', 'segment', 'step', 'wall_time', 'value')


class Rows(list):  # type: ignore[type-arg]
    """A list of mappings with the same keys."""

    def to_pandas(self) -> Any:
        """The same as a pandas.DataFrame.

        Returns:
            The frame.

        Raises:
            Error: The package pandas is missing.

        Example:
            >>> dptrack.runs("mnist")[0].history().to_pandas()
        """
        return _pandas().DataFrame(list(self))


def _pandas() -> Any:
    try:
        import pandas
        return pandas
    except ImportError as error:
        from dptrack import _missing
        _missing.need('to_pandas', 'pandas', error)


def _number(value: Any) -> Any:
    return _WORDS[value] if isinstance(value, str) else value


# ---- where runs are read ----

class Refused(Error):
    """A server's refusal: HTTP's status, the reply, and the seconds after which to ask again."""

    def __init__(self, status: int, reply: bytes, wait: str, text: str) -> None:
        try:
            text = str(json.loads(reply)['error']['message'])
        except (ValueError, KeyError, TypeError):
            pass
        super().__init__(text)
        self.status, self.reply, self.wait_s = status, reply, float(wait) if wait.isdigit() else 0.0


class NoAnswer(Error):
    """A server that cannot be reached, or whose answer broke off."""


class _Server:
    """Requests over HTTP, with the token of $DPTRACK_TOKEN or of `dptrack login` unless another is given. local: a server that its lock file or its own
    process named, which needs no proxy and no check of its certificate."""

    def __init__(self, url: str, token: str | None = None, local: bool = False) -> None:
        self.url, self.local = url.rstrip('/'), local
        self.token = token or os.environ.get('DPTRACK_TOKEN') or _stored_token(self.url)

    def page(self) -> str | None:
        return self.url

    def lines(self, path: str, pairs: Pairs = (), method: str = 'GET', body: Any = None, headers: dict[str, str] | None = None) -> Iterator[bytes]:
        """The reply to /api/v1/PATH, or to a PATH with its first /. body: sent as JSON, with headers as it is."""
        import http.client
        import urllib.error
        import urllib.request
        url = self.url + (path if path.startswith('/') else '/api/v1/' + path) + ('?' + urlencode(pairs, doseq=True) if pairs else '')
        try:
            data = body if headers or body is None else json.dumps(body).encode()
            request = urllib.request.Request(url, data, {'Content-Type': 'application/json', **(headers or {})}, method=method)
            with _opener(self).open(_with_token(request, self.token), timeout=120) as reply:
                yield from reply
        except urllib.error.HTTPError as error:
            raise Refused(error.code, error.read(), error.headers.get('Retry-After', ''), str(error)) from None
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswer('%s does not answer: %s' % (self.url, getattr(error, 'reason', error))) from None
        except ValueError:
            raise Error('%s: expected an address such as http://127.0.0.1:6007' % self.url) from None

    def ask(self, path: str, pairs: Pairs = (), method: str = 'GET', body: Any = None) -> Any:
        """The reply, parsed."""
        reply = b''.join(self.lines(path, pairs, method, body))
        try:
            return json.loads(reply)
        except ValueError:
            raise Error('%s: the reply is not JSON: is this the address of dptrack serve?' % self.url) from None

    def runs(self, pairs: Mapping[str, Any], limit: int) -> Iterator[dict[str, Any]]:
        token = None
        while limit > 0:
            page = dict(pairs, limit=min(limit, PAGE), **({'page_token': token} if token else {}))
            reply = self.ask('runs', page)
            yield from reply['runs']
            limit, token = limit - PAGE, reply.get('next_page_token')
            if not token:
                return

    def experiments(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask('experiments')['experiments']
        return found

    def points(self, run_id: str, pairs: Sequence[tuple[str, str]]) -> Iterator[dict[str, Any]]:
        return _parsed(self.lines('export/series.jsonl', [('run', run_id), *pairs]))


def _with_token(request: Any, token: str | None) -> Any:
    """Adds the token, which a redirect does not carry on."""
    if token:
        request.add_unredirected_header('Authorization', 'Bearer ' + token)
    return request


def _stored_token(url: str) -> str | None:
    """The token that `dptrack login` has stored for a server (tracker/sink/http_client.h)."""
    folder = os.environ.get('XDG_CONFIG_HOME') or os.path.expanduser('~/.config')
    try:
        with open(os.path.join(folder, 'dptrack', 'tokens'), encoding='utf-8') as lines:
            pairs = [line.rstrip('\n').partition(' ') for line in lines]
    except OSError:
        return None
    return next((token for token, _, server in pairs if server == url), None)


def _opener(server: _Server) -> Any:
    """Follows redirects of a server to itself alone: any other would get the token, and answer in its name."""
    import ssl
    import urllib.request

    class Redirects(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
            old, new = (urlsplit(url) for url in (req.full_url, newurl))
            if (old.scheme, old.netloc) != (new.scheme, new.netloc):
                raise Error('%s://%s redirects to %s://%s, which is another server: set DPTRACK_URL to that address if it is right'
                            % (old.scheme, old.netloc.rpartition('@')[2], new.scheme, new.netloc.rpartition('@')[2]))
            request = super().redirect_request(req, fp, code, msg, headers, newurl)
            return _with_token(request, server.token) if request else None

    if not server.url.startswith('https'):
        trusted = None
    elif server.local:
        trusted = ssl._create_unverified_context()
    else:
        trusted = ssl.create_default_context(cafile=os.environ.get('DPTRACK_CA'))
    own = [urllib.request.ProxyHandler({})] if server.local else []
    return urllib.request.build_opener(Redirects, urllib.request.HTTPSHandler(context=trusted), *own)


def _parsed(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line.strip():
            yield json.loads(line)


def holder(store: str) -> tuple[str, str] | None:
    """Address and token of the server that has this store open, as its lock file has them."""
    import fcntl
    try:
        with open(store + '.lock', encoding='utf-8') as f:
            try:
                fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None  # not held: the address is an old one
            except BlockingIOError:
                found = re.search(r'^address (http\S+)\ntoken (\S+)$', f.read(), re.M)
                return (found[1], found[2]) if found else None
    except OSError:
        return None


def _serving(runs_dir: str) -> str | None:
    """Address of the server that has this folder open."""
    found = holder(os.path.join(runs_dir, 'dptrack.db'))
    return found[0] if found else None


class _Folder:
    """Queries with the program dptrack, which reads a folder or asks its server."""

    def __init__(self, runs_dir: str, program: str) -> None:
        self.runs_dir, self.program = runs_dir, program

    def page(self) -> str | None:
        return _serving(self.runs_dir)

    def ask(self, command: str, *words: str) -> Iterator[bytes]:
        process = subprocess.Popen([self.program, command, '--logdir', self.runs_dir, *words], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        assert process.stdout and process.stderr
        yield from process.stdout
        said = process.stderr.read().decode('utf-8', 'replace').strip()
        if process.wait():
            raise Error(said.split('\n')[-1].replace('dptrack: error: ', '') or '%s ended with status %d' % (self.program, process.returncode))

    def runs(self, pairs: Mapping[str, Any], limit: int) -> list[dict[str, Any]]:
        words = [word for name, value in pairs.items() for word in ('--' + name.replace('_', '-'), value)]
        found: list[dict[str, Any]] = json.loads(b''.join(self.ask('ls', '--json', '--limit', str(limit), *words)))['runs']
        return found

    def experiments(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(b''.join(self.ask('ls', '--json', '--experiments')))['experiments']
        return found

    def points(self, run_id: str, pairs: Sequence[tuple[str, str]]) -> Iterator[dict[str, Any]]:
        words = [word for name, value in pairs for word in ('--' + name, value)]
        return _parsed(self.ask('export', '--series', '--jsonl', *words, run_id))


class _Journals:
    """Queries with the library's reader. It has no index, so it reads every run, and no language for filters. A run whose
    process was killed is still "running" here."""

    def __init__(self, runs_dir: str) -> None:
        self.runs_dir = runs_dir
        self.folders: dict[str, str] = {}
        if not os.path.isdir(runs_dir):
            raise Error('no folder %s: set runs_dir or DPTRACK_RUNS_DIR to the folder of runs, or DPTRACK_URL to a server' % runs_dir)

    def page(self) -> str | None:
        return _serving(self.runs_dir)

    def rows(self) -> Iterator[dict[str, Any]]:
        from dptrack import _read
        for folder in _read.folders(self.runs_dir):
            try:
                row = _read.row(folder)
            except Error as error:
                say('left out: %s' % error)
                continue
            if row:
                self.folders[row['id']] = folder
                yield row

    def runs(self, pairs: Mapping[str, Any], limit: int) -> list[dict[str, Any]]:
        refused = [name for name in ('filter', 'order_by') if name in pairs]
        if refused:
            raise Error('%s requires the program dptrack or a server: put dptrack on PATH, set DPTRACK_PROGRAM to its path, or set '
                        'DPTRACK_URL or url=' % refused[0])
        found = [row for row in self.rows() if pairs.get('experiment', row['experiment']) == row['experiment']]
        return sorted(found, key=lambda row: (-row['start_time'], row['id']))[:limit]

    def experiments(self) -> list[dict[str, Any]]:
        counts: dict[str, int] = {}
        for row in self.rows():
            counts[row['experiment']] = counts.get(row['experiment'], 0) + 1
        return [{'name': name, 'run_count': counts[name]} for name in sorted(counts)]

    def points(self, run_id: str, pairs: Sequence[tuple[str, str]]) -> Iterator[dict[str, Any]]:
        from dptrack import _read
        wanted = dict(pairs)
        found = _read.contents(self.folders[run_id])
        points = found.points if wanted.get('segments') == 'all' else found.seen()
        for point in sorted(points, key=lambda p: (p[0], p[1], p[3], p[4])):
            if wanted.get('key', point[0]) == point[0] and wanted.get('rank', 'all') in ('all', str(point[1])):
                yield dict(zip(_POINT, point))


def _source(url: str | None, runs_dir: str | os.PathLike[str] | None) -> _Server | _Folder | _Journals:
    url = url or (None if runs_dir else os.environ.get('DPTRACK_URL'))
    if url:
        return _Server(url)
    folder, program = os.fspath(runs_dir or os.environ.get('DPTRACK_RUNS_DIR') or 'runs'), find_program()
    return _Folder(folder, program) if program else _Journals(folder)


# ---- runs ----

class RecordedRun:
    """A run as the store has it.

    Attributes:
        id: 32 hex digits.
        name: The name.
        experiment: The experiment.
        status: "running", "finished", "failed", "killed" or "preempted".
        params: {key: text}.
        tags: {key: text}.
        metrics: {key: {"last", "min", "max", ...}}.
        start_time: In milliseconds since 1970, or None.
        end_time: In milliseconds since 1970, or None.
        raw: The run as the server's API describes it.
    """

    def __init__(self, source: _Server | _Folder | _Journals, row: dict[str, Any]) -> None:
        self._source, self.raw = source, row
        self.id: str = row['id']
        self.name: str = row['name']
        self.experiment: str = row['experiment']
        self.status: str = row['status']
        self.params: dict[str, str] = row.get('params', {})
        self.tags: dict[str, str] = row.get('tags', {})
        self.start_time: int | None = row.get('start_time')
        self.end_time: int | None = row.get('end_time')
        self.metrics: dict[str, dict[str, Any]] = {key: {k: _number(v) for k, v in sums.items()}
                                                   for key, sums in row.get('metrics', {}).items()}

    @property
    def url(self) -> str | None:
        """Address of the run's page; None where no server has the folder open."""
        page = self._source.page()
        return '%s/?r=%s' % (page, self.id) if page else None

    def points(self, key: str | None = None, rank: int | None = None, segments: str | None = None) -> Rows:
        """Every point.

        Args:
            key: Only of this series.
            rank: Only of this rank; -1 is the run as a whole.
            segments: "all" also returns the points that a restart hides.

        Returns:
            Rows of {"key", "rank", "segment", "step", "wall_time", "value"}.

        Raises:
            Error: The server does not answer, or the run is gone.

        Example:
            >>> dptrack.runs("mnist")[0].points("train/loss", rank=-1)
        """
        pairs = [(n, str(v)) for n, v in (('key', key), ('rank', rank), ('segments', segments)) if v is not None]
        rows = Rows()
        for row in self._source.points(self.id, pairs):
            row['value'], row['wall_time'] = float(_number(row['value'])), float(_number(row['wall_time']))
            rows.append({name: row[name] for name in _POINT})
        return rows

    def history(self, keys: str | Sequence[str] | None = None) -> Rows:
        """One row a step of the run's own series; the newest value where a step has several.

        Args:
            keys: One series, or several; default: all.

        Returns:
            Rows of {"step", key: value, ...}, in the order of steps.

        Raises:
            Error: The server does not answer, or the run is gone.

        Example:
            >>> dptrack.runs("mnist")[0].history(["train/loss", "epoch/top1"])
        """
        wanted = [keys] if isinstance(keys, str) else keys
        points = self.points(wanted[0] if wanted and len(wanted) == 1 else None, rank=-1)
        by_step: dict[int, dict[str, Any]] = {}
        for p in points:
            if wanted is None or p['key'] in wanted:
                by_step.setdefault(p['step'], {'step': p['step']})[p['key']] = p['value']
        return Rows(by_step[step] for step in sorted(by_step))

    def _repr_html_(self) -> str:
        from dptrack import _notebook
        return _notebook.of_recorded(self)

    def __repr__(self) -> str:
        return 'RecordedRun(%r, id=%r, %s)' % (self.name, self.id, self.status)


def best_of(key: str, said: str | None = None) -> str | None:
    """Which value of a metric is best, "min" or "max": what a run says, else by its words; None if unknown."""
    from dptrack._goals import GOALS, INNER
    if said in ('min', 'max') or key.startswith(INNER):
        return said if said in ('min', 'max') else None
    edge = '[^0-9a-z\\x80-\U0010ffff]'
    return next((best for patterns, best in GOALS if re.search('(?:^|%s)(?:%s)[0-9]*(?:$|%s)' % (
        edge, patterns.replace(' ', '|').replace('_', edge), edge), key, re.ASCII | re.IGNORECASE)), None)


class Runs(list):  # type: ignore[type-arg]
    """A list of RecordedRun."""

    if TYPE_CHECKING:
        def __iter__(self) -> Iterator[RecordedRun]: ...
        def __getitem__(self, index: Any) -> Any: ...

    def to_pandas(self) -> Any:
        """One row a run: run_id, name, experiment, status, params.KEY, tags.KEY, metrics.KEY (the last value). Params that are
        numbers in all runs that have them are numbers here.

        Returns:
            A pandas.DataFrame.

        Raises:
            Error: The package pandas is missing.

        Example:
            >>> dptrack.runs("mnist").to_pandas()[["name", "params.lr", "metrics.epoch/top1"]]
        """
        pandas = _pandas()
        rows = []
        for run in self:
            row: dict[str, Any] = {'run_id': run.id, 'name': run.name, 'experiment': run.experiment, 'status': run.status,
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

    def _repr_html_(self) -> str:
        return Comparison(self)._repr_html_()


class Comparison:
    """Runs next to each other.

    Attributes:
        runs: The runs.
        params: {key: [text or None of each run]} of the params that differ.
        metrics: {key: [{"last", "min", "max", ...} or None of each run]} of the metrics that are not a rank's.
    """

    def __init__(self, runs: Iterable[RecordedRun]) -> None:
        self.runs = Runs(runs)
        every = {key: [run.params.get(key) for run in self.runs] for run in self.runs for key in run.params}
        self.params = {key: values for key, values in sorted(every.items()) if len(set(values)) > 1}
        keys = sorted({key for run in self.runs for key in run.metrics})
        self.metrics = {key: [run.metrics.get(key) for run in self.runs] for key in keys}

    def best(self, key: str) -> RecordedRun | None:
        """The run with the best value of a metric. Whether that is the highest or the lowest, a run says (define_metric), else the
        name of the metric.

        Args:
            key: The metric.

        Returns:
            The run; None if no run has a finite value, or if it is unknown which value is best.

        Example:
            >>> dptrack.compare("base", "wide").best("val/accuracy")
        """
        best = best_of(key, next((run.tags[BEST_TAG + key] for run in self.runs if BEST_TAG + key in run.tags), None))
        found = [(run.metrics[key][best], run) for run in self.runs if best and run.metrics.get(key, {}).get(best) is not None]
        choose = max if best == 'max' else min
        return choose(found, key=lambda pair: pair[0])[1] if found else None

    @property
    def url(self) -> str | None:
        """Address of the page that shows the runs side by side; None where no server has the folder open."""
        page = self.runs[0]._source.page() if self.runs else None
        if not page:
            return None
        names = {run.experiment for run in self.runs}
        experiment = 'e=%s&' % quote(names.pop()) if len(names) == 1 else ''
        return '%s/?%sside&o=%s' % (page, experiment, '.'.join(run.id[:8] for run in self.runs))

    def to_pandas(self) -> Any:
        """Runs.to_pandas of the runs.

        Returns:
            A pandas.DataFrame.

        Raises:
            Error: The package pandas is missing.

        Example:
            >>> dptrack.compare("base", "wide").to_pandas()
        """
        return self.runs.to_pandas()

    def _repr_html_(self) -> str:
        from dptrack import _notebook
        return _notebook.of_comparison(self)

    def __repr__(self) -> str:
        return 'Comparison(%s)' % ', '.join(repr(run.name) for run in self.runs)


def runs(experiment: str | None = None, filter: str | None = None, order_by: str | None = None, limit: int = 1000,
         url: str | None = None, runs_dir: str | os.PathLike[str] | None = None) -> Runs:
    """Reads recorded runs, newest first unless ordered.

    Args:
        experiment: Only of this experiment.
        filter: A condition such as: metrics."epoch/top1".max > 90 AND params.lr = 0.1. Requires the program dptrack or a server.
        order_by: Keys with ASC or DESC, such as: metrics."epoch/top1".max DESC. Requires them too.
        limit: The largest number of runs.
        url: The server to ask; default: $DPTRACK_URL.
        runs_dir: The folder to read; default: $DPTRACK_RUNS_DIR, or "runs". A given folder is preferred to $DPTRACK_URL.

    Returns:
        A list of RecordedRun, which a notebook shows as a table.

    Raises:
        Error: The server does not answer, the folder does not exist, or the filter is not valid.

    Example:
        >>> best = dptrack.runs("mnist", order_by='metrics."epoch/top1".max DESC', limit=1)[0]
    """
    source = _source(url, runs_dir)
    pairs = {n: v for n, v in (('experiment', experiment), ('filter', filter), ('order_by', order_by)) if v is not None}
    return Runs(RecordedRun(source, row) for row in source.runs(pairs, limit))


def experiments(url: str | None = None, runs_dir: str | os.PathLike[str] | None = None) -> Rows:
    """Lists experiments.

    Args:
        url: The server to ask; default: $DPTRACK_URL.
        runs_dir: The folder to read; default: $DPTRACK_RUNS_DIR, or "runs".

    Returns:
        Rows of {"name", "run_count", ...}.

    Raises:
        Error: The server does not answer, or the folder does not exist.

    Example:
        >>> [row["name"] for row in dptrack.experiments()]
    """
    return Rows(_source(url, runs_dir).experiments())


def _named(source: _Server | _Folder | _Journals, text: str) -> RecordedRun:
    """The one run with this id, prefix of an id (at least four digits), or name; of several with the name the newest."""
    is_prefix = re.fullmatch('[0-9a-f]{4,32}', text)
    if isinstance(source, _Journals):
        rows: Iterable[dict[str, Any]] = source.runs({}, sys.maxsize)
    else:
        name = "name = '%s'" % text.replace("'", "''")
        rows = source.runs({'filter': "%s OR run_id LIKE '%s%%'" % (name, text) if is_prefix else name}, PAGE)
    found = [row for row in rows if row['name'] == text or (is_prefix and row['id'].startswith(text))]
    if not found:
        raise Error('no run has the id or name %r' % text)
    by_id = {row['id'] for row in found if row['name'] != text}
    if len(by_id) > 1:
        raise Error('%d runs begin with %s: add digits' % (len(by_id), text))
    return RecordedRun(source, found[0])


def compare(*runs: RecordedRun | Run | str | Iterable[RecordedRun | Run | str], url: str | None = None,
            runs_dir: str | os.PathLike[str] | None = None) -> Comparison:
    """Puts runs next to each other: the params that differ, and the metrics.

    Args:
        runs: Runs, their names, or ids (four digits suffice where they are unique); or one list of these.
        url: The server to ask for names and ids; default: $DPTRACK_URL.
        runs_dir: The folder to search for them; default: $DPTRACK_RUNS_DIR, or "runs".

    Returns:
        The comparison, which a notebook shows as a table.

    Raises:
        Error: A run does not exist, or the prefix of an id is not unique.

    Example:
        >>> dptrack.compare("base", "wide").params
        {'width': ['64', '128']}
    """
    given: list[RecordedRun | Run | str] = []
    for one in runs:
        given.extend([one] if isinstance(one, (str, Run, RecordedRun)) else one)
    source = None if all(isinstance(one, RecordedRun) for one in given) else _source(url, runs_dir)
    found = []
    for one in given:
        if isinstance(one, RecordedRun):
            found.append(one)
            continue
        text = one if isinstance(one, str) else one.id
        if not text:
            raise Error('a run that is not recorded cannot be compared')
        assert source
        found.append(_named(source, text))
    return Comparison(found)
