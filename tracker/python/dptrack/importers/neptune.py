# SPDX-License-Identifier: Apache-2.0
"""Reads Neptune's runs from the Parquet files of neptune-exporter: one file (or several parts) per run, one row per attribute
or point of a series."""
from __future__ import annotations

import glob
import os

import pyarrow.parquet

from dptrack.importers import Refused, is_below, neptune_files, run_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import Any

    from dptrack.importers import RunWriter

PARAMS = {'float': 'float_value', 'int': 'int_value', 'string': 'string_value', 'bool': 'bool_value', 'datetime': 'datetime_value',
          'string_set': 'string_set_value'}
PICTURES = ('.png', '.jpg', '.jpeg', '.gif')
DECIMALS = 6  # of a step


def parts_of(folder: str) -> Any:
    """Returns [(project, run, [paths])] of all runs below the folder, with the parts in order."""
    found: dict[Any, list[str]] = {}
    for path in glob.glob(os.path.join(glob.escape(folder), '**', '*.parquet'), recursive=True):
        try:
            names = pyarrow.parquet.ParquetFile(path)
            first = next(names.iter_batches(batch_size=1, columns=['project_id', 'run_id']), None)
        except (pyarrow.ArrowException, KeyError, OSError) as error:
            raise Refused('%s: not a Parquet file of neptune-exporter: %s' % (path, str(error).split('\n')[0])) from None
        if first is not None and first.num_rows:
            row = first.to_pylist()[0]
            found.setdefault((row['project_id'], row['run_id']), []).append(path)
    if not found:
        raise Refused('%s: no Parquet files of neptune-exporter found' % folder)
    return [(*run, sorted(found[run], key=part_number)) for run in sorted(found)]


def part_number(path: str) -> Any:
    digits = os.path.basename(path).rpartition('part_')[2].partition('.')[0]
    return int(digits) if digits.isdigit() else 0


def rows_of(paths: Any) -> Iterator[Any]:
    for path in paths:
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()


class Attributes:
    """Attributes with a single value in a run, and the number of decimals of its steps."""

    def __init__(self, paths: Any) -> None:
        self.known, self.decimals, self.first, self.last = {}, 0, None, None
        for row in rows_of(paths):
            kind = row['attribute_type']
            if kind in PARAMS:
                self.known[row['attribute_path']] = row[PARAMS[kind]]
            step, at = row['step'], row['timestamp']
            if step is not None:
                self.decimals = max(self.decimals, -step.normalize().as_tuple().exponent)
            if at is not None:
                self.first = min(self.first or at, at)
                self.last = max(self.last or at, at)

    def system(self, name: str) -> Any:
        return self.known.get('sys/' + name)

    def time(self, *names: Any) -> Any:
        """The first of these attributes that exists, in seconds since 1970."""
        return next((self.system(n).timestamp() for n in names if hasattr(self.system(n), 'timestamp')), None)

    def start(self) -> Any:
        return self.time('creation_time') or (self.first.timestamp() if self.first else 0.0)

    def end(self) -> Any:
        return self.time('modification_time', 'ping_time') or (self.last.timestamp() if self.last else self.start())

    def status(self) -> Any:
        if str(self.system('state')).lower() in ('active', 'running'):
            return 'running'
        return 'failed' if self.system('failed') else 'finished'


class RowWriter:
    """Writes the rows of one run."""

    def __init__(self, out: RunWriter, attributes: Any, files: Any) -> None:
        self.out, self.attributes, self.files = out, attributes, files

    def step(self, row: Any) -> Any:
        return int(row['step'].scaleb(self.attributes.decimals)) if row['step'] is not None else 0

    def at(self, row: Any) -> Any:
        return row['timestamp'].timestamp() if row['timestamp'] is not None else self.attributes.start()

    def path_of(self, row: Any) -> Any:
        """Local path of the row's file; None, reported as left out, when it is missing or outside."""
        named = (row['file_value'] or {}).get('path')
        path = os.path.join(self.files, named) if named else None
        if path and os.path.exists(path) and is_below(self.files, path):
            return path
        self.out.left_out('a file that is not below %s: %s' % (self.files, named or row['attribute_path']))
        return None

    def float_series(self, row: Any) -> None:
        self.out.point(row['attribute_path'], self.step(row), self.at(row), row['float_value'])

    def string_series(self, row: Any) -> None:
        key, text = row['attribute_path'], row['string_value'] or ''
        stream = {'stdout': 1, 'stderr': 2}.get(key.rpartition('/')[2]) if key.startswith(('monitoring/', 'runtime/')) else None
        if stream:
            self.out.console(stream, self.at(row), text.rstrip('\r\n'))
        else:
            self.out.media('text', key, self.step(row), self.at(row), {'text': text})

    def histogram_series(self, row: Any) -> None:
        value = row['histogram_value']
        self.out.media('histogram', row['attribute_path'], self.step(row), self.at(row), {'values': value['values'], 'bins': value['edges']})

    def file(self, row: Any) -> None:
        path = self.path_of(row)
        if path:
            name = row['attribute_path']
            self.out.file(name if os.path.splitext(name)[1] or os.path.isdir(path) else name + os.path.splitext(path)[1], path)

    def file_series(self, row: Any) -> None:
        path = self.path_of(row)
        if not path:
            return
        ending = os.path.splitext(path)[1].lower()
        if ending in PICTURES:
            with open(path, 'rb') as f:
                self.out.image(row['attribute_path'], self.step(row), self.at(row), f.read())
        else:
            self.out.file('%s/%d%s' % (row['attribute_path'], self.step(row), ending), path)

    artifact = file_set = file

    def row(self, row: Any) -> None:
        kind = row['attribute_type']
        if kind in PARAMS:
            return
        write_one = getattr(self, kind, None) if kind in ('float_series', 'string_series', 'histogram_series', 'file', 'file_series',
                                                         'file_set', 'artifact') else None
        if write_one:
            write_one(row)
        else:
            self.out.left_out('%s of Neptune: %s' % (kind, row['attribute_path']))


def write_attributes(out: RunWriter, attributes: Any, run: Any) -> None:
    out.tag('neptune.run_id', run)
    for name, value in sorted(attributes.known.items()):
        if value is None:
            continue
        if not name.startswith('sys/'):
            out.param(name, sorted(value) if isinstance(value, (list, tuple, set)) else value)
        elif name in ('sys/tags', 'sys/group_tags'):
            for word in value:
                out.tag(word)
        elif name == 'sys/description':
            out.note(str(value))
        elif name not in ('sys/name', 'sys/creation_time', 'sys/modification_time', 'sys/ping_time', 'sys/state', 'sys/failed'):
            out.tag('neptune.' + name[len('sys/'):], value)
    if attributes.decimals:
        out.tag('neptune.steps_a_whole', 10 ** attributes.decimals)


def write_run(out: RunWriter, project: Any, run: Any, paths: Any, files: Any) -> None:
    attributes = Attributes(paths)
    out.run(run_id('neptune', project, run), project, str(attributes.system('name') or run), attributes.start())
    write_attributes(out, attributes, run)
    rows = RowWriter(out, attributes, files)
    for row in rows_of(paths):
        rows.row(row)
    out.end(attributes.status(), attributes.end())


def write_runs(out: RunWriter, options: argparse.Namespace) -> None:
    files = options.files or neptune_files(options.source)
    for project, run, paths in parts_of(options.source):
        with out.one_run(run):
            write_run(out, project, run, paths, files)
