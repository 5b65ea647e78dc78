/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.h: pairs of runs with a known true difference, to test intervals (intervals_test, and in full
 * tests/bench/insight/intervals). */
#ifndef DPT_TESTS_SIMULATE_H
#define DPT_TESTS_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A step takes 1 s times a factor of its run (run noise), with noise of 5 % that depends on the previous step
 * (autocorrelation), one step in a hundred ten times as long (spikes), and the first ones up to twice as long. */
struct simulate {
	double autocorrelation;
	bool spikes;
	double warmup;     /* share of the steps, over which the excess decays */
	double run_noise;  /* standard deviation of the log */
	int repeats;       /* runs per side; with one the spread comes from 5 other equal runs */
	int steps;         /* per run */
};

struct simulate_tally {
	int pairs, given, held; /* intervals given, and those that contain the true factor */
	int wanted;             /* pairs with 20 effective steps per run */
	int naive_held;         /* the same with every step an independent sample */
	int steps_held;         /* intervals from the steps of these runs alone */
	double *widths; /* half width / that of the true variance at equal degrees of freedom; room for all pairs */
};

/* Adds `pairs` pairs to the tally; the same seed gives the same pairs. */
void simulate_run(const struct simulate *s, int pairs, uint64_t seed, struct simulate_tally *t);


/* Every setting of the simulation, one after another: 0 .. SIMULATE_SETTINGS-1. */
enum { SIMULATE_SETTINGS = 3 * 2 * 3 * 3 * 5 };
struct simulate simulate_setting(int i);
const char *simulate_name(const struct simulate *s, char *text, size_t n);

#endif
