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

The trial's params are the run's, what it reports for pruning and what it returns is the series "value" ("value/0", ... where
it returns several); a pruned trial is killed, and its reason says at which step."""
import functools

from dptrack import _init
from dptrack._run import Error, Run

_runs = {}  # by study and number, while they go on


def run_of(trial):
    """The run of a running trial."""
    run = _runs.get((trial.study.study_name, trial.number))
    if run is None:
        raise Error('trial %d has no run: decorate its objective with dptrack.optuna.track()' % trial.number)
    return run


def track(experiment=None, **options):
    """A decorator of objectives. options are init's; experiment is the study's name unless given, run_name
    "trial-<number>"."""
    def decorate(objective):
        @functools.wraps(objective)
        def tracked(trial, *more, **named):
            key = trial.study.study_name, trial.number
            chosen = dict({'run_name': 'trial-%d' % trial.number}, **options)
            run = _runs[key] = _init.begin(Run, experiment=experiment or trial.study.study_name, **chosen)
            try:
                value = objective(trial, *more, **named)
                _record_trial(run, trial)
                _tell_result(run, value)
                run.finish()
                return value
            except BaseException as error:
                _record_trial(run, trial)
                run.finish(*_judge(run, error))
                raise
            finally:
                del _runs[key]
        return tracked
    return decorate


def _record_trial(run, trial):
    """What the study knows of the trial by now."""
    run.config.update(trial.params)
    run.tag('optuna.study', trial.study.study_name)
    run.tag('optuna.trial', str(trial.number))
    for key, word in trial.user_attrs.items():
        run.tag('optuna.' + key, str(word))
    reported = trial.study.get_trials(deepcopy=False)[trial.number].intermediate_values
    for step, value in sorted(reported.items()):
        run.log({'value': value}, step=step)


def _tell_result(run, value):
    several = isinstance(value, (tuple, list))
    for n, one in enumerate(value if several else [value]):
        if one is not None:
            run.log({'value/%d' % n if several else 'value': float(one)}, step=run._step + (n == 0))


def _judge(run, error):
    """(status, reason) of a run whose objective raised."""
    from optuna import TrialPruned
    if isinstance(error, TrialPruned):
        return 'killed', 'pruned after step %d' % run._step
    return 'failed', '%s: %s' % (type(error).__name__, error)
