/* sweep_plan.c: reads and checks the file of a sweep. */
#include "trainer/sweep/sweep_plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/sha256.h"

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
	static const char *const known[] = { "name", "experiment", "method", "metric", "seed", "trials", "parameters",
					     "flags", "asha" };
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

static int read_metric(struct sweep_plan *p, struct err *err)
{
	json_t *metric = json_object_get(p->root, "metric");
	const char *goal = member_text(metric, "goal");

	p->metric = member_text(metric, "name");
	if (!p->metric || !goal || (strcmp(goal, "maximize") && strcmp(goal, "minimize")))
		return refuse_member("metric", "expected {\"name\": SERIES, \"goal\": \"maximize\" or \"minimize\"}",
				     err);
	p->maximize = !strcmp(goal, "maximize");
	return 0;
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
		return err_set(err, ERR_NOMEM, "out of memory");
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
	json_error_t where;
	FILE *f;
	int rc;

	memset(ret, 0, sizeof(*ret));
	f = fopen(path, "r");
	if (!f)
		return err_set(err, ERR_USAGE, "%.300s: %s", path, strerror(errno));
	ret->root = json_loadf(f, JSON_REJECT_DUPLICATES, &where);
	fclose(f);
	if (!ret->root)
		return err_set(err, ERR_USAGE, "%.300s: line %d: %s", path, where.line, where.text);
	rc = json_is_object(ret->root) ? read_sweep_root(ret, err) : err_set(err, ERR_USAGE, "expected a JSON object");
	return rc ? err_prefix(err, "%.300s", path) : 0;
}

void sweep_plan_done(struct sweep_plan *p)
{
	space_free(p->space);
	json_decref(p->root);
}
