# SPDX-License-Identifier: Apache-2.0
"""Writes tests/insight/student_table.def: quantiles of Student's t from scipy (1.17.1 was used), with which
tests/insight/statistics_test compares ours."""
from scipy.stats import t

print("/* student_table.def: written by student_table.py: T_ROW(confidence, degrees of freedom, quantile). */")
for confidence in (0.5, 0.9, 0.95, 0.99):
    for df in (0.7, 1, 1.3, 2, 2.5, 4, 8, 17.25, 60, 1000, 250000):
        print(f"T_ROW({confidence}, {df}, {t.ppf((1 + confidence) / 2, df)!r})".replace("np.float64(", "").replace("))", ")"))
