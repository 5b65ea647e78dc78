# SPDX-License-Identifier: Apache-2.0
"""XGBoost, LightGBM, scikit-learn, Ray Tune and Hydra record as docs/guides/integrations.md shows: its programs run with
the real packages, and each run has what the library itself reports. Run by tests/python/all in an environment with them."""
import hashlib
import json
import os
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'docs')]
import lib  # noqa: E402
import page  # noqa: E402
from told import Server  # noqa: E402

FILES = page.Page('docs/guides/integrations.md', []).files
QUIET = {'PYTHONWARNINGS': 'ignore', 'GIT_PYTHON_REFRESH': 'quiet', 'MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING': 'false', 'RAY_DEDUP_LOGS': '0',
         'RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO': '0', 'RAY_AIR_NEW_OUTPUT': '0', 'RAY_USAGE_STATS_ENABLED': '0'}


def start(folder, name, *words, tail='', **more):
    """Runs a file of the guide, followed by `tail`; returns the object that the last line printed holds."""
    os.makedirs(folder + '/runs', exist_ok=True)
    out, _ = lib.run(folder + '/runs', FILES[name] + '\n' + tail, *words, **dict(QUIET, HOME=folder, **more))
    return json.loads(out.strip().split('\n')[-1]) if tail else None


def close(got, want):
    """Whether series agree; MLflow's client and XGBoost's callback pass on Python floats."""
    return len(got) == len(want) and all(a == b and abs(x - y) <= 1e-12 * max(1, abs(y)) for (a, x), (b, y) in zip(got, want))


def trees(folder, name, experiment_run):
    """The run has each value of the library's own table of results, and the params."""
    said = start(folder, name, tail='import json\nprint(json.dumps([results, params]))')
    found = lib.only(folder + '/runs', experiment_run, 'trees')
    results, params = said
    keys = {'%s/%s' % (part, metric): values for part, metrics in results.items() for metric, values in metrics.items()}
    assert len(keys) == 4 and all(len(v) == 20 for v in keys.values()), keys
    for key, values in keys.items():
        assert close(found.series(key), list(enumerate(values))), (key, found.series(key), values)
    assert found.params['objective'] == params['objective'], found.params
    assert found.statuses[-1][0] == 1, found.statuses
    return found, '%d values' % sum(map(len, keys.values()))


def xgboost(folder):
    found, text = trees(folder, 'boost.py', 'xgboost')
    assert found.params['max_depth'] == 3, found.params
    with open(folder + '/boost.json', 'rb') as f:
        assert found.files['boost.json'][1] == hashlib.sha256(f.read()).hexdigest(), found.files
    return text


def lightgbm(folder):
    found, text = trees(folder, 'light.py', 'lightgbm')
    assert found.params['num_leaves'] == 7, found.params
    return text


def runs_of(server, experiment):
    """Runs of an experiment with all their values, by name."""
    found = lib.ask(server.url, 'runs', experiment=experiment, limit=100)['runs']
    return {r['name']: lib.ask(server.url, 'runs/' + r['id']) for r in found}


def values(run):
    return {key: m['last'] for key, m in run['metrics'].items()}


def scikit_learn(folder):
    """Params and scores of a fit; a search with its candidates as children, in order of their scores."""
    os.makedirs(folder + '/runs')
    tail = ('import json\nprint(json.dumps([forest.get_params(), forest.score(x[:300], y[:300]), forest.score(x[300:], y[300:]), '
            'search.best_score_, search.cv_results_["params"], list(search.cv_results_["mean_test_score"])]))')
    with Server(folder + '/runs') as server:
        params, trained, tested, best, candidates, scores = start(folder, 'forest.py', tail=tail, MLFLOW_TRACKING_URI=server.url)
        runs = runs_of(server, 'forests')
    one, search = runs.pop('one'), runs.pop('search')
    assert one['params'] == {k: str(v) for k, v in params.items()}, one['params']
    assert values(one)['training_accuracy_score'] == trained, one['metrics']
    assert [v for k, v in values(one).items() if k.startswith('RandomForestClassifier_score')][0] in (trained, tested), one['metrics']
    assert tested in values(one).values() and values(search)['best_cv_score'] == best, (one['metrics'], search['metrics'])
    got = sorted((r['params']['max_depth'], r['params']['n_estimators'], values(r)['mean_test_score']) for r in runs.values())
    assert got == sorted((str(c['max_depth']), str(c['n_estimators']), s) for c, s in zip(candidates, scores)), (got, candidates, scores)
    assert all(r['tags']['mlflow.parentRunId'] == search['id'] and r['status'] == 'finished' for r in runs.values()), runs
    return '%d candidates' % len(candidates)


def scikit_learn_plain(folder):
    score, = start(folder, 'plain.py', tail='import json\nprint(json.dumps([model.score(x[300:], y[300:])]))')
    found = lib.only(folder + '/runs', 'sgd', 'linear')
    points = found.series('val/accuracy')
    assert [s for s, _ in points] == list(range(1, 11)) and points[-1][1] == score, (points, score)
    assert found.params['loss'] == 'log_loss' and found.params['alpha'] == 0.0001, found.params
    return 'accuracy %g' % score


TRIALS = 'import json\nprint(json.dumps([[r.config["lr"], r.metrics["loss"], r.metrics["trial_id"]] for r in results]))'


def ray_tune(folder):
    """Each trial is one run of its own process, with its id, its config and its losses."""
    trials = start(folder, 'tune.py', tail=TRIALS)
    found = {j.tags['trial']: j for j in lib.journals(folder + '/runs', '*', 'tuned')}
    assert len(trials) == len(found) == 3, (trials, list(found))
    for lr, loss, trial in trials:
        j = found[trial]
        assert j.params == {'lr': lr} and j.header['world_size'] == 1 and j.statuses[-1][0] == 1, (j.params, j.statuses, j.header)
        assert close(j.series('train/loss'), [(s, (lr - 0.1) ** 2 + 1 / s) for s in range(1, 6)]), j.series('train/loss')
        assert j.series('train/loss')[-1][1] == loss, (j.series('train/loss'), loss)
    return '3 trials'


STOPPED = """
import os
import dptrack
from ray import tune

def objective(config):
    with dptrack.init(experiment='stopped', config=config, runs_dir=os.environ['DPTRACK_RUNS_DIR']) as run:
        for step in range(1, 10000):
            run.log({'train/loss': config['lr']}, step=step)
            tune.report({'loss': config['lr']})

tune.Tuner(objective, param_space={'lr': tune.grid_search([0.5])}, run_config=tune.RunConfig(stop={'training_iteration': 7})).fit()
"""


def ray_tune_stopped(folder):
    """A trial that Ray stops: its run ends, and keeps what it logged."""
    os.makedirs(folder + '/runs')
    lib.run(folder + '/runs', STOPPED, **dict(QUIET, HOME=folder))
    found = lib.only(folder + '/runs', '*', 'stopped')
    assert len(found.series('train/loss')) >= 7, found.series('train/loss')
    with Server(folder + '/runs') as server:
        run, = runs_of(server, 'stopped').values()
    assert run['status'] in ('finished', 'killed'), run['status']
    return '%s after %d steps' % (run['status'], run['last_step'])


def ray_tune_mlflow(folder):
    os.makedirs(folder + '/runs')
    with Server(folder + '/runs') as server:
        trials = start(folder, 'tune_mlflow.py', tail=TRIALS, MLFLOW_TRACKING_URI=server.url)
        runs = runs_of(server, 'tuned-mlflow')
    assert len(trials) == 3 and sorted(runs) == sorted('objective_' + t for _, _, t in trials), (trials, list(runs))
    for lr, loss, trial in trials:
        run = runs['objective_' + trial]
        assert run['params'] == {'lr': str(lr)} and run['status'] == 'finished', run
        assert run['metrics']['loss']['count'] == 5 and values(run)['loss'] == loss, run['metrics']
    return '3 trials'


def hydra(folder):
    """One job, then a multirun of four; interpolated values are resolved."""
    with open(folder + '/app.yaml', 'w', encoding='utf-8') as f:
        f.write(FILES['app.yaml'])
    start(folder, 'app.py', 'lr=0.2')
    start(folder, 'app.py', '--multirun', 'lr=0.1,0.01', 'model.depth=8,20')
    found = lib.journals(folder + '/runs', '*', 'hydra')
    got = sorted((j.params['lr'], j.params['model.depth'], j.params['model.width']) for j in found)
    assert got == sorted([(0.2, 20, 20), *((lr, d, d) for lr in (0.1, 0.01) for d in (8, 20))]), got
    for j in found:
        assert close(j.series('train/loss'), [(s, j.params['lr'] / s) for s in range(1, 11)]) and j.statuses[-1][0] == 1, j.path
    return '%d jobs' % len(found)


if __name__ == '__main__':
    lib.choose(xgboost, lightgbm, scikit_learn, scikit_learn_plain, ray_tune, ray_tune_stopped, ray_tune_mlflow, hydra)
