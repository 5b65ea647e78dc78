# SPDX-License-Identifier: Apache-2.0
"""Each trial of an Optuna study is a run.

    import dptrack.optuna

    @dptrack.optuna.track(experiment="lr")
    def objective(trial):
        lr = trial.suggest_float("lr", 1e-4, 1e-1, log=True)
        for step in range(1, 101):
            dptrack.optuna.run_of(trial).log({"train/loss": ...}, step=step)
        return accuracy

    study.optimize(objective, n_trials=100, n_jobs=4)

The trial's params are the run's. Values reported for pruning and the returned value are the series "value" ("value/0", ... if
several are returned). A pruned trial has the status killed, and its reason contains the step; a trial that Optuna fails has the
status failed."""
from __future__ import annotations

import functools

from dptrack import _init, _missing
from dptrack._run import Error, Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dptrack._run import ConfigLike, TagsLike

_runs: dict[tuple[str, int], Run] = {}  # of running trials, by study and number


def _need_optuna(what: str) -> None:
    try:
        import optuna  # noqa: F401
    except ImportError as error:
        _missing.need('dptrack.optuna.' + what, 'optuna', error)


def run_of(trial: Any) -> Run:
    """The run of a running trial.

    Args:
        trial: The trial that the objective received.

    Returns:
        The run, to log to.

    Raises:
        Error: The objective of the trial is not decorated with track, or optuna is missing.

    Example:
        >>> dptrack.optuna.run_of(trial).log({"train/loss": 0.5}, step=1)
    """
    _need_optuna('run_of')
    run = _runs.get((trial.study.study_name, trial.number))
    if run is None:
        raise Error('trial %d has no run: decorate its objective with dptrack.optuna.track()' % trial.number)
    return run


def track(experiment: str | None = None, run_name: str | None = None, config: ConfigLike = None, tags: TagsLike = None,
          notes: str | None = None, runs_dir: str | None = None, url: str | None = None, mode: str | None = None,
          console: bool | None = None, code: bool | None = None,
          system: float | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates an objective, so that each of its trials is a run.

    Args:
        experiment: The experiment; default: the study's name.
        run_name: The name of each run; default: "trial-<number>".
        config: Params in addition to the trial's.
        tags: Tags, as init takes them.
        notes: A note in Markdown.
        runs_dir: The folder of runs; default: $DPTRACK_RUNS_DIR, or "runs".
        url: A server that also receives the runs; default: $DPTRACK_URL.
        mode: "disabled" records nothing.
        console: False does not record what the program prints.
        code: False does not record commit, diff and packages.
        system: Seconds between samples of the machine's load; 0: none.

    Returns:
        The decorator.

    Raises:
        Error: The package optuna is missing.

    Example:
        >>> @dptrack.optuna.track(experiment="lr")
        ... def objective(trial):
        ...     return trial.suggest_float("lr", 1e-4, 1e-1)
    """
    _need_optuna('track')
    options = _init.given(run_name=run_name, config=config, tags=tags, notes=notes, runs_dir=runs_dir, url=url, mode=mode, console=console,
                          code=code, system=system)

    def decorate(objective: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(objective)
        def tracked(trial: Any, *more: Any, **named: Any) -> Any:
            key = trial.study.study_name, trial.number
            chosen = dict({'run_name': 'trial-%d' % trial.number}, **options)
            run = _runs[key] = _init.begin(Run, experiment=experiment or trial.study.study_name, **chosen)
            try:
                value = objective(trial, *more, **named)
                _record_trial(run, trial)
                run.finish(*_tell_result(run, value, len(trial.study.directions)))
                return value
            except BaseException as error:
                _record_trial(run, trial)
                run.finish(*_judge(run, error))
                raise
            finally:
                del _runs[key]
        return tracked
    return decorate


def _record_trial(run: Run, trial: Any) -> None:
    """Records what the study has of the trial so far."""
    run.config.update(trial.params)
    run.tag('optuna.study', trial.study.study_name)
    run.tag('optuna.trial', str(trial.number))
    directions = [str(one.name).lower() for one in trial.study.directions]
    for n, one in enumerate(directions):
        if one in ('minimize', 'maximize'):
            run.tag('dptrack.best.value' + ('/%d' % n if len(directions) > 1 else ''), one[:3])
    for key, word in trial.user_attrs.items():
        run.tag('optuna.' + key, str(word))
    reported = trial.study.get_trials(deepcopy=False)[trial.number].intermediate_values
    for step, value in sorted(reported.items()):
        run.log({'value': value}, step=step)


def _tell_result(run: Run, value: Any, objectives: int) -> tuple[str, str | None]:
    """Records what the objective returned. Returns (status, reason): Optuna fails a trial whose values are no numbers, or not
    one for each objective."""
    several = isinstance(value, (tuple, list))
    values, wrong = list(value) if several else [value], None
    for n, one in enumerate(values):
        try:
            number = float(one)
        except (TypeError, ValueError):
            wrong = 'the objective returned %.100r: expected a number' % (one,)
            continue
        run.log({'value/%d' % n if several else 'value': number}, step=run._step + (n == 0))
        if number != number:
            wrong = 'the objective returned NaN'
    if len(values) != objectives:
        wrong = 'the objective returned %d values for %d objectives' % (len(values), objectives)
    return ('failed', wrong) if wrong else ('finished', None)


def _judge(run: Run, error: BaseException) -> tuple[str, str]:
    """(status, reason) of a run whose objective raised."""
    from optuna import TrialPruned
    if isinstance(error, TrialPruned):
        return 'killed', 'pruned after step %d' % run._step
    return 'failed', '%s: %s' % (type(error).__name__, error)
