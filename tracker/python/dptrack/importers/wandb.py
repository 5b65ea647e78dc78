# SPDX-License-Identifier: Apache-2.0
"""Reads W&B's runs with its API: all rows of the history, config, summary, tags, notes, console, images, files. Run ids equal
those that `dptrack import` gives to the offline folders of the same runs."""
import datetime
import json
import os

import wandb

from dptrack.importers import Refused, flat, run_id

STATUS = {'finished': 'finished', 'failed': 'failed', 'crashed': 'failed', 'killed': 'killed', 'preempted': 'preempted',
          'preempting': 'running', 'running': 'running', 'pending': 'running'}
WORDS = ('NaN', 'Infinity', '-Infinity')


def seconds(stamp, otherwise=0.0):
    """Parses W&B's UTC time strings; seconds since 1970."""
    if not stamp:
        return otherwise
    at = datetime.datetime.fromisoformat(stamp.replace('Z', '+00:00'))
    return (at if at.tzinfo else at.replace(tzinfo=datetime.timezone.utc)).timestamp()


def is_number(value):
    return isinstance(value, (int, float)) or value in WORDS


class RunReader:
    """Reads one run and writes it to out."""

    def __init__(self, out, run):
        self.out, self.run, self.seen, self.fetched = out, run, set(), set()

    def fetch(self, path):
        """Downloads a file of the run and returns its path; None, reported as left out, when that fails."""
        folder = os.path.join(self.out.folder, self.run.id)
        try:
            self.run.file(path).download(root=folder, replace=True).close()
            return os.path.join(folder, path)
        except Exception as error:  # the types differ between versions
            self.out.left_out('a file of W&B: %s (%s)' % (path, str(error).split('\n')[0][:80]))
            return None

    def picture(self, key, step, at, value):
        path = self.fetch(value['path'])
        if path:
            self.fetched.add(value['path'])
            with open(path, 'rb') as f:
                self.out.image(key, step, at, f.read(), (value['width'], value['height']) if value.get('width') else None)

    def sound(self, key, step, at, value):
        path = self.fetch(value['path'])
        if path:
            self.fetched.add(value['path'])
            self.out.media('audio', key, step, at, {'file': path, 'type': 'audio/wav'})

    def table(self, key, step, at, value):
        path = self.fetch(value['path'])
        if path:
            self.fetched.add(value['path'])
            with open(path, encoding='utf-8') as f:
                table = json.load(f)
            self.out.media('table', key, step, at, {'columns': [str(c) for c in table['columns']], 'data': table['data']})

    def media(self, key, step, at, value):
        kind = value['_type']
        readers = {'image-file': self.picture, 'audio-file': self.sound, 'table-file': self.table}
        if kind in readers and value.get('path'):
            readers[kind](key, step, at, value)
        elif kind == 'histogram' and 'bins' in value:
            self.out.media('histogram', key, step, at, {'values': value['values'], 'bins': value['bins']})
        else:
            self.out.left_out('%s of W&B: %s' % (kind, key))

    def value(self, key, step, at, value):
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

    def history(self):
        """Writes all rows; returns the last step and time."""
        step, at = 0, seconds(self.run.created_at)
        for row in self.run.scan_history():
            step, at = int(row.get('_step', step)), float(row.get('_timestamp', at))
            for key, value in row.items():
                if not key.startswith('_'):
                    self.value(key, step, at, value)
        return step, at

    def summary(self, step, at):
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

    def metadata(self):
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

    def console(self):
        try:
            for line in self.run.console_logs():
                stamp = line.timestamp
                at = stamp.timestamp() if hasattr(stamp, 'timestamp') else seconds(stamp, seconds(self.run.created_at))
                self.out.console(2 if str(line.level).lower() == 'error' else 1, at, str(line.content).rstrip('\r\n'))
        except Exception as error:  # an older server
            self.out.left_out('the console of a run (%s)' % str(error).split('\n')[0][:80])

    def files(self):
        for file in self.run.files():
            if file.name not in self.fetched:
                path = self.fetch(file.name)
                if path:
                    self.out.file(file.name, path)
        for artifact in self.run.logged_artifacts():
            self.out.left_out('artifact of W&B: %s' % artifact.name)
        self.out.left_out('system metrics of a run, which W&B returns only as samples')

    def all(self):
        run = self.run
        self.out.run(run_id('wandb', '%s/%s/%s' % (run.entity, run.project, run.id)), run.project, run.name, seconds(run.created_at))
        self.metadata()
        step, at = self.history()
        self.summary(step, at)
        self.console()
        self.files()
        self.out.end(STATUS.get(run.state, 'finished'), max(at, seconds(getattr(run, 'heartbeat_at', None), at)))


def runs_of(source):
    parts = source.strip('/').split('/')
    if len(parts) not in (2, 3):
        raise Refused('%s: expected ENTITY/PROJECT or ENTITY/PROJECT/RUN' % source)
    api = wandb.Api()
    return [api.run(source)] if len(parts) == 3 else api.runs(source, lazy=False)


def write_runs(out, options):
    try:
        for run in runs_of(options.source):
            with out.one_run(run.id):
                RunReader(out, run).all()
    except wandb.errors.Error as error:
        raise Refused("W&B's API: %s" % str(error).strip().split('\n')[0]) from None
    except ValueError as error:
        raise Refused("W&B's API: %s: %s" % (options.source, str(error).split('\n')[0])) from None
