# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's permutation importance of a random forest on held-out rows, for tests/bench/insight/importance.mjs.
Input: draws as JSON ({"rows", "y"}); output: for each a list of {"share", "sure"} by param. A share is half of the
loss of R2, like total Sobol indices."""
import json
import sys

from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split


def importances(rows, y):
    seen, unseen, seen_y, unseen_y = train_test_split(rows, y, test_size=0.35, random_state=0)
    forest = RandomForestRegressor(n_estimators=100, random_state=0).fit(seen, seen_y)
    found = permutation_importance(forest, unseen, unseen_y, n_repeats=20, random_state=0)
    return [{'share': m / 2, 'sure': bool(m - 2 * s > 0)} for m, s in zip(found.importances_mean, found.importances_std)]


print(json.dumps([importances(d['rows'], d['y']) for d in json.load(sys.stdin)]))
