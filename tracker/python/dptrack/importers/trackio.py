# SPDX-License-Identifier: Apache-2.0
"""Reads trackio's SQLite files, one a project, and the media next to them. It needs no package, and writes nothing there."""
from __future__ import annotations

import datetime
import json
import os

from dptrack.importers import Database, Files, Refused, Skipped, is_number, number, run_id
from dptrack.importers.wandb_files import Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import Any

    from dptrack.importers import RunWriter

FILES = {'trackio.image': 'image-file', 'trackio.audio': 'audio-file', 'trackio.video': 'video-file', 'trackio.html': 'html-file'}


def seconds(stamp: Any) -> float:
    """Seconds since 1970 of an ISO time; older versions write local ones."""
    return datetime.datetime.fromisoformat(str(stamp).replace('Z', '+00:00')).timestamp()


class Values(Rows):
    """trackio's values are W&B's with names of its own."""

    def content(self, value: dict[str, Any], kind: str) -> tuple[str, dict[str, Any]]:
        if kind in FILES:
            return super().content({**value, 'path': value['file_path']}, FILES[kind])
        if kind == 'trackio.histogram':
            return super().content(value, 'histogram')
        if kind == 'trackio.markdown':
            return 'text', {'text': str(value['_value'])}
        if kind == 'trackio.table':
            rows = value['_value']
            columns = list(dict.fromkeys(key for row in rows for key in row))
            return 'table', {'columns': [str(c) for c in columns], 'data': [[row.get(c) for c in columns] for row in rows]}
        raise Skipped('')


class Project:
    """The runs of one file."""

    def __init__(self, out: RunWriter, path: str, files: Files) -> None:
        self.out, self.path, self.files = out, path, files
        self.db, self.media = Database(path), os.path.join(os.path.dirname(os.path.abspath(path)), 'media')
        columns = self.db.columns('metrics')
        if 'run_name' not in columns:
            raise Refused("%s: a SQLite file without trackio's table metrics" % path)
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.key = 'run_id' if 'run_id' in columns else 'run_name'  # older versions have no ids

    def rows(self, table: str, columns: str, run: Any) -> Iterator[Any]:
        """Rows of a run in the order of arrival; none if there is no such table."""
        if self.key in self.db.columns(table):
            yield from self.db.each('%s of a run' % table, 'SELECT %s FROM %s WHERE %s = ? ORDER BY rowid' % (columns, table, self.key), run)

    def read_media(self, path: str) -> tuple[bytes, str]:
        whole = os.path.join(self.media, path)
        return self.files.read(whole), whole

    def parse(self, text: Any, what: str) -> dict[str, Any]:
        """A column of JSON."""
        try:
            found = json.loads(text)
        except (ValueError, TypeError) as error:
            raise Skipped('%s: %s: %s' % (self.path, what, error)) from None
        return found if isinstance(found, dict) else {}

    def settings(self, run: Any, called: str) -> tuple[dict[str, Any], float]:
        """(config, start)"""
        for text, made in self.rows('configs', 'config, created_at', run):
            with self.out.part():
                config = self.parse(text, 'the config of %s' % called)
                return config, seconds(config.get('_Created') or made)
        first = next(self.rows('metrics', 'timestamp', run), None)
        return {}, seconds(first[0]) if first else 0.0

    def history(self, run: Any, called: str, start: float) -> float:
        """Writes the metrics; returns the time of the last."""
        out, at = self.out, start
        values = Values(out, lambda _, kind, value: out.event(kind, value), self.read_media)
        with out.part():
            for stamp, step, text in self.rows('metrics', 'timestamp, step, metrics', run):
                with out.part():
                    at = seconds(stamp)
                    values.write_row(self.parse(text, 'a row of %s' % called), int(step), at)
        return at

    def system(self, run: Any, called: str) -> None:
        """Samples have no step: they are numbered."""
        with self.out.part():
            for n, (stamp, text) in enumerate(self.rows('system_metrics', 'timestamp, metrics', run), 1):
                with self.out.part():
                    for key, value in self.parse(text, 'a sample of %s' % called).items():
                        if is_number(value):
                            self.out.later(seconds(stamp), 'points', ['system/' + key, n, seconds(stamp), number(value)])

    def alerts(self, run: Any) -> None:
        with self.out.part():
            for stamp, title, text, level, step in self.rows('alerts', 'timestamp, title, text, level, step', run):
                at = seconds(stamp)
                self.out.later(at, 'alert', [level.upper() if level in ('info', 'warn', 'error') else 'INFO', step or 0, at, title, text or ''])

    def run(self, run: Any, called: str) -> None:
        out = self.out
        config, start = self.settings(run, called)
        out.run(run_id('trackio', self.name, str(run)), self.name, called, start)
        for key, tag in (('_Group', 'trackio.group'), ('_Username', 'trackio.user')):
            if config.get(key):
                out.tag(tag, config[key])
        Values(out, out.later, self.read_media).config({k: v for k, v in config.items() if k not in ('_Group', '_Username', '_Created')})
        at = self.history(run, called, start)
        self.system(run, called)
        self.alerts(run)
        for _ in self.rows('traces', 'id', run):
            out.left_out('a trace')
        out.end('finished', at)

    def all(self) -> None:
        parts = ["SELECT %s AS id, run_name, rowid AS n FROM %s" % (self.key, table) for table in ('metrics', 'configs') if self.key in self.db.columns(table)]
        query = 'SELECT id, max(run_name) FROM (%s) GROUP BY id ORDER BY min(n), id' % ' UNION ALL '.join(parts)
        for run, called in self.db.rows(query):
            with self.out.one_run(called):
                self.run(run, called)
        with self.out.part():
            if self.db.has('artifacts'):
                for name, in self.db.each('artifacts', 'SELECT name FROM artifacts ORDER BY id'):
                    self.out.left_out('an artifact of trackio: %s' % name)


def is_database(path: str) -> bool:
    try:
        return 'run_name' in Database(path).columns('metrics')
    except (Refused, Skipped):
        return False


def write_runs(out: RunWriter, options: argparse.Namespace) -> None:
    source = options.source
    if not os.path.exists(source):
        raise Refused('%s: no such file or folder' % source)
    top = source if os.path.isdir(source) else os.path.dirname(os.path.abspath(source))
    files = Files(out, top, options.files_from)
    paths = [source] if top != source else [os.path.join(source, name) for name in files.names(source) if name.endswith('.db')]
    if not paths:
        raise Refused('%s: contains no .db file of trackio' % source)
    for path in paths:
        try:
            Project(out, path, files).all()
        except (Refused, Skipped) as why:
            if len(paths) == 1:
                raise Refused(str(why), getattr(why, 'status', 1)) from None
            out.left_out(str(why))
