/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c: a table of steps by ranks, filled point by point. */
#include "tracker/insight/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct step_cell {
	bool stepped, marked;
	int segment;
	double seconds, wall;
	double phase[STEP_TIME_PHASES];
	double extra[STEPS_MARK - STEPS_WORKERS]; /* series that are not part of the step */
};

struct steps {
	int64_t first, settled;
	size_t span, lanes; /* lane 0 is the whole run's, the others the ranks' */
	struct step_cell *cells;
	bool has[STEPS_MARK - STEPS_WORKERS]; /* has at least one point */
};

int steps_new(struct steps **ret, const struct steps_opts *o, struct err *err)
{
	struct steps *s = calloc(1, sizeof(*s));
	int64_t most = STEPS_CELLS_MAX / ((int64_t)o->ranks + 1);

	most = most > STEPS_MAX ? STEPS_MAX : most < 1 ? 1 : most;
	if (s) {
		s->first = o->last - o->first < most ? o->first : o->last - most + 1;
		s->span = (size_t)(o->last - s->first + 1);
		s->lanes = (size_t)o->ranks + 1;
		s->settled = INT64_MIN;
		s->cells = calloc(s->span * s->lanes, sizeof(*s->cells));
	}
	if (!s || !s->cells) {
		free(s);
		return err_nomem(err, "steps of a run");
	}
	*ret = s;
	return 0;
}

void steps_free(struct steps *s)
{
	if (s)
		free(s->cells);
	free(s);
}

int64_t steps_first(const struct steps *s)
{
	return s->first;
}

size_t steps_span(const struct steps *s)
{
	return s->span;
}

static const char *const keys[STEPS_MARK] = {
#define PHASE(name, help) [STEP_TIME_##name] = "phase/" #name,
#include "schema/insight/phases.def"
#undef PHASE
	[STEPS_STEP] = "phase/step",
	[STEPS_WORKERS] = "data/workers",
	[STEPS_COMM_TOTAL] = "phase/comm_total",
	[STEPS_LOAD] = "data/load",
	[STEPS_LOAD_CPU] = "data/load_cpu",
	[STEPS_READY] = "data/ready",
	[STEPS_COPY] = "checkpoint/copy",
	[STEPS_WAIT] = "checkpoint/wait",
	[STEPS_SAVE_CPU] = "checkpoint/cpu",
	[STEPS_CACHED] = "doctor/bare_step",
};

const char *steps_key(int series)
{
	if (series < 0 || series >= STEPS_MARK || series == STEP_TIME_other || series == STEP_TIME_between)
		return NULL; /* "other" is the rest of a step, including other phases of the run */
	return keys[series];
}

int steps_series(const char *key)
{
	for (int i = 0; i < STEPS_MARK; i++)
		if (steps_key(i) && !strcmp(keys[i], key))
			return i;
	return -1;
}

static struct step_cell *find_cell(const struct steps *s, size_t at, size_t lane)
{
	return &s->cells[at * s->lanes + lane];
}

/* Returns the point's cell; a later segment replaces what an earlier one logged. NULL: the point is superseded. */
static struct step_cell *open_step_cell(struct steps *s, const struct steps_point *p)
{
	struct step_cell *c = find_cell(s, (size_t)(p->step - s->first), (size_t)(p->rank + 1));

	if (p->segment > c->segment)
		*c = (struct step_cell){ .segment = p->segment };
	return p->segment < c->segment ? NULL : c;
}

void steps_add(struct steps *s, const struct steps_point *p)
{
	struct step_cell *c;

	if (p->series < 0)
		return;
	if (p->series == STEPS_WORKERS && p->step > s->settled)
		s->settled = p->step;
	if (p->step < s->first || p->step - s->first >= (int64_t)s->span || p->rank < -1 ||
	    p->rank + 1 >= (int)s->lanes || p->series == STEPS_WORKERS)
		return;
	c = open_step_cell(s, p);
	if (!c || !isfinite(p->wall_time))
		return;
	if (p->series == STEPS_MARK) {
		c->marked = true;
		c->wall = p->wall_time;
	} else if (!isfinite(p->value)) {
		return;
	} else if (p->series == STEPS_STEP) {
		c->stepped = p->value > 0;
		c->seconds = p->value;
		c->wall = p->wall_time;
	} else if (p->series > STEPS_WORKERS) {
		c->extra[p->series - STEPS_WORKERS] = p->value;
		s->has[p->series - STEPS_WORKERS] = true;
	} else {
		c->phase[p->series] = p->value;
	}
}

/* Returns the cell of the lowest lane that has the step, or NULL. */
static const struct step_cell *find_lowest_lane(const struct steps *s, size_t at)
{
	for (size_t lane = 0; lane < s->lanes; lane++)
		if (find_cell(s, at, lane)->stepped)
			return find_cell(s, at, lane);
	return NULL;
}

/* Returns the lane that the others waited for. */
static size_t find_critical_lane(const struct steps *s, size_t at)
{
	size_t best = 0;
	double longest = -INFINITY;

	for (size_t lane = 0; lane < s->lanes; lane++) {
		const struct step_cell *c = find_cell(s, at, lane);
		double own = c->seconds - c->phase[STEP_TIME_comm_exposed];

		if (c->stepped && own > longest) {
			longest = own;
			best = lane;
		}
	}
	return best;
}

static double count_step_samples(const struct steps_batch *b, int64_t step)
{
	bool last = b->steps_per_epoch > 0 && b->last > 0 && step % b->steps_per_epoch == 0;

	return last ? b->last : b->global;
}

static void fill_step_row(const struct steps *s, size_t at, double between, struct step_time_step *row)
{
	size_t lane = find_critical_lane(s, at);
	const struct step_cell *c = find_cell(s, at, lane);
	double known = 0;

	row->rank = (int)lane - 1;
	for (int k = 0; k < STEP_TIME_PHASES; k++) {
		row->phase[k] = c->phase[k];
		known += c->phase[k];
	}
	row->phase[STEP_TIME_other] = c->seconds - known;
	row->phase[STEP_TIME_between] = between;
	row->seconds = c->seconds + between;
}

/* Clocks of copied or imported runs may be wrong: a negative sum of the gaps drops all of them. */
static void drop_negative_gaps(struct step_time_step *rows, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += rows[i].phase[STEP_TIME_between];
	for (size_t i = 0; sum < 0 && i < n; i++) {
		rows[i].seconds -= rows[i].phase[STEP_TIME_between];
		rows[i].phase[STEP_TIME_between] = 0;
	}
}

static size_t collect_steps(const struct steps *s, const struct steps_batch *batch, struct step_time_step *ret)
{
	const struct step_cell *before = NULL, *c;
	size_t n = 0;

	for (size_t at = 0; at < s->span; at++, before = c) {
		double between = 0;

		c = find_lowest_lane(s, at);
		if (!c)
			continue;
		if (before && before->segment == c->segment)
			between = c->wall - before->wall - c->seconds;
		ret[n] = (struct step_time_step){ .step = s->first + (int64_t)at };
		ret[n].samples = count_step_samples(batch, ret[n].step);
		fill_step_row(s, at, between, &ret[n++]);
	}
	drop_negative_gaps(ret, n);
	return n;
}

/* Rows from mark to mark. */
static size_t collect_marks(const struct steps *s, const struct steps_batch *batch, struct step_time_step *ret)
{
	const struct step_cell *before = NULL;
	int64_t last = 0;
	size_t n = 0;

	for (size_t at = 0; at < s->span; at++) {
		const struct step_cell *c = find_cell(s, at, 0);
		double seconds;

		if (!c->marked)
			continue;
		seconds = before && before->segment == c->segment ? c->wall - before->wall : 0;
		if (seconds > 0) {
			ret[n] = (struct step_time_step){ .step = s->first + (int64_t)at,
							  .rank = -1,
							  .by_clock = true,
							  .seconds = seconds };
			ret[n].samples = batch->global * (double)(s->first + (int64_t)at - last);
			ret[n++].phase[STEP_TIME_other] = seconds;
		}
		before = c;
		last = s->first + (int64_t)at;
	}
	return n;
}

size_t steps_take(const struct steps *s, const struct steps_batch *batch, struct step_time_step *ret)
{
	size_t n = collect_steps(s, batch, ret);

	return n ? n : collect_marks(s, batch, ret);
}

int64_t steps_settled(const struct steps *s)
{
	return s->settled;
}

static size_t index_of_step(const struct steps *s, int64_t step)
{
	return step > s->first ? (size_t)(step - s->first) : 0;
}

bool steps_rank(const struct steps *s, int rank, int64_t from, double *ret_seconds, double ret_phase[STEP_TIME_PHASES])
{
	double n = 0, seconds = 0, known = 0;

	memset(ret_phase, 0, STEP_TIME_PHASES * sizeof(*ret_phase));
	for (size_t at = index_of_step(s, from); rank >= -1 && rank + 1 < (int)s->lanes && at < s->span; at++) {
		const struct step_cell *c = find_cell(s, at, (size_t)(rank + 1));

		if (!c->stepped)
			continue;
		n++;
		seconds += c->seconds;
		for (int k = 0; k < STEP_TIME_PHASES; k++)
			ret_phase[k] += c->phase[k];
	}
	if (!n)
		return false;
	*ret_seconds = seconds / n;
	for (int k = 0; k < STEP_TIME_PHASES; k++) {
		ret_phase[k] /= n;
		known += ret_phase[k];
	}
	ret_phase[STEP_TIME_other] = *ret_seconds - known;
	return true;
}

double steps_mean(const struct steps *s, int series, int64_t from)
{
	double sum = 0, n = 0;

	if (!s->has[series - STEPS_WORKERS])
		return NAN;
	for (size_t lane = 0; lane < s->lanes; lane++) {
		double of_lane = 0;
		bool any = false;

		for (size_t at = index_of_step(s, from); at < s->span; at++) {
			of_lane += find_cell(s, at, lane)->extra[series - STEPS_WORKERS];
			any = any || find_cell(s, at, lane)->extra[series - STEPS_WORKERS] != 0;
		}
		sum += of_lane;
		n += any;
	}
	return n ? sum / n / (double)(s->span - index_of_step(s, from)) : 0;
}

double steps_most(const struct steps *s, int series)
{
	const int at = series - STEPS_WORKERS;
	double most = -INFINITY;

	for (size_t i = 0; i < s->span * s->lanes; i++)
		most = fmax(most, s->cells[i].extra[at]);
	return s->has[at] ? most : NAN;
}
