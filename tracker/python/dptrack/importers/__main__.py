# SPDX-License-Identifier: Apache-2.0
"""The command line of python -m dptrack.importers."""
from __future__ import annotations

import argparse
import importlib
import os
import shutil
import subprocess
import sys
import tempfile

from dptrack.importers import Refused, RunWriter, neptune_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TRACKERS = {'aim': ('REPOSITORY', 'a folder that contains .aim, or .aim itself; requires the package aim'),
            'neptune': ('DATA', "the Parquet files that neptune-exporter wrote; requires the package pyarrow"),
            'wandb': ('PROJECT', 'ENTITY/PROJECT, or ENTITY/PROJECT/RUN for one run; requires the package wandb and its login')}
PACKAGES = {'aim': 'aim', 'neptune': 'pyarrow', 'wandb': 'wandb'}


def parse(words: Any) -> Any:
    parser = argparse.ArgumentParser(prog='python -m dptrack.importers', description='Imports the runs of another tracker. '
                                     'Run ids are kept as tags, a repeated import adds nothing, and skipped data is listed.')
    parsers = parser.add_subparsers(dest='tracker', required=True)
    for name, (word, what) in TRACKERS.items():
        one = parsers.add_parser(name, help=what)
        one.add_argument('source', metavar=word, help=what)
        if name == 'neptune':
            one.add_argument('--files', metavar='FOLDER', help='where neptune-exporter put the files (default: the folder files next to DATA)')
        if name == 'aim':
            one.add_argument('--files-from', metavar='DIR', action='append', default=[], help='also import artifacts that Aim has below DIR; '
                             'may be repeated (default: only below REPOSITORY)')
        one.add_argument('--logdir', metavar='DIR', help='write the runs into this folder (default: $DPTRACK_RUNS_DIR, else runs)')
        one.add_argument('--url', metavar='URL', help='send the runs to this server instead')
        one.add_argument('--experiment', metavar='NAME', help='experiment of all imported runs (default: as in the source)')
        one.add_argument('--out', metavar='FILE', help='import nothing; write FILE for `dptrack import FILE`, with media '
                         'in FILE.files')
    return parser.parse_args(words)


def find_reader(options: argparse.Namespace) -> Any:
    """Returns write_runs(out, options) of the tracker's module."""
    try:
        return importlib.import_module('dptrack.importers.' + options.tracker).write_runs
    except ModuleNotFoundError as error:
        if (error.name or '').partition('.')[0] not in (PACKAGES[options.tracker], options.tracker):
            raise
        raise Refused('reading %s requires a package: pip install %s' % (options.tracker, PACKAGES[options.tracker])) from None


def folders_of(options: argparse.Namespace) -> list[str]:
    """The folders that the source may name files in."""
    if options.tracker == 'aim':
        top = os.path.abspath(options.source)
        return [os.path.dirname(top) if os.path.basename(top) == '.aim' else top, *options.files_from]
    return [options.files or neptune_files(options.source)] if options.tracker == 'neptune' else []


def importer(options: argparse.Namespace, folder: str) -> Any:
    """The command that reads the JSON lines. folder: of the media."""
    program = os.environ.get('DPTRACK_PROGRAM') or shutil.which('dptrack')
    if not program:
        raise Refused('the program dptrack is not on PATH: put it there, set DPTRACK_PROGRAM to its path, or use --out FILE and import that '
                      'file elsewhere')
    words = [program, 'import', '-', '--files-from', folder]
    for one in folders_of(options):
        words += ['--files-from', one]
    if options.url:
        words += ['--url', options.url]
    else:
        words += ['--logdir', options.logdir or os.environ.get('DPTRACK_RUNS_DIR') or 'runs']
    return words + (['--experiment', options.experiment] if options.experiment else [])


def import_runs(options: argparse.Namespace, write_runs: Any) -> Any:
    """Returns the exit status of `dptrack import`."""
    if options.out:
        os.makedirs(options.out + '.files', exist_ok=True)
        with open(options.out, 'w', encoding='utf-8') as f:
            write_runs(RunWriter(f, os.path.abspath(options.out) + '.files'), options)
        return 0
    with tempfile.TemporaryDirectory(prefix='dptrack-importers.') as folder:
        process = subprocess.Popen(importer(options, folder), stdin=subprocess.PIPE, text=True, encoding='utf-8')
        assert process.stdin
        try:
            with process.stdin:
                write_runs(RunWriter(process.stdin, folder), options)
        except BrokenPipeError:  # it has printed the reason
            pass
        return process.wait()


def main(words: Any) -> Any:
    options = parse(words)
    try:
        return import_runs(options, find_reader(options))
    except Refused as error:
        print('dptrack.importers: error: %s' % error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
