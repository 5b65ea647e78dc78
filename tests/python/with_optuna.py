# SPDX-License-Identifier: Apache-2.0
"""Optuna's own package: a study of 12 trials, four at once; each is one run with its params and values; pruned and
failed ones have that status. Run by tests/python/all in an environment with optuna."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

PROGRAM = '''
import optuna
import dptrack.optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.create_study(study_name='curve', sampler=optuna.samplers.RandomSampler(seed=1), pruner=optuna.pruners.NopPruner())

@dptrack.optuna.track(tags={'by': 'test'})
def objective(trial):
    x = trial.suggest_float('x', -1, 1)
    kind = trial.suggest_categorical('kind', ['a', 'b'])
    for step in range(1, 4):
        dptrack.optuna.run_of(trial).log({'train/loss': x * step}, step=step)
        trial.report(x / step, step)
    if trial.number == 3:
        raise optuna.TrialPruned()
    if trial.number == 5:
        raise ValueError('planted')
    if trial.number in (7, 8, 9):
        return {7: float('nan'), 8: None, 9: (1.0, 2.0)}[trial.number]
    return x * x

study.optimize(objective, n_trials=12, n_jobs=4, catch=(ValueError,))
for t in study.trials:
    print(t.number, t.state.name, repr(t.params['x']), t.params['kind'], repr(t.value))
'''


# status of a run, by the state of its trial
ENDS = {'COMPLETE': (1, ''), 'PRUNED': (3, 'pruned after step 3'), 'FAIL': (2, 'ValueError: planted')}
# of trials that Optuna fails for what they return (optuna PR 3524, #2727): the reason and the values that are recorded
REFUSED = {'7': ('the objective returned NaN', [4]), '8': ('the objective returned None: expected a number', []),
           '9': ('the objective returned 2 values for 1 objectives', [])}


def optuna(folder):
    runs = folder + '/runs'
    out, err = lib.run(runs, PROGRAM)
    trials = [line.split() for line in out.splitlines() if line and line[0].isdigit()]
    assert len(trials) == 12, (out, err)
    for number, state, x, kind, value in trials:
        j = lib.only(runs, 'trial-%s' % number, 'curve')
        params = {k: str(v) for k, v in j.params.items()}
        assert params == {'x': x, 'kind': kind}, (number, params)
        assert j.series('train/loss') == [(s, float(x) * s) for s in (1, 2, 3)], j.path
        if number in REFUSED:
            reason, steps = REFUSED[number]
            assert state == 'FAIL' and (2, reason) in j.statuses and j.statuses[-1][0] == 2, (number, state, j.statuses)
            assert [s for s, _ in j.series('value')] == [1, 2, 3] + steps, (number, j.series('value'))
            continue
        want = [(s, float(x) / s) for s in (1, 2, 3)] + ([(4, float(value))] if state == 'COMPLETE' else [])
        assert j.series('value') == want, (number, j.series('value'), want)
        assert ENDS[state] in j.statuses and j.statuses[-1][0] == ENDS[state][0], (number, state, j.statuses)
    return '12 trials, four at once'


if __name__ == '__main__':
    lib.choose(optuna)
