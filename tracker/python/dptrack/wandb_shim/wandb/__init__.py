"""Stands for the module wandb 0.31.0 in a program that `python -m dptrack.as_wandb` runs: what trainers and their callbacks call
of it, recorded by dptrack. What is not here raises, and says so."""
import sys

from dptrack._run import say as _say
from wandb._media import Audio, Histogram, Image, Table
from wandb._run import Run, begin as _begin

STANDS_FOR = __version__ = '0.31.0'

_runs = []


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


def init(**options):
    """Begins a run; one that is under way is finished first, or returned where reinit says so. wandb._run.begin says what is
    used of the options."""
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


log, define_metric, watch, unwatch, alert, mark_preempting, log_code, save = map(
    _of_run, ('log', 'define_metric', 'watch', 'unwatch', 'alert', 'mark_preempting', 'log_code', 'save'))


def finish(exit_code=None, quiet=None):
    """Ends the run, if there is one."""
    run = _current()
    if run is not None:
        run.finish(exit_code)


def login(*arguments, **named):
    """Nobody to log in to; True, as where it worked."""
    return True


def setup(*arguments, **named):
    """Nothing to set up."""


def require(*arguments, **named):
    """Everything that is there is there already."""


def termlog(string='', newline=True, repeat=True):
    """A line for people."""
    _say(string)


termwarn = termerror = termlog


def __getattr__(name):
    run = _current()
    if name == 'run':
        return run
    if name in ('config', 'summary'):
        if run is None:
            raise Error('You must call wandb.init() before wandb.%s' % name)
        return getattr(run, name)
    if name == 'sdk' or name.startswith('__'):
        raise AttributeError(name)
    raise AttributeError('dptrack stands for wandb here and has no wandb.%s' % name)


class Artifact:
    """Files under a name, which dptrack does not record from here."""

    def __init__(self, name='', *arguments, **named):
        raise NotImplementedError('dptrack stands for wandb here and records no artifacts (%s): leave them out, as with '
                                  'WANDB_LOG_MODEL=false or log_model=False' % name)


sys.modules.setdefault('wandb.errors', sys.modules[__name__])
