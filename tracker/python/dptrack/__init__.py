# SPDX-License-Identifier: Apache-2.0
"""Records training runs with libdptrack.

    import dptrack

    run = dptrack.init(experiment="mnist", run_name="first", config={"lr": 0.1})
    for step in range(1, 1001):
        run.log({"train/loss": loss}, step=step)
    run.finish()

The run is a folder below runs/ (or $DPTRACK_RUNS_DIR) that `dptrack serve --logdir runs` and TensorBoard read while it
grows. With $DPTRACK_URL its journal is also sent to a server. Only init and finish wait for a disk or a network, for a
bounded time. No failure after init stops the program. Modules that need more than the standard library are imported on use."""
from dptrack._run import Error, Run, active, init

__all__ = ['Error', 'Run', 'alert', 'config', 'define_metric', 'finish', 'init', 'log', 'note', 'run', 'runs', 'summary', 'tag', 'watch']

# Modules of the names that are imported on first use.
_LATER = {'runs': '_query', 'experiments': '_query', 'Image': '_media', 'Audio': '_media', 'Histogram': '_media',
          'Text': '_media', 'Table': '_media', 'File': '_media', 'Html': '_media', 'Plotly': '_media', 'Video': '_media',
          'watch': '_watch'}


def _current(what):
    run = active()
    if run is None:
        raise Error('dptrack.%s requires a run: call dptrack.init() first' % what)
    return run


def log(values, step=None):
    """Run.log of the active run."""
    _current('log').log(values, step)


def finish(status=None, reason=None):
    """Finishes the active run, if any."""
    run = active()
    if run is not None:
        run.finish(status, reason)


def define_metric(name, step_metric=None, summary=None):
    """Run.define_metric of the active run."""
    _current('define_metric').define_metric(name, step_metric, summary)


def tag(key, value=''):
    """Run.tag of the active run."""
    _current('tag').tag(key, value)


def note(markdown):
    """Run.note of the active run."""
    _current('note').note(markdown)


def alert(title, text='', level='info'):
    """Run.alert of the active run."""
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
