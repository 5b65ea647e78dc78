# SPDX-License-Identifier: Apache-2.0
"""The command line of python -m dptrack.importers."""
from __future__ import annotations

import argparse
import importlib
import os
import signal
import subprocess
import sys
import tempfile

from dptrack._program import find_program
from dptrack.importers import Refused, RunWriter, Skipped, WriteFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

TRACKERS = {'mlflow': ('SOURCE', 'mlflow.db, a folder mlruns, the folder above either, or the address of a server'),
            'wandb': ('SOURCE', 'a folder wandb or a .wandb file; or ENTITY/PROJECT, ENTITY/PROJECT/RUN, which require the package wandb '
                      'and its login'),
            'aim': ('REPOSITORY', 'a folder that contains .aim, or .aim itself; requires the package aim'),
            'trackio': ('SOURCE', "trackio's folder, or one of its .db files")}


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='python -m dptrack.importers', description='Imports the runs of another tracker. '
                                     'Run ids are kept, a repeated import adds only what is new, and skipped data are listed.')
    parsers = parser.add_subparsers(dest='tracker', required=True, metavar='{%s}' % ','.join(TRACKERS))
    for name, (word, what) in (*TRACKERS.items(), ('sqlite', ('FILE', ''))):
        one = parsers.add_parser(name, help=what, description=what) if what else parsers.add_parser(name)
        one.add_argument('source', metavar=word, help=what)
        one.add_argument('--files-from', metavar='DIR', action='append', default=[], help='also import files that the source names below '
                         'DIR; may be repeated (default: only below %s)' % word)
        one.add_argument('--logdir', metavar='DIR', help='write the runs into this folder (default: $DPTRACK_RUNS_DIR, else runs)')
        one.add_argument('--url', metavar='URL', help='send the runs to this server instead')
        one.add_argument('--experiment', metavar='NAME', help='experiment of all imported runs (default: as in the source)')
        one.add_argument('--out', metavar='FILE', help='import nothing; write FILE for `dptrack import FILE`, with media '
                         'in FILE.files')
    return parser.parse_args(words)


def find_reader(options: argparse.Namespace) -> Callable[[RunWriter, argparse.Namespace], None]:
    """Returns write_runs(out, options) of the tracker's module. A SQLite file is known by its tables."""
    name = options.tracker
    if name == 'sqlite':
        from dptrack.importers.trackio import is_database
        name = 'trackio' if is_database(options.source) else 'mlflow'
    elif name == 'wandb' and os.path.exists(options.source):
        name = 'wandb_files'
    elif name == 'wandb' and '/' not in options.source.strip('/'):
        raise Refused('%s: no such file or folder, nor ENTITY/PROJECT' % options.source)
    try:
        reader: Callable[[RunWriter, argparse.Namespace], None] = importlib.import_module('dptrack.importers.' + name).write_runs
        return reader
    except ModuleNotFoundError as error:
        if (error.name or '').partition('.')[0] != name:
            raise
        raise Refused('%s: reading it requires a package: %s -m pip install %s' % (options.source, sys.executable, name)) from None


def folders_of(options: argparse.Namespace) -> list[str]:
    """The folders in which the source may name files."""
    source = os.path.abspath(options.source)
    if not os.path.exists(source):
        return list(options.files_from)
    is_part = not os.path.isdir(source) or os.path.basename(source) == '.aim'
    return [os.path.dirname(source) if is_part else source, *options.files_from]


def command(options: argparse.Namespace, folder: str) -> list[str]:
    """The command that reads the JSON lines. folder: of the media."""
    program = find_program()
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


def write_file(options: argparse.Namespace) -> None:
    folder = os.path.abspath(options.out) + '.files'
    os.makedirs(folder, exist_ok=True)
    with open(options.out, 'w', encoding='utf-8') as f:
        out = RunWriter(lambda: f, folder, options.source)
        find_reader(options)(out, options)
        out.begin()


def import_runs(options: argparse.Namespace) -> int:
    """Returns the exit status of `dptrack import`, which starts with the first line."""
    write_runs, process = find_reader(options), None
    with tempfile.TemporaryDirectory(prefix='dptrack-importers.') as folder:
        def start() -> IO[str]:
            nonlocal process
            process = subprocess.Popen(command(options, folder), stdin=subprocess.PIPE, text=True, encoding='utf-8')
            assert process.stdin
            return process.stdin
        try:
            out = RunWriter(start, folder, options.source)
            write_runs(out, options)
            out.begin().close()
        except (BrokenPipeError, WriteFailed) as error:  # a command that has ended has printed why
            if process is None or not isinstance(error.__cause__ or error, BrokenPipeError):
                raise Refused('cannot pass the runs on: %s' % error, 1) from None
        finally:
            status = close(process)
        return status


def close(process: subprocess.Popen[str] | None) -> int:
    """Waits for the command's end, after the end of its input."""
    if process is None:
        return 0
    try:
        if process.stdin:
            process.stdin.close()
    except OSError:
        pass
    return process.wait()


def main(words: list[str]) -> int:
    options = parse(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that temporary files go
    try:
        if options.out:
            write_file(options)
            return 0
        return import_runs(options)
    except (Refused, Skipped) as error:
        print('dptrack: error: %s' % error, file=sys.stderr)
        return getattr(error, 'status', 1)
    except KeyboardInterrupt:
        return 130


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
