"""Records training runs with libdptrack.

    import dptrack

    run = dptrack.init(experiment="mnist", run_name="first", config={"lr": 0.1})
    for step in range(1, 1001):
        run.log({"train/loss": loss}, step=step)
    run.finish()

The run is a folder below runs/ (or $DPTRACK_RUNS_DIR) that `dptrack serve --logdir runs` and TensorBoard read while it
grows; with $DPTRACK_URL its journal is sent to a server as well. Nothing here waits for a disk or a network, but init and
finish, for a bounded time, and no failure after init stops the program. What needs more than the standard library is
imported when it is asked for."""
from dptrack._run import Error, Run, active, init

__all__ = ['Error', 'Run', 'alert', 'config', 'define_metric', 'finish', 'init', 'log', 'note', 'run', 'runs', 'summary', 'tag', 'watch']

# Where the names live that are imported when they are first used.
_LATER = {'runs': '_query', 'experiments': '_query', 'Image': '_media', 'Audio': '_media', 'Histogram': '_media',
          'Text': '_media', 'Table': '_media', 'File': '_media', 'watch': '_watch'}


def _current(what):
    run = active()
    if run is None:
        raise Error('dptrack.%s needs a run: call dptrack.init() first' % what)
    return run


def log(values, step=None):
    """Run.log of the run that init began last."""
    _current('log').log(values, step)


def finish(status=None, reason=None):
    """Ends the run that init began last; without one nothing happens."""
    run = active()
    if run is not None:
        run.finish(status, reason)


def define_metric(name, step_metric=None, summary=None):
    """Run.define_metric of the run that init began last."""
    _current('define_metric').define_metric(name, step_metric, summary)


def tag(key, value=''):
    """Run.tag of the run that init began last."""
    _current('tag').tag(key, value)


def note(markdown):
    """Run.note of the run that init began last."""
    _current('note').note(markdown)


def alert(title, text='', level='info'):
    """Run.alert of the run that init began last."""
    _current('alert').alert(title, text, level)


def __getattr__(name):
    if name in ('config', 'summary'):
        return getattr(_current(name), name)
    if name == 'run':
        return active()
    if name == '__version__':
        from importlib.metadata import version
        return version('dptrack')
    if name in _LATER:
        import importlib
        return getattr(importlib.import_module('dptrack.' + _LATER[name]), name)
    raise AttributeError('module dptrack has no attribute %r' % name)
