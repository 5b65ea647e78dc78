"""The command line of python -m dptrack.bring."""
import argparse
import importlib
import os
import shutil
import subprocess
import sys
import tempfile

from dptrack.bring import Refused, Told

TRACKERS = {'aim': ('REPOSITORY', 'a folder with .aim in it, or .aim itself; needs the package aim'),
            'neptune': ('DATA', "the Parquet files that neptune-exporter wrote; needs the package pyarrow"),
            'wandb': ('PROJECT', 'ENTITY/PROJECT, or ENTITY/PROJECT/RUN for one run; needs the package wandb and its login')}
PACKAGES = {'aim': 'aim', 'neptune': 'pyarrow', 'wandb': 'wandb'}


def parse(words):
    parser = argparse.ArgumentParser(prog='python -m dptrack.bring', description='Brings the runs of another tracker in. '
                                     'Ids are kept (a tag has them too), a repeat adds nothing, what is left out is listed.')
    parsers = parser.add_subparsers(dest='tracker', required=True)
    for name, (word, what) in TRACKERS.items():
        one = parsers.add_parser(name, help=what)
        one.add_argument('source', metavar=word, help=what)
        if name == 'neptune':
            one.add_argument('--files', metavar='FOLDER', help='where neptune-exporter put the files (default: files beside DATA)')
        one.add_argument('--logdir', metavar='DIR', help='folder of runs that they are put into (default: $DPTRACK_RUNS_DIR, else runs)')
        one.add_argument('--url', metavar='URL', help='send them to the server there instead')
        one.add_argument('--experiment', metavar='NAME', help='of all of them (default: their own)')
        one.add_argument('--out', metavar='FILE', help='write what `dptrack import FILE` takes, and pictures into '
                         'FILE.files, and import nothing')
    return parser.parse_args(words)


def teller(options):
    """The tracker's tell(told, options)."""
    try:
        return importlib.import_module('dptrack.bring.' + options.tracker).tell
    except ModuleNotFoundError as error:
        if (error.name or '').partition('.')[0] not in (PACKAGES[options.tracker], options.tracker):
            raise
        raise Refused('reading %s needs its package: pip install %s' % (options.tracker, PACKAGES[options.tracker])) from None


def importer(options):
    """The command that takes the lines."""
    program = os.environ.get('DPTRACK_PROGRAM') or shutil.which('dptrack')
    if not program:
        raise Refused('the program dptrack is not on PATH, which takes the runs; --out FILE writes them for it to import elsewhere')
    words = [program, 'import', '-']
    if options.url:
        words += ['--url', options.url]
    else:
        words += ['--logdir', options.logdir or os.environ.get('DPTRACK_RUNS_DIR') or 'runs']
    return words + (['--experiment', options.experiment] if options.experiment else [])


def bring(options, tell):
    """The importer's exit status."""
    if options.out:
        os.makedirs(options.out + '.files', exist_ok=True)
        with open(options.out, 'w', encoding='utf-8') as f:
            tell(Told(f, os.path.abspath(options.out) + '.files'), options)
        return 0
    with tempfile.TemporaryDirectory(prefix='dptrack-bring.') as folder:
        process = subprocess.Popen(importer(options), stdin=subprocess.PIPE, text=True, encoding='utf-8')
        try:
            with process.stdin:
                tell(Told(process.stdin, folder), options)
        except BrokenPipeError:  # it has said why
            pass
        return process.wait()


def main(words):
    options = parse(words)
    try:
        return bring(options, teller(options))
    except Refused as error:
        print('dptrack.bring: error: %s' % error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
