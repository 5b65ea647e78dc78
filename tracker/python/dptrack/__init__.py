# SPDX-License-Identifier: Apache-2.0
"""Records training runs with libdptrack.

    import dptrack

    run = dptrack.init(experiment="mnist", run_name="first", config={"lr": 0.1})
    for step in range(1, 1001):
        run.log({"train/loss": loss}, step=step)
    run.finish()

The run is a folder below runs/ (or $DPTRACK_RUNS_DIR) that `dptrack serve` and TensorBoard read while it grows. With
$DPTRACK_URL its journal is also sent to a server. Only init and finish wait for a disk or a network, for a bounded time. No
failure after init stops the program.

Everything else is imported on first use: dptrack.torch, .transformers, .lightning, .keras, .accelerate and .optuna for those
trainers, dptrack.runs() to read runs, dptrack.Image and the other media. Where a package is missing, the call that needs it
raises dptrack.Error with the package's name."""
from __future__ import annotations

from dptrack._run import Error, Run, active, init

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from dptrack import accelerate as accelerate
    from dptrack import keras as keras
    from dptrack import lightning as lightning
    from dptrack import optuna as optuna
    from dptrack import torch as torch
    from dptrack import transformers as transformers
    from dptrack._media import Audio, File, Histogram, Html, Image, Plotly, Table, Text, Video
    from dptrack._query import Comparison, RecordedRun, compare, experiments, runs
    from dptrack._run import Config, Summary
    from dptrack._watch import watch

    run: Run | None
    config: Config
    summary: Summary
    __version__: str

__all__ = ['Audio', 'Comparison', 'Error', 'File', 'Histogram', 'Html', 'Image', 'Plotly', 'RecordedRun', 'Run', 'Table', 'Text', 'Video',
           'active', 'alert', 'compare', 'define_metric', 'experiments', 'finish', 'init', 'log', 'note', 'runs', 'tag', 'watch']

# Modules of the names that are imported on first use.
_LATER = {'runs': '_query', 'experiments': '_query', 'compare': '_query', 'Comparison': '_query', 'RecordedRun': '_query', 'Image': '_media',
          'Audio': '_media', 'Histogram': '_media', 'Text': '_media', 'Table': '_media', 'File': '_media', 'Html': '_media', 'Plotly': '_media',
          'Video': '_media', 'watch': '_watch'}
_TRAINERS = frozenset(('accelerate', 'keras', 'lightning', 'optuna', 'torch', 'transformers'))


def _current(what: str) -> Run:
    current = active()
    if current is None:
        raise Error('dptrack.%s requires a run: call dptrack.init() first' % what)
    return current


def log(values: Mapping[str, Any], step: int | None = None) -> None:
    """Run.log of the active run.

    Args:
        values: {key: number or media}, also nested.
        step: The step; default: the last one plus 1.

    Raises:
        Error: No run is active.

    Example:
        >>> dptrack.log({"train/loss": 0.5}, step=1)
    """
    _current('log').log(values, step)


def finish(status: str | None = None, reason: str | None = None) -> None:
    """Finishes the active run, if any.

    Args:
        status: "finished" (default), "failed", "killed" or "preempted".
        reason: One line on why.

    Raises:
        ValueError: The status is unknown.

    Example:
        >>> dptrack.finish()
    """
    current = active()
    if current is not None:
        current.finish(status, reason)


def define_metric(name: str, step_metric: str | None = None, summary: str | None = None) -> None:
    """Run.define_metric of the active run.

    Args:
        name: A key, or a pattern with *.
        step_metric: The key whose integer values are its steps.
        summary: "min" or "max": the value that run.summary holds, and that is best on the page, for the commands and for agents.
            Default: run.summary holds the last, and the best is known by the key.

    Raises:
        Error: No run is active.

    Example:
        >>> dptrack.define_metric("val/*", step_metric="epoch", summary="max")
    """
    _current('define_metric').define_metric(name, step_metric, summary)


def tag(key: str, value: object = '') -> None:
    """Run.tag of the active run.

    Args:
        key: The tag.
        value: Its value, stored as text; the last one is kept.

    Raises:
        Error: No run is active.

    Example:
        >>> dptrack.tag("team", "vision")
    """
    _current('tag').tag(key, value)


def note(markdown: str) -> None:
    """Run.note of the active run.

    Args:
        markdown: The note; the last one is kept.

    Raises:
        Error: No run is active.

    Example:
        >>> dptrack.note("The **new** schedule.")
    """
    _current('note').note(markdown)


def alert(title: str, text: str = '', level: str = 'info') -> None:
    """Run.alert of the active run.

    Args:
        title: A line.
        text: More, if needed.
        level: "info", "warning" or "error".

    Raises:
        Error: No run is active.

    Example:
        >>> dptrack.alert("Accuracy fell", "from 91 % to 40 %", level="warning")
    """
    _current('alert').alert(title, text, level)


def __getattr__(name: str) -> Any:
    if name in ('config', 'summary'):
        return getattr(_current(name), name)
    if name == 'run':
        return active()
    if name == '__version__':
        from importlib.metadata import version
        return version('dptrack')
    if name in _LATER or name in _TRAINERS:
        import importlib
        module = importlib.import_module('dptrack.' + _LATER.get(name, name))
        return module if name in _TRAINERS else getattr(module, name)
    raise AttributeError('module dptrack has no attribute %r' % name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_TRAINERS})
