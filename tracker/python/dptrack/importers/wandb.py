"""W&B's runs, by its own API: every row of the history, config, summary, tags, notes, the console, pictures, files. The same ids
as `dptrack import` gives to the offline folders of the same runs."""
import datetime
import json
import os

import wandb

from dptrack.bring import Refused, flat, run_id

STATUS = {'finished': 'finished', 'failed': 'failed', 'crashed': 'failed', 'killed': 'killed', 'preempted': 'preempted',
          'preempting': 'running', 'running': 'running', 'pending': 'running'}
WORDS = ('NaN', 'Infinity', '-Infinity')


def seconds(stamp, otherwise=0.0):
    """Of W&B's UTC times as text."""
    if not stamp:
        return otherwise
    at = datetime.datetime.fromisoformat(stamp.replace('Z', '+00:00'))
    return (at if at.tzinfo else at.replace(tzinfo=datetime.timezone.utc)).timestamp()


def is_number(value):
    return isinstance(value, (int, float)) or value in WORDS


class Teller:
    """Tells one run."""

    def __init__(self, told, run):
        self.told, self.run, self.seen, self.taken = told, run, set(), set()

    def fetch(self, path):
        """A file of the run, on this machine; None, which is said, where it cannot be had."""
        folder = os.path.join(self.told.folder, self.run.id)
        try:
            self.run.file(path).download(root=folder, replace=True).close()
            return os.path.join(folder, path)
        except Exception as error:  # its types differ from version to version
            self.told.left_out('a file of W&B: %s (%s)' % (path, str(error).split('\n')[0][:80]))
            return None

    def picture(self, key, step, at, value):
        path = self.fetch(value['path'])
        if path:
            self.taken.add(value['path'])
            with open(path, 'rb') as f:
                self.told.image(key, step, at, f.read(), (value['width'], value['height']) if value.get('width') else None)

    def sound(self, key, step, at, value):
        path = self.fetch(value['path'])
        if path:
            self.taken.add(value['path'])
            self.told.media('audio', key, step, at, {'file': path, 'type': 'audio/wav'})

    def table(self, key, step, at, value):
        path = self.fetch(value['path'])
        if path:
            self.taken.add(value['path'])
            with open(path, encoding='utf-8') as f:
                held = json.load(f)
            self.told.media('table', key, step, at, {'columns': [str(c) for c in held['columns']], 'data': held['data']})

    def media(self, key, step, at, value):
        kind = value['_type']
        tellers = {'image-file': self.picture, 'audio-file': self.sound, 'table-file': self.table}
        if kind in tellers and value.get('path'):
            tellers[kind](key, step, at, value)
        elif kind == 'histogram' and 'bins' in value:
            self.told.media('histogram', key, step, at, {'values': value['values'], 'bins': value['bins']})
        else:
            self.told.left_out('%s of W&B: %s' % (kind, key))

    def value(self, key, step, at, value):
        if is_number(value):
            self.seen.add(key)
            self.told.point(key, step, at, value)
        elif isinstance(value, dict) and '_type' in value:
            self.seen.add(key)
            self.media(key, step, at, value)
        elif isinstance(value, dict):
            for name, inner in value.items():
                self.value('%s.%s' % (key, name), step, at, inner)
        elif value is not None:
            self.seen.add(key)
            self.told.left_out('a text or list in the history: %s' % key)

    def history(self):
        """The last step and time."""
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
                self.told.left_out('a number of the summary alone, of a run that goes on: %s' % key)
            elif is_number(value):
                self.told.final(key, step, at, value)
            elif isinstance(value, str):
                self.told.tag(key, value)
            elif not isinstance(value, dict):
                self.told.left_out('a list in the summary: %s' % key)

    def facts(self):
        run, told = self.run, self.told
        for key, value in flat(run.config):
            told.param(key, value)
        for word in run.tags or ():
            told.tag(word)
        for tag, value in (('run_id', run.id), ('entity', run.entity), ('group', run.group), ('job_type', run.job_type)):
            if value:
                told.tag('wandb.' + tag, value)
        if run.notes:
            told.note(run.notes)

    def console(self):
        try:
            for line in self.run.console_logs():
                told_at = line.timestamp
                at = told_at.timestamp() if hasattr(told_at, 'timestamp') else seconds(told_at, seconds(self.run.created_at))
                self.told.console(2 if str(line.level).lower() == 'error' else 1, at, str(line.content).rstrip('\r\n'))
        except Exception as error:  # an older server
            self.told.left_out('what a run printed (%s)' % str(error).split('\n')[0][:80])

    def files(self):
        for file in self.run.files():
            if file.name not in self.taken:
                path = self.fetch(file.name)
                if path:
                    self.told.file(file.name, path)
        for artifact in self.run.logged_artifacts():
            self.told.left_out('artifact of W&B: %s' % artifact.name)
        self.told.left_out('the machine\'s own series of a run, of which W&B hands out samples only')

    def all(self):
        run = self.run
        self.told.run(run_id('wandb', '%s/%s/%s' % (run.entity, run.project, run.id)), run.project, run.name, seconds(run.created_at))
        self.facts()
        step, at = self.history()
        self.summary(step, at)
        self.console()
        self.files()
        self.told.end(STATUS.get(run.state, 'finished'), max(at, seconds(getattr(run, 'heartbeat_at', None), at)))


def runs_of(source):
    parts = source.strip('/').split('/')
    if len(parts) not in (2, 3):
        raise Refused('%s is neither ENTITY/PROJECT nor ENTITY/PROJECT/RUN' % source)
    api = wandb.Api()
    return [api.run(source)] if len(parts) == 3 else api.runs(source, lazy=False)


def tell(told, options):
    try:
        for run in runs_of(options.source):
            with told.one_run(run.id):
                Teller(told, run).all()
    except wandb.errors.Error as error:
        raise Refused("W&B's API: %s" % str(error).strip().split('\n')[0]) from None
    except ValueError as error:
        raise Refused("W&B's API, of %s: %s" % (options.source, str(error).split('\n')[0])) from None
