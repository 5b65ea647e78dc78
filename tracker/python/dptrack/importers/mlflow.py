# SPDX-License-Identifier: Apache-2.0
"""Reads MLflow's stores: runs with params, tags, points, data sets and files, logged models, the registry. Of a SQLite file or a
folder mlruns it needs no package, and writes nothing there; a server is asked by its REST API (mlflow_server.py)."""
from __future__ import annotations

import os
import re

from dptrack.importers import Database, Files, Refused, Skipped, is_below, number
from dptrack.importers._yaml import read_yaml

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    import sqlite3
    from collections.abc import Iterator
    from typing import Any

    from dptrack.importers import RunWriter
    from dptrack.importers._yaml import Mapping

STATUS = {'RUNNING': 'running', 'SCHEDULED': 'scheduled', 'FINISHED': 'finished', 'FAILED': 'failed', 'KILLED': 'killed',
          '1': 'running', '2': 'scheduled', '3': 'finished', '4': 'failed', '5': 'killed'}
MODEL_STATUS = {'1': 'LOGGED_MODEL_PENDING', '2': 'LOGGED_MODEL_READY', '3': 'LOGGED_MODEL_UPLOAD_FAILED'}
RUN_ID = re.compile('[0-9a-f]{32}')
DEPTH_MAX = 32


def path_below(source: str, uri: str) -> str | None:
    """The part of a version's source below the files of its run, at uri; None: it is elsewhere."""
    if source.startswith('runs:/'):
        return source[len('runs:/'):].partition('/')[2] or None
    uri = uri.rstrip('/')
    return source[len(uri):].strip('/') if uri and (source + '/').startswith(uri + '/') else None


def find_folder(uri: str, store: str) -> tuple[str | None, bool]:
    """The folder of an artifact URI: (path or None, whether it is a place on a machine). A store that was moved or copied has the files
    next to itself: the longest tail of the path that exists there counts, unless the path itself is there."""
    from urllib.parse import unquote, urlsplit
    path = uri
    if uri.startswith(('file:', 'mlflow-artifacts:')):
        path = unquote(urlsplit(uri).path)
    elif re.match(r'[\w+.-]{2,}:/', uri):
        return None, False
    found = path if path.startswith('/') and os.path.isdir(path) else None
    if found and is_below(store, found):
        return found, True
    words = [word for word in path.split('/') if word]
    for n in range(len(words) - 1):  # a name alone is no evidence
        for below in ('', 'mlartifacts', 'mlruns'):
            place = os.path.join(store, below, *words[n:])
            if os.path.isdir(place):
                return place, True
    return found, True


class Store:
    """What the kinds of stores share. store: the folder next to which files may be."""

    def __init__(self, out: RunWriter, store: str) -> None:
        self.out, self.store = out, store
        self.places: dict[str, str] = {}  # run id: URI of its files

    def status(self, word: Any, run: str) -> str:
        if str(word) not in STATUS:
            self.out.left_out("the status of run %s: unknown word '%.40s'" % (run, word))
        return STATUS.get(str(word), 'finished')

    def check_id(self, run: Any, where: str) -> str:
        if not isinstance(run, str) or not RUN_ID.fullmatch(run):
            raise Skipped("%s: '%.60s': not a run id (expected 32 hex digits)" % (where, run))
        return run

    def tags(self, pairs: Iterator[tuple[str, str]]) -> None:
        for key, value in pairs:
            self.out.tag(key, value)
            if key == 'mlflow.note.content':  # MLflow stores a run's note so
                self.out.note(value)

    def files(self, run: str, uri: str, own: str | None = None) -> None:
        """own: the folder of the files, if known."""
        self.places[run] = uri
        folder, here = (own, True) if own else find_folder(uri, self.store)
        if folder:
            self.out.file('', folder)
        elif not here:
            self.out.left_out('the files of a run stored at %s://…' % uri.partition(':')[0])
        elif not find_folder(uri.rpartition('/')[0].rpartition('/')[0], self.store)[0]:
            self.out.left_out('the files of a run, if any: their folder is not on this machine')

    def logged_model(self, model: dict[str, Any], uri: str, own: str | None = None) -> None:
        if not model['deleted']:
            folder, here = (own, True) if own else find_folder(uri, self.store)
            model['files'] = folder or ''
            if not folder:
                self.out.left_out('the files of model %s at %s%s' % (model['model_id'], uri, ': not on this machine' if here else ''))
        self.out.logged_model(model)

    def version(self, row: dict[str, Any]) -> dict[str, Any] | None:
        """A version of a registered model, as its line has it; None: it was deleted."""
        if row['stage'] == 'Deleted_Internal':
            return None
        place = self.places.get(row['run_id'] or '')
        path = path_below(row['source'] or '', place) if place else None
        return {'version': str(row['version']), 'description': row['description'] or '', 'stage': row['stage'] or '', 'run_id': row['run_id'] or '',
                'source': row['source'] or '', 'tags': row['tags'], **({} if path is None else {'path': path})}


# ---- SQLite ----

class SqliteStore(Store):
    def __init__(self, out: RunWriter, path: str) -> None:
        super().__init__(out, os.path.dirname(os.path.abspath(path)))
        self.db = Database(path)
        try:
            if not self.db.has('runs') or not self.db.has('metrics'):
                raise Refused("%s: a SQLite file without MLflow's table runs" % path)
        except Skipped as why:
            raise Refused(str(why), 1) from None

    def pairs(self, what: str, query: str, *values: Any) -> Iterator[tuple[str, str]]:
        for row in self.db.each(what, query, *values):
            yield str(row[0]), '' if row[1] is None else str(row[1])

    def tag_map(self, query: str, *values: Any) -> dict[str, str]:
        return dict(self.pairs('tags', query, *values))

    def points(self, run: str) -> Iterator[tuple[str, Any]]:
        """In order of arrival: a store that has grown has more rows at the end. SQLite stores texts in columns of numbers, too."""
        for key, value, at, step, is_nan in self.db.each('points of a run', 'SELECT key, value, timestamp, step, is_nan FROM metrics '
                                                         'WHERE run_uuid = ? ORDER BY rowid', run):
            if is_nan:
                value = float('nan')
            if isinstance(value, (int, float)) and isinstance(at, (int, float)) and isinstance(step, (int, float)):
                yield 'points', [str(key), int(step), at / 1e3, number(value)]
            else:
                self.out.left_out('a point of %.200s in run %s: its value, time or step is not a number' % (key, run))

    def inputs(self, run: str) -> None:
        query = ('SELECT i.input_uuid, d.name, d.digest, d.dataset_source_type AS source_type, d.dataset_source AS source, d.dataset_schema AS schema, '
                 'd.dataset_profile AS profile FROM inputs i JOIN datasets d ON d.dataset_uuid = i.source_id '
                 "WHERE i.destination_id = ? AND i.destination_type = 'RUN' AND i.source_type = 'DATASET' ORDER BY i.rowid")
        for row in self.db.each('data sets of a run', query, run):
            tags = self.tag_map('SELECT name, value FROM input_tags WHERE input_uuid = ? ORDER BY name', row['input_uuid'])
            self.out.input({**{key: row[key] for key in row.keys() if key != 'input_uuid'}, 'tags': tags})

    def outputs(self, run: str) -> None:
        query = ("SELECT destination_id, step FROM inputs WHERE source_id = ? AND source_type = 'RUN_OUTPUT' AND destination_type = 'MODEL_OUTPUT' "
                 'ORDER BY rowid')
        for model, step in self.db.each('outputs of a run', query, run):
            self.out.output(model, int(step or 0))

    def run(self, row: sqlite3.Row, inputs: bool, outputs: bool) -> None:
        out, run = self.out, self.check_id(row['run_uuid'], self.db.path)
        with out.one_run(run):
            out.run(run, row['experiment'], row['name'], (row['start_time'] or 0) / 1e3)
            with out.part():
                out.events(self.points(run))
            out.flush()
            with out.part():
                for key, value in self.pairs('params of a run', 'SELECT key, value FROM params WHERE run_uuid = ? ORDER BY rowid', run):
                    out.param(key, value)
            with out.part():
                self.tags(self.pairs('tags of a run', 'SELECT key, value FROM tags WHERE run_uuid = ? ORDER BY key', run))
            with out.part():
                if inputs:
                    self.inputs(run)
                if outputs:
                    self.outputs(run)
            self.files(run, row['artifact_uri'] or '')
            if row['lifecycle_stage'] == 'deleted':
                out.deleted()
            out.end(self.status(row['status'], run), (row['end_time'] or 0) / 1e3)

    def runs(self) -> None:
        query = ('SELECT r.run_uuid, r.name, r.status, r.start_time, r.end_time, r.lifecycle_stage, r.artifact_uri, e.name AS experiment '
                 'FROM runs r JOIN experiments e ON e.experiment_id = r.experiment_id ORDER BY r.rowid')
        inputs, outputs = self.db.has('inputs') and self.db.has('datasets'), self.db.has('inputs') and self.db.has('logged_models')
        try:
            for row in self.db.each('further runs', query):
                with self.out.part():
                    self.run(row, inputs, outputs)
        except Skipped as why:
            if not self.out.runs:
                raise Refused(str(why), 1) from None
            self.out.left_out(str(why))

    def model_points(self, model: str) -> list[Any]:
        query = ('SELECT run_id, metric_name, metric_step, metric_timestamp_ms / 1e3, metric_value, dataset_name, dataset_digest '
                 'FROM logged_model_metrics WHERE model_id = ? ORDER BY rowid')
        return [[*row[:4], number('nan' if row[4] is None else row[4]), *(row[5:] if row[5] else ())]
                for row in self.db.each('points of a logged model', query, model)]

    def models(self) -> None:
        query = ('SELECT m.model_id, e.name AS experiment, m.name, m.artifact_location, m.status, m.lifecycle_stage, m.model_type, m.source_run_id '
                 'FROM logged_models m JOIN experiments e ON e.experiment_id = m.experiment_id ORDER BY m.creation_timestamp_ms, m.model_id')
        for row in self.db.each('logged models', query):
            model = row['model_id']
            with self.out.part():
                params = self.tag_map('SELECT param_key, param_value FROM logged_model_params WHERE model_id = ? ORDER BY param_key', model)
                tags = self.tag_map('SELECT tag_key, tag_value FROM logged_model_tags WHERE model_id = ? ORDER BY tag_key', model)
                self.logged_model({'model_id': model, 'experiment': row['experiment'], 'name': row['name'] or '', 'model_type': row['model_type'] or '',
                                   'source_run_id': row['source_run_id'] or '', 'status': MODEL_STATUS.get(str(row['status']), MODEL_STATUS['2']),
                                   'deleted': row['lifecycle_stage'] == 'deleted', 'params': params, 'tags': tags,
                                   'points': self.model_points(model)}, row['artifact_location'] or '')

    def experiments(self) -> None:
        for experiment, name, stage in self.db.each('experiments', 'SELECT experiment_id, name, lifecycle_stage FROM experiments ORDER BY experiment_id'):
            tags = self.tag_map('SELECT key, value FROM experiment_tags WHERE experiment_id = ? ORDER BY key', experiment)
            self.out.experiment(name, tags, stage == 'deleted')

    def registry(self) -> None:
        with_aliases = self.db.has('registered_model_aliases')
        for name, description in self.db.each('registered models', 'SELECT name, description FROM registered_models ORDER BY name'):
            with self.out.part():
                found = self.db.each('versions of a model', 'SELECT version, description, current_stage AS stage, source, run_id FROM model_versions '
                                     'WHERE name = ? ORDER BY version', name)
                versions = [self.version({**dict(row), 'tags': self.tag_map('SELECT key, value FROM model_version_tags WHERE name = ? AND version = ? '
                                                                            'ORDER BY key', name, row['version'])}) for row in found]
                aliases = self.tag_map('SELECT alias, version FROM registered_model_aliases WHERE name = ? ORDER BY alias', name) if with_aliases else {}
                tags = self.tag_map('SELECT key, value FROM registered_model_tags WHERE name = ? ORDER BY key', name)
                self.out.registered_model({'name': name, 'description': description or '', 'tags': tags, 'aliases': aliases,
                                           'versions': [v for v in versions if v]})

    def traces(self) -> None:
        for row in self.db.each('traces', 'SELECT count(*) FROM trace_info'):
            for _ in range(row[0]):
                self.out.left_out('a trace')

    def all(self) -> None:
        self.runs()
        for table, read in (('logged_models', self.models), ('experiments', self.experiments), ('registered_models', self.registry),
                            ('trace_info', self.traces)):
            with self.out.part():
                if self.db.has(table):
                    read()


# ---- folders ----

def parse_line(text: str) -> tuple[float, float, int] | None:
    """Time in seconds, value and step of "time value [step] …"; None: MLflow would not have written it."""
    words = text.split(' ', 3)
    if len(words) < 2 or not ''.join(words[:3]).isascii() or '_' in ''.join(words[:3]):  # which Python's numbers may have
        return None
    try:
        at, value, step = float(words[0]) / 1e3, float(words[1]), int(words[2]) if len(words) > 2 else 0
    except ValueError:
        return None
    return (at, value, step) if at - at == 0 and -1 << 63 <= step < 1 << 63 else None


class FolderStore(Store):
    def __init__(self, out: RunWriter, root: str, more: list[str]) -> None:
        super().__init__(out, root)
        self.root, self.disk = root, Files(out, root, more)

    # ---- files ----

    def meta(self, folder: str) -> Mapping:
        path = os.path.join(folder, 'meta.yaml')
        if not os.path.lexists(path):
            raise Skipped('%s: its meta.yaml is missing' % folder)
        text = self.disk.text(path)
        try:
            return read_yaml(text)
        except Skipped as why:
            raise Skipped('%s: %s' % (path, why)) from None

    def folders(self, below: str) -> Iterator[tuple[str, str]]:
        """(name, path) of the folders in a folder."""
        for name in self.disk.names(below):
            path = os.path.join(below, name)
            if self.disk.kind(path) == 'folder':
                yield name, path

    def keys(self, below: str, prefix: str = '', depth: int = 0) -> Iterator[tuple[str, str]]:
        """(key, path) of the files below a folder; folders come from keys with slashes."""
        if not os.path.lexists(below):
            return
        kind = self.disk.kind(below)
        names = self.disk.names(below) if kind == 'folder' else []
        if kind == 'file':
            self.out.left_out('%s: expected a folder' % below)
        elif kind and prefix and not names or depth > DEPTH_MAX:
            self.out.left_out('%s: %s' % (below, 'folders are nested too deep' if names else 'an empty folder, expected a file'))
            return
        for name in names:
            path = os.path.join(below, name)
            if os.path.isdir(path) and not os.path.islink(path):
                yield from self.keys(path, prefix + name + '/', depth + 1)
            elif self.disk.kind(path):
                yield prefix + name, path

    def texts(self, below: str) -> Iterator[tuple[str, str]]:
        for key, path in self.keys(below):
            with self.out.part():
                yield key, self.disk.text(path)

    def text_map(self, below: str) -> dict[str, str]:
        return dict(self.texts(below))

    def lines(self, path: str, expected: str, fields: range) -> Iterator[tuple[list[str], tuple[float, float, int]]]:
        """(words, (time, value, step)) of the lines of a metric's file. Each damaged line is left out, and the first is named."""
        first = ''
        lines = self.disk.text(path).split('\n')
        for n, line in enumerate(lines[:-1], 1):
            line = line[:-1] if line.endswith('\r') else line
            found, words = parse_line(line), line.split()
            if found and len(words) in fields:
                yield words, found
            else:
                first = first or "line %d: expected %s; found '%.80s'" % (n, expected, line)
                self.out.left_out('a point of %s: %s' % (path, first))
        if lines[-1]:
            self.out.left_out("a point of %s: line %d does not end in a line feed: '%.80s'" % (path, len(lines), lines[-1]))

    def time(self, meta: Mapping, key: str, folder: str) -> float:
        text = meta.get(key)
        try:
            found = float(str(text)) / 1e3 if text else 0.0
            if found - found == 0:
                return found
        except ValueError:
            pass
        self.out.left_out("%s/meta.yaml: %s: expected a number, found '%.40s'" % (folder, key, text))
        return 0.0

    # ---- a run ----

    def points(self, folder: str) -> list[tuple[str, Any]]:
        """Sorted by time; points of equal time keep their order."""
        found: list[tuple[str, Any]] = []
        for key, path in self.keys(os.path.join(folder, 'metrics')):
            with self.out.part():
                for _, (at, value, step) in self.lines(path, 'time, value, step', range(2, 6)):
                    found.append(('points', [key, step, at, number(value)]))
        found.sort(key=lambda row: row[1][2])
        return found

    def inputs(self, experiment: str, folder: str) -> None:
        for _, path in self.folders(os.path.join(folder, 'inputs')):
            with self.out.part():
                link = self.meta(path)
                data = self.meta(os.path.join(experiment, 'datasets', str(link.get('source_id'))))
                tags = link.get('tags')
                self.out.input({**{key: data.get(key) for key in ('name', 'digest', 'source_type', 'source', 'schema', 'profile')},
                                'tags': {k: v or '' for k, v in tags.items()} if isinstance(tags, dict) else {}})

    def outputs(self, folder: str) -> None:
        for model, path in self.folders(os.path.join(folder, 'outputs')):
            with self.out.part():
                step = str(self.meta(path).get('step') or 0)
                self.out.output(model, int(step) if step.isdecimal() else 0)

    def run(self, experiment: str, name: str, folder: str) -> None:
        out, meta = self.out, self.meta(folder)
        run = self.check_id(meta.get('run_id'), folder + '/meta.yaml')
        with out.one_run(run):
            out.run(run, name, str(meta.get('run_name') or ''), self.time(meta, 'start_time', folder))
            out.events(self.points(folder))
            out.flush()
            for key, text in self.texts(os.path.join(folder, 'params')):
                out.param(key, text)
            self.tags(self.texts(os.path.join(folder, 'tags')))
            self.inputs(experiment, folder)
            self.outputs(folder)
            own = os.path.join(folder, 'artifacts')
            self.files(run, str(meta.get('artifact_uri') or ''), own if os.path.isdir(own) else None)
            if meta.get('lifecycle_stage') == 'deleted':
                out.deleted()
            out.end(self.status(meta.get('status'), run), self.time(meta, 'end_time', folder))

    # ---- experiments, models ----

    def model_points(self, folder: str) -> list[Any]:
        found = []
        for key, path in self.keys(os.path.join(folder, 'metrics')):
            with self.out.part():
                for words, (at, value, step) in self.lines(path, 'time, value, step, run', range(4, 7)):
                    found.append([words[3], key, step, at, number(value), *(words[4:] if len(words) == 6 else ())])
        return found

    def model(self, experiment: str, folder: str) -> None:
        meta, own = self.meta(folder), os.path.join(folder, 'artifacts')
        words = {key: str(meta.get(key) or '') for key in ('model_id', 'name', 'model_type', 'source_run_id')}
        self.logged_model({**words, 'experiment': experiment, 'status': MODEL_STATUS.get(str(meta.get('status')), MODEL_STATUS['2']),
                           'deleted': meta.get('lifecycle_stage') == 'deleted', 'params': self.text_map(os.path.join(folder, 'params')),
                           'tags': self.text_map(os.path.join(folder, 'tags')), 'points': self.model_points(folder)},
                          str(meta.get('artifact_location') or ''), own if os.path.isdir(own) else None)

    def experiment(self, folder: str) -> None:
        meta = self.meta(folder)
        name = meta.get('name')
        if not isinstance(name, str) or not name or not meta.get('experiment_id'):
            raise Skipped('%s/meta.yaml: expected name and experiment_id' % folder)
        for entry in self.disk.names(folder):
            path = os.path.join(folder, entry)
            if entry == 'traces':
                for _ in self.disk.names(path):
                    self.out.left_out('a trace')
            elif entry not in ('models', 'tags', 'datasets', 'meta.yaml') and not entry.startswith('.') and self.disk.kind(path) == 'folder':
                with self.out.part():
                    self.run(folder, name, path)
        for _, path in self.folders(os.path.join(folder, 'models')):
            with self.out.part():
                self.model(name, path)
        self.out.experiment(name, self.text_map(os.path.join(folder, 'tags')), meta.get('lifecycle_stage') == 'deleted')

    def registered(self, folder: str) -> None:
        meta, aliases, versions = self.meta(folder), {}, []
        for name, path in self.folders(folder):
            if name.startswith('version-'):
                with self.out.part():
                    found = self.meta(path)
                    words = {key: str(found.get(key) or '') for key in ('version', 'description', 'source', 'run_id')}
                    versions.append(self.version({**words, 'stage': found.get('current_stage') or 'None', 'tags': self.text_map(os.path.join(path, 'tags'))}))
        named = meta.get('aliases')
        if isinstance(named, dict):
            aliases = {alias: version for alias, version in named.items() if version}
        self.out.registered_model({'name': str(meta.get('name') or ''), 'description': str(meta.get('description') or ''), 'aliases': aliases,
                                   'tags': self.text_map(os.path.join(folder, 'tags')),
                                   'versions': sorted((v for v in versions if v), key=lambda v: int(v['version']) if v['version'].isdecimal() else 0)})

    def all(self) -> None:
        for place in (self.root, os.path.join(self.root, '.trash')):
            for name in self.disk.names(place):
                path = os.path.join(place, name)
                if name != 'models' and not name.startswith('.') and self.disk.kind(path) == 'folder':
                    with self.out.part():
                        self.experiment(path)
        for _, path in self.folders(os.path.join(self.root, 'models')):
            with self.out.part():
                self.registered(path)


def is_folder_store(folder: str) -> bool:
    """Whether a folder in the folder is an experiment of MLflow."""
    try:
        names = [name for name in os.listdir(folder) if not name.startswith('.')]
    except OSError:
        return False
    for name in names:
        try:
            with open(os.path.join(folder, name, 'meta.yaml'), encoding='utf-8', errors='replace') as f:
                if 'experiment_id:' in f.read(1 << 16):
                    return True
        except OSError:
            pass
    return False


def open_store(out: RunWriter, source: str, more: list[str]) -> SqliteStore | FolderStore:
    if not os.path.exists(source):
        raise Refused('%s: no such file or folder' % source)
    if not os.path.isdir(source):
        return SqliteStore(out, source)
    for folder in (source, os.path.join(source, 'mlruns')):
        if is_folder_store(folder):
            return FolderStore(out, folder, more)
        if os.path.exists(os.path.join(source, 'mlflow.db')):
            return SqliteStore(out, os.path.join(source, 'mlflow.db'))
    raise Refused('%s: expected mlflow.db, a folder mlruns, or the folder above either' % source)


def write_runs(out: RunWriter, options: argparse.Namespace) -> None:
    if options.source.startswith(('http://', 'https://')):
        from dptrack.importers.mlflow_server import ServerStore
        ServerStore(out, options.source).all()
    else:
        open_store(out, options.source, options.files_from).all()
