/* SPDX-License-Identifier: Apache-2.0 */
/* why_read.c: reads runs, their repeats and the cost of a sample of each from the store. It decides which runs are
 * repeats; tracker/insight does the statistics. */
#include "web/api/native/insight/timing.h"

#include <string.h>

#include "web/api/native/native_inside.h"

enum { WHY_REPEATS_MAX = 20, WHY_CANDIDATES_MAX = 200, WHY_POOL_MAX = 30, WHY_READS_MAX = 150 };

bool why_is_own(const struct query_kv *p)
{
	static const char made[] = "synthetic-";

	return !strcmp(p->key, "run_name") || !strcmp(p->key, "seed") || !strcmp(p->key, "resume") ||
	       (!strcmp(p->key, "data_hash") && !strncmp(p->value, made, sizeof(made) - 1));
}

/* Both lists are sorted by key. */
static bool has_same_params(const struct query_run *a, const struct query_run *b)
{
	size_t i = 0, k = 0;

	for (;;) {
		while (i < a->param_count && why_is_own(&a->params[i]))
			i++;
		while (k < b->param_count && why_is_own(&b->params[k]))
			k++;
		if (i == a->param_count || k == b->param_count)
			return i == a->param_count && k == b->param_count;
		if (strcmp(a->params[i].key, b->params[k].key) || strcmp(a->params[i].value, b->params[k].value))
			return false;
		i++;
		k++;
	}
}

/* Returns true for the same machine and, with code set, the same program. Both runs must have been read in full. */
static bool has_same_environment(const struct query_run *a, const struct query_run *b, bool code)
{
	static const char *const facts[] = { "host", "cpu", "dptrain", "backend", "git_commit" };

	for (size_t i = 0; i < (code ? 5 : 2); i++) {
		const char *x = api_pair(a->environment, a->environment_count, facts[i]);
		const char *y = api_pair(b->environment, b->environment_count, facts[i]);

		if (!x != !y || (x && strcmp(x, y)))
			return false;
	}
	return true;
}

/* Reads the pace of a run; its steps are 0 if none can be timed. */
static int read_run_pace(struct call *c, const struct why *w, const struct query_run *run, struct step_time *ret)
{
	struct timing t;
	int rc = timing_read(c, run, w->by_step, &t);

	if (!rc)
		*ret = t.pace;
	timing_done(&t);
	return rc;
}

static int read_compared_run(struct call *c, const char *id, struct query_run *ret)
{
	struct err err = ERR_INIT;

	if (!query_run(c->api->store, id, c->arena, ret, &err))
		return 0;
	call_fail_err(c, "run", &err);
	return -1;
}

/* Returns the last value of a metric of which no value is best. */
static double best_goal_value(const struct query_run *run, const struct why *w)
{
	const struct query_metric *m = w->goal.key ? api_metric(run, w->goal.key) : NULL;

	return !m ? NAN : w->goal.best == GOAL_MAX ? m->max : w->goal.best == GOAL_MIN ? m->min : m->last;
}

static size_t count_sides_with(const struct why *w, const char *key)
{
	size_t n = 0;

	while (n < w->n && api_metric(w->sides[n].run, key))
		n++;
	return n;
}

/* Chooses the most suitable metric of those that all named runs have. */
static void choose_goal_metric(struct why *w)
{
	const struct query_run *first = w->sides[0].run;

	for (size_t i = 0; i < first->metric_count; i++) {
		const char *key = first->metrics[i].key, *said = NULL;

		if (count_sides_with(w, key) < w->n)
			continue;
		for (size_t k = 0; !said && k < w->n; k++)
			said = api_said_best(w->sides[k].run, key);
		goal_choice_add(&w->goal, key, said, w->n, w->n);
	}
}

/* Reads the named runs. Returns a negative value after failing the call. */
static int read_named_runs(struct call *c, const char *const *ids, struct why *w)
{
	for (size_t i = 0; i < w->n; i++) {
		struct why_side *s = &w->sides[i];
		struct query_run *run = arena_alloc(c->arena, sizeof(*run));

		s->repeats = arena_array(c->arena, WHY_REPEATS_MAX, sizeof(*s->repeats));
		s->paces = arena_array(c->arena, WHY_REPEATS_MAX + 1, sizeof(*s->paces));
		s->metrics = arena_array(c->arena, WHY_REPEATS_MAX + 1, sizeof(*s->metrics));
		if (read_compared_run(c, ids[i], run))
			return -1;
		s->run = run;
		s->n = 1;
		w->by_step = w->by_step || !(timing_batch(run) > 0);
	}
	return 0;
}

/* Reads the time of each named run, and chooses the goal metric. Returns a negative value after failing the call. */
static int read_named_paces(struct call *c, struct why *w)
{
	for (size_t i = 0; i < w->n; i++) {
		struct why_side *s = &w->sides[i];

		s->by_step = w->by_step;
		if (read_run_pace(c, w, s->run, &s->paces[0]))
			return -1;
		if (!s->paces[0].steps)
			return call_fail(
				       c, CALL_bad_value, "run",
				       "run %s has no steps that can be timed: it needs phase/step, or two points of a "
				       "series by step",
				       s->run->name),
			       -1;
	}
	choose_goal_metric(w);
	for (size_t i = 0; i < w->n; i++)
		w->sides[i].metrics[0] = best_goal_value(w->sides[i].run, w);
	return 0;
}

static bool is_named_run(const struct why *w, const char *id)
{
	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(w->sides[i].run->id, id))
			return true;
	return false;
}

/* Named runs that are equal to each other are compared without repeats: the other repeats give their spread. */
static bool has_named_twin(const struct why *w, size_t side)
{
	for (size_t i = 0; i < w->n; i++)
		if (i != side && has_same_params(w->sides[i].run, w->sides[side].run) &&
		    has_same_environment(w->sides[i].run, w->sides[side].run, true))
			return true;
	return false;
}

/* Reads the runs of the same experiments, newest first. */
static int read_candidates(struct call *c, const struct why *w, struct query_runs *ret)
{
	const char **names = arena_array(c->arena, w->n, sizeof(*names));
	struct query_runs_opts o = { .experiments = names, .limit = WHY_CANDIDATES_MAX };
	struct err err = ERR_INIT;

	for (size_t i = 0; i < w->n; i++)
		names[o.experiment_count++] = w->sides[i].run->experiment;
	if (!query_runs(c->api->store, &o, c->arena, ret, &err))
		return 0;
	request_refused(c, &err);
	return -1;
}

static bool is_repeat_candidate(const struct query_run *run)
{
	return strcmp(run->status, "failed") && strcmp(run->status, "scheduled");
}

/* Reads a candidate for the group of repeats of `like`. Returns 1 if it belongs to the group. Returns 0 if its machine
 * or program differs, it is too short, or enough runs were read. Negative after failing the call. */
static int read_group_member(struct call *c, struct why *w, const struct query_run *like, struct query_run *run,
			     struct step_time *ret)
{
	if (w->reads++ >= WHY_READS_MAX)
		return 0;
	if (read_compared_run(c, run->id, run))
		return -1;
	if (!has_same_environment(run, like, true))
		return 0;
	if (read_run_pace(c, w, run, ret))
		return -1;
	return ret->effective >= RUN_CHANGE_EFFECTIVE_LEAST;
}

/* Finds the repeats of one side among the candidates. */
static int find_repeats(struct call *c, struct why *w, size_t side, const struct query_runs *all, bool *used)
{
	struct why_side *s = &w->sides[side];

	for (size_t i = 0; i < all->count && s->n <= WHY_REPEATS_MAX && !has_named_twin(w, side); i++) {
		struct query_run run = all->items[i];
		int taken;

		if (used[i] || is_named_run(w, all->items[i].id) || !is_repeat_candidate(&all->items[i]) ||
		    !has_same_params(&all->items[i], s->run))
			continue;
		taken = read_group_member(c, w, s->run, &run, &s->paces[s->n]);
		if (taken < 0)
			return -1;
		if (!taken)
			continue;
		used[i] = true;
		s->repeats[s->n - 1] = run.id;
		s->metrics[s->n++] = best_goal_value(&run, w);
	}
	return 0;
}

/* Adds a further group of equal runs on the machine of the named runs; the candidate `first` is its first member. */
static int add_pool_group(struct call *c, struct why *w, size_t first, const struct query_runs *all, bool *used)
{
	struct step_time paces[WHY_POOL_MAX];
	struct query_run leader, run;
	size_t n = 0;
	int taken;

	if (read_compared_run(c, all->items[first].id, &leader))
		return -1;
	for (size_t i = first;
	     i < all->count && n < WHY_POOL_MAX && has_same_environment(&leader, w->sides[0].run, false); i++) {
		if (used[i] || is_named_run(w, all->items[i].id) || !is_repeat_candidate(&all->items[i]) ||
		    !has_same_params(&all->items[i], &leader))
			continue;
		run = all->items[i];
		taken = read_group_member(c, w, &leader, &run, &paces[n]);
		if (taken < 0)
			return -1;
		used[i] = true;
		n += (size_t)taken;
	}
	run_change_pool_add(&w->pool, (struct run_change_side){ paces, n });
	return 0;
}

/* Finds the spread of equal runs that a side without repeats uses. Runs without an equal run are not read. */
static int find_pool(struct call *c, struct why *w, const struct query_runs *all, bool *used)
{
	for (size_t i = 0; i < all->count && w->pool.runs < WHY_POOL_MAX; i++) {
		size_t k = i + 1;

		if (used[i] || is_named_run(w, all->items[i].id))
			continue;
		while (k < all->count && (used[k] || !has_same_params(&all->items[i], &all->items[k])))
			k++;
		if (k < all->count && add_pool_group(c, w, i, all, used))
			return -1;
	}
	return 0;
}

int why_read(struct call *c, const char *const *ids, size_t n, struct why *ret)
{
	struct why w = { .sides = arena_array(c->arena, n, sizeof(*w.sides)), .n = n };
	struct query_runs all;
	bool *used, single = false;

	if (read_named_runs(c, ids, &w) || read_named_paces(c, &w) || read_candidates(c, &w, &all))
		return -1;
	used = arena_array(c->arena, all.count + 1, sizeof(*used));
	for (size_t i = 0; i < n; i++) {
		if (find_repeats(c, &w, i, &all, used))
			return -1;
		single = single || w.sides[i].n == 1;
	}
	if (single && find_pool(c, &w, &all, used))
		return -1;
	*ret = w;
	return 0;
}

double why_mean(const struct why_side *s, int phase)
{
	double sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += phase < STEP_TIME_PHASES ? s->paces[i].phase[phase] : s->paces[i].seconds;
	return sum / (double)s->n;
}
