# SPDX-License-Identifier: Apache-2.0
"""Stands for the module wandb 0.31.0 in a program that `python -m dptrack.as_wandb` runs: what trainers and their callbacks call
of it, recorded by dptrack. Every other public name of W&B says once that it is not recorded, and the program continues."""
import importlib.abc
import importlib.machinery
import sys
import types

from dptrack._run import say as _say
from wandb import _ignored
from wandb._ignored import Artifact  # noqa: F401
from wandb._media import Audio, Histogram, Html, Image, Plotly, Table, Video  # noqa: F401
from wandb._names import MODULE as _NAMES
from wandb._run import Run, begin as _begin, new_id as _new_id

STANDS_FOR = __version__ = '0.31.0'

_runs = []
_INIT = ('entity', 'project', 'dir', 'id', 'name', 'notes', 'tags', 'config')


class Error(Exception):
    """What W&B's own functions raise."""


class UsageError(Error):
    """The program asks for what cannot be."""


class CommError(Error):
    """A server does not answer; never raised here."""


class AlertLevel:
    """How much an alert hurries."""
    INFO, WARN, ERROR = 'info', 'warn', 'error'


class Settings:
    """Settings of init: what it knows is used, everything else is left."""

    def __init__(self, **settings):
        self.__dict__.update(settings)


def init(*positional, **options):
    """Begins a run; one that is under way is finished first, or returned where reinit says so. wandb._run.begin says what is
    used of the options."""
    options = {**dict(zip(_INIT, positional)), **options}
    current = _current()
    reinit = options.pop('reinit', None)
    if current is not None and reinit in (False, 'return_previous'):
        return current
    if current is not None and reinit != 'create_new':
        current.finish()
    run = _begin(**options)
    _runs.append(run)
    return run


def _current():
    while _runs and _runs[-1].ended:
        _runs.pop()
    return _runs[-1] if _runs else None


def _of_run(name):
    def call(*arguments, **named):
        run = _current()
        if run is None:
            raise Error('You must call wandb.init() before wandb.%s()' % name)
        return getattr(run, name)(*arguments, **named)
    call.__name__ = name
    return call


OF_RUN = ('log', 'define_metric', 'watch', 'unwatch', 'alert', 'mark_preempting', 'log_code', 'save', 'log_artifact', 'use_artifact',
          'link_artifact', 'log_model', 'use_model', 'link_model', 'restore')
for _name in OF_RUN:
    globals()[_name] = _of_run(_name)


def finish(exit_code=None, quiet=None):
    """Ends the run, if there is one."""
    run = _current()
    if run is not None:
        run.finish(exit_code)


def login(*arguments, **named):
    """There is no account; True, as where it worked."""
    return True


def setup(*arguments, **named):
    """Nothing to set up."""


def require(*arguments, **named):
    """Everything that is there is there already."""


def termlog(string='', newline=True, repeat=True):
    """A line for people."""
    _say(string)


termwarn = termerror = termlog


def sweep(sweep=None, entity=None, project=None, prior_runs=None):
    """No server draws settings: the id of a sweep that agent runs as it is."""
    _ignored.ignore('sweep', 'agent() runs the function once with the settings it has; see dptrain sweep')
    return _new_id()


def agent(sweep_id, function=None, entity=None, project=None, count=None):
    """Runs the function once."""
    if function is not None:
        function()


def __getattr__(name):
    run = _current()
    if name == 'run':
        return run
    if name in ('config', 'summary'):
        if run is None:
            raise Error('You must call wandb.init() before wandb.%s' % name)
        return getattr(run, name)
    if name not in _NAMES:
        raise AttributeError("module 'wandb' has no attribute %r" % name)
    made = _ignored.ignored_class(name) if name[0].isupper() else _ignored.Nothing(name)
    globals()[name] = made
    return made


class _Parts(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Parts of W&B that dptrack does not have: a module whose names are ignored."""

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.startswith('wandb.') else None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        short = spec.name.removeprefix('wandb.')

        def part(name):
            if name.startswith('__'):
                raise AttributeError(name)
            whole = '%s.%s' % (short, name)
            made = _ignored.ignored_class(whole) if name[0].isupper() else _ignored.Nothing(whole)
            setattr(module, name, made)
            return made

        module.__getattr__ = part
        return module

    def exec_module(self, module):
        """Nothing to run."""


sys.meta_path.append(_Parts())
sys.modules.setdefault('wandb.errors', sys.modules[__name__])
