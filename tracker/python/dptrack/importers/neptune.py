"""Neptune's runs, from the Parquet files that its own neptune-exporter wrote: a file (or several parts) a run, a row an
attribute or a point of a series. Neptune's servers are gone; what was exported is all there is."""
import glob
import os

import pyarrow.parquet

from dptrack.bring import Refused, run_id

PARAMS = {'float': 'float_value', 'int': 'int_value', 'string': 'string_value', 'bool': 'bool_value', 'datetime': 'datetime_value',
          'string_set': 'string_set_value'}
PICTURES = ('.png', '.jpg', '.jpeg', '.gif')
DECIMALS = 6  # of a step


def parts_of(folder):
    """[(project, run, [paths])] of all runs below the folder, parts in their order."""
    found = {}
    for path in glob.glob(os.path.join(glob.escape(folder), '**', '*.parquet'), recursive=True):
        try:
            names = pyarrow.parquet.ParquetFile(path)
            first = next(names.iter_batches(batch_size=1, columns=['project_id', 'run_id']), None)
        except (pyarrow.ArrowException, KeyError, OSError) as error:
            raise Refused('%s is no Parquet file of neptune-exporter: %s' % (path, str(error).split('\n')[0])) from None
        if first is not None and first.num_rows:
            row = first.to_pylist()[0]
            found.setdefault((row['project_id'], row['run_id']), []).append(path)
    if not found:
        raise Refused('%s holds no Parquet files of neptune-exporter' % folder)
    return [(*run, sorted(found[run], key=part_number)) for run in sorted(found)]


def part_number(path):
    digits = os.path.basename(path).rpartition('part_')[2].partition('.')[0]
    return int(digits) if digits.isdigit() else 0


def rows_of(paths):
    for path in paths:
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()


class Attributes:
    """What stands once in a run, and how finely its steps are cut."""

    def __init__(self, paths):
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

    def system(self, name):
        return self.known.get('sys/' + name)

    def time(self, *names):
        """The first of these attributes that is there, in seconds since 1970."""
        return next((self.system(n).timestamp() for n in names if hasattr(self.system(n), 'timestamp')), None)

    def start(self):
        return self.time('creation_time') or (self.first.timestamp() if self.first else 0.0)

    def end(self):
        return self.time('modification_time', 'ping_time') or (self.last.timestamp() if self.last else self.start())

    def status(self):
        if str(self.system('state')).lower() in ('active', 'running'):
            return 'running'
        return 'failed' if self.system('failed') else 'finished'


class Teller:
    """Tells the rows of one run."""

    def __init__(self, told, attributes, files):
        self.told, self.attributes, self.files = told, attributes, files

    def step(self, row):
        return int(row['step'].scaleb(self.attributes.decimals)) if row['step'] is not None else 0

    def at(self, row):
        return row['timestamp'].timestamp() if row['timestamp'] is not None else self.attributes.start()

    def path_of(self, row):
        """Of the row's file on this machine; None, which is said, without one."""
        named = (row['file_value'] or {}).get('path')
        path = os.path.join(self.files, named) if named else None
        if path and os.path.exists(path):
            return path
        self.told.left_out('a file that is not below %s: %s' % (self.files, named or row['attribute_path']))
        return None

    def float_series(self, row):
        self.told.point(row['attribute_path'], self.step(row), self.at(row), row['float_value'])

    def string_series(self, row):
        key, text = row['attribute_path'], row['string_value'] or ''
        stream = {'stdout': 1, 'stderr': 2}.get(key.rpartition('/')[2]) if key.startswith(('monitoring/', 'runtime/')) else None
        if stream:
            self.told.console(stream, self.at(row), text.rstrip('\r\n'))
        else:
            self.told.media('text', key, self.step(row), self.at(row), {'text': text})

    def histogram_series(self, row):
        value = row['histogram_value']
        self.told.media('histogram', row['attribute_path'], self.step(row), self.at(row), {'values': value['values'], 'bins': value['edges']})

    def file(self, row):
        path = self.path_of(row)
        if path:
            name = row['attribute_path']
            self.told.file(name if os.path.splitext(name)[1] or os.path.isdir(path) else name + os.path.splitext(path)[1], path)

    def file_series(self, row):
        path = self.path_of(row)
        if not path:
            return
        ending = os.path.splitext(path)[1].lower()
        if ending in PICTURES:
            with open(path, 'rb') as f:
                self.told.image(row['attribute_path'], self.step(row), self.at(row), f.read())
        else:
            self.told.file('%s/%d%s' % (row['attribute_path'], self.step(row), ending), path)

    artifact = file_set = file

    def row(self, row):
        kind = row['attribute_type']
        if kind in PARAMS:
            return
        tell_one = getattr(self, kind, None) if kind in ('float_series', 'string_series', 'histogram_series', 'file', 'file_series',
                                                         'file_set', 'artifact') else None
        if tell_one:
            tell_one(row)
        else:
            self.told.left_out('%s of Neptune: %s' % (kind, row['attribute_path']))


def tell_attributes(told, attributes, run):
    told.tag('neptune.run_id', run)
    for name, value in sorted(attributes.known.items()):
        if value is None:
            continue
        if not name.startswith('sys/'):
            told.param(name, sorted(value) if isinstance(value, (list, tuple, set)) else value)
        elif name in ('sys/tags', 'sys/group_tags'):
            for word in value:
                told.tag(word)
        elif name == 'sys/description':
            told.note(str(value))
        elif name not in ('sys/name', 'sys/creation_time', 'sys/modification_time', 'sys/ping_time', 'sys/state', 'sys/failed'):
            told.tag('neptune.' + name[len('sys/'):], value)
    if attributes.decimals:
        told.tag('neptune.steps_a_whole', 10 ** attributes.decimals)


def tell_run(told, project, run, paths, files):
    attributes = Attributes(paths)
    told.run(run_id('neptune', project, run), project, str(attributes.system('name') or run), attributes.start())
    tell_attributes(told, attributes, run)
    teller = Teller(told, attributes, files)
    for row in rows_of(paths):
        teller.row(row)
    told.end(attributes.status(), attributes.end())


def tell(told, options):
    files = options.files or os.path.join(os.path.dirname(os.path.abspath(options.source)), 'files')
    for project, run, paths in parts_of(options.source):
        with told.one_run(run):
            tell_run(told, project, run, paths, files)
