/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_plan.c: values of trials by number, successive halving, and the file that asks for them. */
#include "trainer/sweep/sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/sha256.h"
#include "tracker/base/text.h"
#include "tracker/mem/mem.h"
#include "trainer/config/document.h"
#include "trainer/graph/rng.h"

#define GRID_MAX 1000000

enum param_kind { KIND_VALUES, KIND_UNIFORM, KIND_LOG, KIND_INT };

struct sweep_param {
	const char *name;
	enum param_kind kind;
	json_t *values;
	double min, max;
};

struct search_space {
	uint64_t seed;
	size_t count;
	struct sweep_param params[];
};

static int refuse_parameter(struct err *err, const char *name, const char *what)
{
	return err_set(err, ERR_USAGE, "parameters: %.100s: %s", name, what);
}

static int read_distribution(struct sweep_param *p, json_t *of, struct err *err)
{
	json_t *min = json_object_get(of, "min"), *max = json_object_get(of, "max");
	const char *word = json_string_value(json_object_get(of, "distribution"));
	bool whole = json_is_integer(min) && json_is_integer(max);

	if (!json_is_number(min) || !json_is_number(max) || json_number_value(min) > json_number_value(max))
		return refuse_parameter(err, p->name,
					"expected {\"values\": [...]} or {\"min\": A, \"max\": B}, A <= B");
	p->min = json_number_value(min);
	p->max = json_number_value(max);
	word = word ? word : whole ? "int_uniform" : "uniform";
	p->kind = !strcmp(word, "uniform") ? KIND_UNIFORM : !strcmp(word, "int_uniform") ? KIND_INT : KIND_LOG;
	if (p->kind == KIND_LOG && strcmp(word, "log_uniform_values"))
		return refuse_parameter(err, p->name,
					"distribution: expected uniform, log_uniform_values or int_uniform");
	if (p->kind == KIND_LOG && p->min <= 0)
		return refuse_parameter(err, p->name, "log_uniform_values: min must be above 0");
	return 0;
}

static int read_param(struct sweep_param *p, const char *name, json_t *of, struct err *err)
{
	size_t i;
	json_t *v;

	p->name = name;
	p->values = json_object_get(of, "values");
	if (!p->values)
		return read_distribution(p, of, err);
	if (!json_array_size(p->values))
		return refuse_parameter(err, name, "values: expected a list of at least one value");
	json_array_foreach(p->values, i, v)
		if (!json_is_number(v) && !json_is_string(v) && !json_is_boolean(v))
			return refuse_parameter(err, name, "values: expected numbers, strings, true or false");
	return 0;
}

int space_new(struct search_space **ret, json_t *parameters, uint64_t seed, struct err *err)
{
	size_t n = json_object_size(parameters);
	struct search_space *s = mem_zalloc(sizeof(*s) + n * sizeof(s->params[0]));
	const char *name;
	json_t *of;
	int rc = 0;

	s->seed = seed;
	if (!n)
		rc = err_set(err, ERR_USAGE, "parameters: expected at least one, as in {\"lr\": {\"values\": [0.1]}}");
	json_object_foreach(parameters, name, of)
		if (!rc)
			rc = read_param(&s->params[s->count++], name, of, err);
	if (rc) {
		free(s);
		return rc;
	}
	*ret = s;
	return 0;
}

void space_free(struct search_space *s)
{
	free(s);
}

size_t space_params(const struct search_space *s)
{
	return s->count;
}

const char *space_name(const struct search_space *s, size_t param)
{
	return s->params[param].name;
}

size_t space_grid(const struct search_space *s)
{
	size_t n = 1;

	for (size_t i = 0; i < s->count; i++) {
		size_t values = json_array_size(s->params[i].values);

		if (!values || n > GRID_MAX / values)
			return 0;
		n *= values;
	}
	return n;
}

/* Returns true if the value is a boolean. */
static bool print_json_value(json_t *v, char *to)
{
	if (json_is_string(v))
		snprintf(to, SPACE_VALUE_BYTES, "%s", json_string_value(v));
	else if (json_is_integer(v))
		snprintf(to, SPACE_VALUE_BYTES, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	else if (json_is_real(v))
		text_double(to, json_real_value(v), 6);
	else
		snprintf(to, SPACE_VALUE_BYTES, "%s", json_is_true(v) ? "true" : "false");
	return json_is_boolean(v);
}

/* Draws from a random stream of this parameter, so that another parameter does not change its values. */
static bool draw_param_value(const struct search_space *s, const struct sweep_param *p, size_t trial, char *to)
{
	struct rng_key key = { .seed = s->seed, .stream = rng_stream(p->name) ^ rng_stream("sweep") };
	double u = rng_uniform(key, trial);

	if (p->kind == KIND_VALUES)
		return print_json_value(json_array_get(p->values, rng_below(key, trial, json_array_size(p->values))),
					to);
	if (p->kind == KIND_INT)
		snprintf(to, SPACE_VALUE_BYTES, "%.0f", p->min + floor(u * (p->max - p->min + 1)));
	else /* four digits are enough to draw, and can be typed again */
		snprintf(to, SPACE_VALUE_BYTES, "%.4g",
			 p->kind == KIND_LOG ? p->min * pow(p->max / p->min, u) : p->min + u * (p->max - p->min));
	return false;
}

bool space_value(const struct search_space *s, bool grid, size_t trial, size_t param, char *to)
{
	if (!grid)
		return draw_param_value(s, &s->params[param], trial, to);
	for (size_t i = s->count - 1; i > param; i--)
		trial /= json_array_size(s->params[i].values);
	return print_json_value(json_array_get(s->params[param].values,
					       trial % json_array_size(s->params[param].values)), to);
}

/* ---- successive halving ---- */

static bool is_better_value(const struct asha *a, double x, double y)
{
	if (!isfinite(x) || !isfinite(y))
		return !isfinite(y) && isfinite(x);
	return a->maximize ? x > y : x < y;
}

/* Returns how many trials are better at the rung; the lower number wins a tie. */
static size_t trial_rank_at_rung(const struct asha *a, size_t trial, int rung)
{
	size_t rank = 0;

	for (size_t i = 0; i < a->count; i++) {
		const struct asha_trial *t = &a->trials[i];
		double mine = a->trials[trial].value[rung];

		if (i != trial && t->rungs > rung)
			rank += is_better_value(a, t->value[rung], mine) ||
				(!is_better_value(a, mine, t->value[rung]) && i < trial);
	}
	return rank;
}

static size_t count_reached_rung(const struct asha *a, int rung)
{
	size_t n = 0;

	for (size_t i = 0; i < a->count; i++)
		n += a->trials[i].rungs > rung;
	return n;
}

/* Returns the best trial at the rung that may be promoted; a->count: none. */
static size_t find_promotable(const struct asha *a, int rung)
{
	size_t places = (size_t)((double)count_reached_rung(a, rung) / a->eta), found = a->count, best = places;

	for (size_t i = 0; i < a->count; i++) {
		const struct asha_trial *t = &a->trials[i];
		size_t rank;

		if (t->rungs != rung + 1 || t->running || t->failed || !isfinite(t->value[rung]))
			continue;
		rank = trial_rank_at_rung(a, i, rung);
		if (rank < best) {
			best = rank;
			found = i;
		}
	}
	return found;
}

enum asha_next asha_next(const struct asha *a, size_t *ret_trial, int *ret_rung)
{
	bool running = false;

	for (int rung = a->rungs - 2; rung >= 0; rung--) {
		*ret_trial = find_promotable(a, rung);
		*ret_rung = rung + 1;
		if (*ret_trial < a->count)
			return ASHA_RUN;
	}
	for (size_t i = 0; i < a->count; i++) {
		const struct asha_trial *t = &a->trials[i];

		running = running || t->running;
		if (t->rungs || t->running || t->failed)
			continue;
		*ret_trial = i;
		*ret_rung = 0;
		return ASHA_RUN;
	}
	return running ? ASHA_WAIT : ASHA_DONE;
}

size_t asha_best(const struct asha *a)
{
	for (int rung = a->rungs - 1; rung >= 0; rung--)
		for (size_t i = 0; i < a->count; i++)
			if (a->trials[i].rungs > rung && isfinite(a->trials[i].value[rung]) &&
			    !trial_rank_at_rung(a, i, rung))
				return i;
	return a->count;
}

/* ---- the file ---- */

#define TRIALS_MAX 100000

static const char *member_text(json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static int refuse_member(const char *member, const char *what, struct err *err)
{
	return err_set(err, ERR_USAGE, "%s: %s", member, what);
}

static int check_sweep_members(json_t *root, struct err *err)
{
	static const char *const known[] = { "name",   "experiment", "method", "metric", "seed",
					     "trials", "parameters", "flags",  "asha" };
	const char *key;
	json_t *value;

	json_object_foreach(root, key, value) {
		size_t i = 0;

		while (i < sizeof(known) / sizeof(known[0]) && strcmp(known[i], key))
			i++;
		if (i == sizeof(known) / sizeof(known[0]))
				return err_set(err, ERR_USAGE,
					       "%.100s: unknown member: expected name, experiment, method, metric, "
				       "seed, trials, parameters, flags, asha", key);
	}
	return 0;
}

/* Refuses a metric that no training records, and lists those by which one can choose. */
static int check_metric_name(const char *name, struct err *err)
{
	char list[400];
	size_t n = 0;

	for (int i = 0; i < SERIES_COUNT; i++) {
		const struct series *s = series_get((enum series_id)i);

		if (!strcmp(s->key, name))
			return 0;
		if (s->best != SERIES_BEST_NONE && n < sizeof(list))
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", n ? ", " : "", s->key);
	}
	return err_set(err, ERR_USAGE, "metric: name '%.60s': no training records this series: use one of %s", name,
		       list);
}

static int read_metric(struct sweep_plan *p, struct err *err)
{
	json_t *metric = json_object_get(p->root, "metric");
	const char *goal = member_text(metric, "goal");

	p->metric = member_text(metric, "name");
	if (!p->metric || !goal || (strcmp(goal, "maximize") && strcmp(goal, "minimize")))
		return refuse_member("metric", "expected {\"name\": SERIES, \"goal\": \"maximize\" or \"minimize\"}",
				     err);
	p->maximize = !strcmp(goal, "maximize");
	return check_metric_name(p->metric, err);
}

/* Computes the rungs: min_epochs, multiplied by eta repeatedly, and the last one at --epochs. */
static int read_asha(struct sweep_plan *p, struct err *err)
{
	json_t *asha = json_object_get(p->root, "asha"), *eta = json_object_get(asha, "eta");
	int64_t all = json_integer_value(json_object_get(p->flags, "epochs"));
	int64_t first = json_integer_value(json_object_get(asha, "min_epochs"));
	double at;

	p->eta = eta ? json_number_value(eta) : 3;
	first = first ? first : 1;
	if (strncmp(p->metric, "epoch/", 6))
		return refuse_member("metric", "asha needs a series by epochs, such as epoch/top1", err);
	if (all < 1 || p->eta <= 1 || first < 1 || first > all)
		return refuse_member("asha", "expected flags.epochs, eta above 1, min_epochs from 1 to flags.epochs",
				     err);
	p->rungs = 0;
	for (at = (double)first; at < (double)all && p->rungs < ASHA_RUNGS - 1; at *= p->eta)
		p->epochs[p->rungs++] = (int64_t)at;
	p->epochs[p->rungs++] = all;
	return 0;
}

static int read_method(struct sweep_plan *p, struct err *err)
{
	const char *method = member_text(p->root, "method");
	size_t combinations = space_grid(p->space);
	json_int_t trials = json_integer_value(json_object_get(p->root, "trials"));

	if (!method || (strcmp(method, "grid") && strcmp(method, "random") && strcmp(method, "asha")))
		return refuse_member("method", "expected grid, random or asha", err);
	p->grid = !strcmp(method, "grid");
	p->rungs = 1;
	if (p->grid && !combinations)
		return refuse_member("parameters", "a grid needs \"values\" for every parameter", err);
	if (!p->grid && (trials < 1 || trials > TRIALS_MAX))
		return refuse_member("trials", "expected the number of settings to draw, from 1 to 100000", err);
	p->trials = p->grid ? combinations : (size_t)trials;
	return strcmp(method, "asha") ? 0 : read_asha(p, err);
}

/* Hashes everything that determines the settings. Flags are left out: they may change when a sweep continues (more
 * threads, another folder). */
static int hash_settings(struct sweep_plan *p, struct err *err)
{
	json_t *bare = json_copy(p->root);
	char *printed;

	json_object_del(bare, "flags");
	printed = json_dumps(bare, JSON_SORT_KEYS | JSON_COMPACT);
	json_decref(bare);
	if (!printed)
		return err_nomem(err, NULL);
	sha256_hex(printed, strlen(printed), p->sha256);
	free(printed);
	return 0;
}

static int check_sweep_flags(struct sweep_plan *p, struct err *err)
{
	static const char *const ours[] = { "run-name", "runs-dir", "experiment", "resume", "stop-epoch" };
	const char *key;
	json_t *value;

	if (p->flags && !json_is_object(p->flags))
		return refuse_member("flags", "expected {\"model\": \"resnet20\", …}, names as on the command line",
				     err);
	json_object_foreach(p->flags, key, value)
		for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
			if (!strcmp(key, ours[i]))
				return err_set(err, ERR_USAGE, "flags: %s: the sweep sets it: remove it", key);
	return 0;
}

static int read_sweep_root(struct sweep_plan *p, struct err *err)
{
	int rc;

	p->name = member_text(p->root, "name");
	p->experiment = member_text(p->root, "experiment");
	p->flags = json_object_get(p->root, "flags");
	if (!p->name || !*p->name)
		return refuse_member("name", "required: it identifies the sweep when it continues", err);
	rc = check_sweep_members(p->root, err);
	rc = rc ? rc : check_sweep_flags(p, err);
	rc = rc ? rc : read_metric(p, err);
	rc = rc ? rc : space_new(&p->space, json_object_get(p->root, "parameters"),
				 (uint64_t)json_integer_value(json_object_get(p->root, "seed")), err);
	rc = rc ? rc : read_method(p, err);
	return rc ? rc : hash_settings(p, err);
}

int sweep_plan_read(struct sweep_plan *ret, const char *path, struct err *err)
{
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = document_read(&ret->root, path, err);
	if (rc)
		return rc;
	rc = json_is_object(ret->root) ? read_sweep_root(ret, err)
				       : err_set(err, ERR_USAGE, "expected an object of settings");
	return rc ? err_prefix(err, "%.300s", path) : 0;
}

void sweep_plan_done(struct sweep_plan *p)
{
	space_free(p->space);
	json_decref(p->root);
}
