# SPDX-License-Identifier: Apache-2.0
"""Reads W&B's runs with its API: all rows of the history, config, summary, tags, notes, console, images, files. Run ids equal
those that `dptrack import` gives to the offline folders of the same runs."""
from __future__ import annotations

import datetime
import json
import os

import wandb

from dptrack.importers import Refused, flat, is_below, run_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from dptrack.importers import RunWriter

STATUS = {'finished': 'finished', 'failed': 'failed', 'crashed': 'failed', 'killed': 'killed', 'preempted': 'preempted',
          'preempting': 'running', 'running': 'running', 'pending': 'running'}
WORDS = ('NaN', 'Infinity', '-Infinity')


def seconds(stamp: Any, otherwise : Any= 0.0) -> Any:
    """Parses W&B's UTC time strings; seconds since 1970."""
    if not stamp:
        return otherwise
    at = datetime.datetime.fromisoformat(stamp.replace('Z', '+00:00'))
    return (at if at.tzinfo else at.replace(tzinfo=datetime.timezone.utc)).timestamp()


def is_number(value: Any) -> Any:
    return isinstance(value, (int, float)) or value in WORDS


class RunReader:
    """Reads one run and writes it to out."""

    def __init__(self, out: RunWriter, run: Any) -> None:
        self.out, self.run = out, run
        self.seen: set[Any] = set()
        self.fetched: set[Any] = set()

    def fetch(self, path: str) -> Any:
        """Downloads a file of the run and returns its path; None, reported as left out, when that fails."""
        folder = os.path.join(self.out.folder, self.run.id)
        if not is_below(self.out.folder, os.path.join(folder, path)):
            self.out.left_out('a file of W&B whose name leads out of its run: %s' % path)
            return None
        try:
            self.run.file(path).download(root=folder, replace=True).close()
            return os.path.join(folder, path)
        except Exception as error:  # the types differ between versions
            self.out.left_out('a file of W&B: %s (%s)' % (path, str(error).split('\n')[0][:80]))
            return None

    def picture(self, key: str, step: int, at: Any, value: Any) -> None:
        path = self.fetch(value['path'])
        if path:
            self.fetched.add(value['path'])
            with open(path, 'rb') as f:
                self.out.image(key, step, at, f.read(), (value['width'], value['height']) if value.get('width') else None)

    def sound(self, key: str, step: int, at: Any, value: Any) -> None:
        path = self.fetch(value['path'])
        if path:
            self.fetched.add(value['path'])
            self.out.media('audio', key, step, at, {'file': path, 'type': 'audio/wav'})

    def table(self, key: str, step: int, at: Any, value: Any) -> None:
        path = self.fetch(value['path'])
        if path:
            self.fetched.add(value['path'])
            with open(path, encoding='utf-8') as f:
                table = json.load(f)
            self.out.media('table', key, step, at, {'columns': [str(c) for c in table['columns']], 'data': table['data']})

    def media(self, key: str, step: int, at: Any, value: Any) -> None:
        kind = value['_type']
        readers = {'image-file': self.picture, 'audio-file': self.sound, 'table-file': self.table}
        if kind in readers and value.get('path'):
            readers[kind](key, step, at, value)
        elif kind == 'histogram' and 'bins' in value:
            self.out.media('histogram', key, step, at, {'values': value['values'], 'bins': value['bins']})
        else:
            self.out.left_out('%s of W&B: %s' % (kind, key))

    def value(self, key: str, step: int, at: Any, value: Any) -> None:
        if is_number(value):
            self.seen.add(key)
            self.out.point(key, step, at, value)
        elif isinstance(value, dict) and '_type' in value:
            self.seen.add(key)
            self.media(key, step, at, value)
        elif isinstance(value, dict):
            for name, inner in value.items():
                self.value('%s.%s' % (key, name), step, at, inner)
        elif value is not None:
            self.seen.add(key)
            self.out.left_out('a text or list in the history: %s' % key)

    def history(self) -> Any:
        """Writes all rows; returns the last step and time."""
        step, at = 0, seconds(self.run.created_at)
        for row in self.run.scan_history():
            step, at = int(row.get('_step', step)), float(row.get('_timestamp', at))
            for key, value in row.items():
                if not key.startswith('_'):
                    self.value(key, step, at, value)
        return step, at

    def summary(self, step: int, at: Any) -> None:
        for key, value in self.run.summary_metrics.items():
            if key.startswith('_') or key in self.seen:
                continue
            if is_number(value) and STATUS.get(self.run.state) == 'running':
                self.out.left_out('a number only in the summary of a running run: %s' % key)
            elif is_number(value):
                self.out.final(key, step, at, value)
            elif isinstance(value, str):
                self.out.tag(key, value)
            elif not isinstance(value, dict):
                self.out.left_out('a list in the summary: %s' % key)

    def metadata(self) -> None:
        run, out = self.run, self.out
        for key, value in flat(run.config):
            out.param(key, value)
        for word in run.tags or ():
            out.tag(word)
        for tag, value in (('run_id', run.id), ('entity', run.entity), ('group', run.group), ('job_type', run.job_type)):
            if value:
                out.tag('wandb.' + tag, value)
        if run.notes:
            out.note(run.notes)

    def console(self) -> None:
        try:
            for line in self.run.console_logs():
                stamp = line.timestamp
                at = stamp.timestamp() if hasattr(stamp, 'timestamp') else seconds(stamp, seconds(self.run.created_at))
                self.out.console(2 if str(line.level).lower() == 'error' else 1, at, str(line.content).rstrip('\r\n'))
        except Exception as error:  # an older server
            self.out.left_out('the console of a run (%s)' % str(error).split('\n')[0][:80])

    def files(self) -> None:
        for file in self.run.files():
            if file.name not in self.fetched:
                path = self.fetch(file.name)
                if path:
                    self.out.file(file.name, path)
        for artifact in self.run.logged_artifacts():
            self.out.left_out('artifact of W&B: %s' % artifact.name)
        self.out.left_out('system metrics of a run, which W&B returns only as samples')

    def all(self) -> None:
        run = self.run
        self.out.run(run_id('wandb', '%s/%s/%s' % (run.entity, run.project, run.id)), run.project, run.name, seconds(run.created_at))
        self.metadata()
        step, at = self.history()
        self.summary(step, at)
        self.console()
        self.files()
        self.out.end(STATUS.get(run.state, 'finished'), max(at, seconds(getattr(run, 'heartbeat_at', None), at)))


def runs_of(source: str) -> Any:
    parts = source.strip('/').split('/')
    if len(parts) not in (2, 3):
        raise Refused('%s: expected ENTITY/PROJECT or ENTITY/PROJECT/RUN' % source)
    api = wandb.Api()
    return [api.run(source)] if len(parts) == 3 else api.runs(source, lazy=False)


def write_runs(out: RunWriter, options: argparse.Namespace) -> None:
    try:
        for run in runs_of(options.source):
            with out.one_run(run.id):
                RunReader(out, run).all()
    except wandb.errors.Error as error:
        raise Refused("W&B's API: %s" % str(error).strip().split('\n')[0]) from None
    except ValueError as error:
        raise Refused("W&B's API: %s: %s" % (options.source, str(error).split('\n')[0])) from None
