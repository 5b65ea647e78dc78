# SPDX-License-Identifier: Apache-2.0
"""Reads W&B's runs in the cloud with its API: all rows of the history, config, summary, tags, notes, console, media, files. Run ids
equal those of the offline folders of the same runs."""
from __future__ import annotations

import datetime
import os

import wandb

from dptrack.importers import Refused, Skipped, is_below, is_number, run_id
from dptrack.importers.wandb_files import Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from dptrack.importers import RunWriter

STATUS = {'finished': 'finished', 'failed': 'failed', 'crashed': 'failed', 'killed': 'killed', 'preempted': 'preempted',
          'preempting': 'running', 'running': 'running', 'pending': 'running'}


def seconds(stamp: Any, otherwise: float = 0.0) -> float:
    """Parses W&B's UTC time strings; seconds since 1970."""
    if not stamp:
        return otherwise
    at = datetime.datetime.fromisoformat(stamp.replace('Z', '+00:00'))
    return (at if at.tzinfo else at.replace(tzinfo=datetime.timezone.utc)).timestamp()


class RunReader:
    """Reads one run and writes it to out."""

    def __init__(self, out: RunWriter, run: Any) -> None:
        self.out, self.run = out, run
        self.rows = Rows(out, out.later, self.read_media)
        self.fetched: set[str] = set()

    def fetch(self, path: str) -> str:
        """Downloads a file of the run and returns its path here."""
        folder = os.path.join(self.out.folder, self.run.id)
        if not is_below(self.out.folder, os.path.join(folder, path)):
            raise Skipped('a file of W&B whose name leads out of its run: %s' % path)
        try:
            self.run.file(path).download(root=folder, replace=True).close()
        except Exception as error:  # the types differ between versions
            raise Skipped('a file of W&B: %s (%s)' % (path, str(error).split('\n')[0][:80])) from None
        return os.path.join(folder, path)

    def read_media(self, path: str) -> tuple[bytes, str]:
        here = self.fetch(path)
        self.fetched.add(path)
        with open(here, 'rb') as f:
            return f.read(), here

    def history(self) -> None:
        rows = self.rows
        rows.at = seconds(self.run.created_at)
        for row in self.run.scan_history():
            rows.write_row(row, int(row.get('_step', rows.step)), float(row.get('_timestamp', rows.at)))

    def summary(self) -> None:
        summary = dict(self.run.summary_metrics)
        if STATUS.get(self.run.state) == 'running':  # it would be another point of the run each time
            for key in [key for key, value in summary.items() if is_number(value) and key not in self.rows.last and not key.startswith('_')]:
                self.out.left_out('a number only in the summary of a running run: %s' % key)
                del summary[key]
        self.rows.summary(summary)

    def metadata(self) -> None:
        run, out = self.run, self.out
        self.rows.config(run.config)
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
                with self.out.part():
                    self.out.file(file.name, self.fetch(file.name))
        for artifact in self.run.logged_artifacts():
            self.out.left_out('artifact of W&B: %s' % artifact.name)
        self.out.left_out('system metrics of a run, which W&B returns only as samples')

    def all(self) -> None:
        run = self.run
        self.out.run(run_id('wandb', '%s/%s/%s' % (run.entity, run.project, run.id)), run.project, run.name, seconds(run.created_at))
        self.metadata()
        self.history()
        self.summary()
        self.console()
        self.files()
        at = self.rows.at
        self.out.end(STATUS.get(run.state, 'finished'), max(at, seconds(getattr(run, 'heartbeat_at', None), at)))


def runs_of(source: str) -> Any:
    parts = source.strip('/').split('/')
    if len(parts) not in (2, 3):
        raise Refused('%s: no such file or folder, nor ENTITY/PROJECT or ENTITY/PROJECT/RUN' % source)
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
