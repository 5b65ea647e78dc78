/* SPDX-License-Identifier: Apache-2.0 */
/* metric_select.c: counts keys by id, and loads the summaries of the wanted ones. Knows neither filter nor order. */
#include "tracker/mem/mem.h"
#include "web/store/read/read_inside.h"

#include <stdlib.h>

#include "web/store/read/keysets.h"

/* --- a summary as a metric ------------------------------------------------------------------------------------ */

void metric_of(struct query_metric *m, const char *key, const struct sum *s)
{
	*m = (struct query_metric){
		.key = key, .count = s->count, .nonfinite = s->nonfinite, .infinite = s->infinite,
		.first = s->first.value, .last = s->last.value, .min = s->min, .max = s->max,
		.first_step = s->first.step, .last_step = s->last.step, .min_step = s->min_step,
		.max_step = s->max_step,
		.first_time = s->first.time, .last_time = s->last.time, .first_nonfinite_step = s->nonfinite_step,
	};
}

bool metric_is_loss(const char *key)
{
	return strstr(key, "loss") != NULL && strcmp(key, "train/loss_scale") != 0;
}

struct metric_select_key {
	int64_t id;
	const char *name; /* borrowed from the map; NULL: not looked up yet */
	uint32_t runs;
	bool asked, watched; /* watched: needed for alerts */
};

static struct metric_select_key *find_chosen_key(struct metric_select *c, int64_t id)
{
	struct metric_select_key *k = map_put(c->keys, &id, sizeof(id));

	k->id = id;
	return k;
}

static int mark_requested_metrics(struct metric_select *c, struct db *d, const struct query_runs_opts *o,
				  struct err *err)
{
	int64_t id;
	size_t i;
	int rc = 0;

	for (i = 0; i < o->metric_count && rc >= 0; i++) {
		rc = db_int(d, &id, DB_key_by_name, err, "t", o->metrics[i]);
		if (rc > 0)
			find_chosen_key(c, id)->asked = true;
	}
	return rc < 0 ? rc : 0;
}

/* How many of the runs have a set of keys. */
struct key_use {
	const struct keyset *set;
	uint32_t runs;
};

static void count_key_use(struct map *uses, const struct keyset *set)
{
	struct key_use *u = map_put(uses, &set, sizeof(set));

	u->set = set;
	u->runs++;
}

static void count_key_set(struct metric_select *c, const struct key_use *u)
{
	size_t i;

	for (i = 0; i < u->set->count; i++)
		find_chosen_key(c, u->set->ids[i])->runs += u->runs;
}

/* Counts the runs of each key, set by set. */
static void count_keys(struct metric_select *c, struct keyset *const *sets, size_t n)
{
	struct map *uses = map_new(sizeof(struct key_use));
	size_t i;

	for (i = 0; i < n; i++)
		count_key_use(uses, sets[i]);
	for (i = 0; i < map_count(uses); i++)
		count_key_set(c, map_at(uses, i));
	map_free(uses);
}

static int count_key_runs(struct metric_select *c, struct keysets *keysets, struct db *d,
			  const struct metric_select_list *l, struct err *err)
{
	struct keyset **sets = mem_array(l->run_count + 1, sizeof(struct keyset *));
	size_t i;
	int rc = keysets_renew(keysets, d, err);

	if (!rc)
		rc = keysets_take(keysets, d, &(struct keysets_want){ l->runs, l->run_count }, sets, err);
	if (!rc) {
		count_keys(c, sets, l->run_count);
		for (i = 0; i < l->run_count; i++)
			keysets_give(keysets, sets[i]);
	}
	free(sets);
	return rc;
}

static void take_chosen_name(void *arg, size_t at, const char *name)
{
	struct metric_select *c = arg;
	struct metric_select_key *k = map_at(c->keys, at);

	k->name = map_text(c->keys, name);
	k->watched = metric_is_loss(k->name);
}

static int name_chosen_keys(struct metric_select *c, struct db *d, struct err *err)
{
	size_t n = map_count(c->keys), i;
	int64_t *ids = mem_array(n + 1, sizeof(*ids));
	int rc;

	for (i = 0; i < n; i++)
		ids[i] = ((struct metric_select_key *)map_at(c->keys, i))->id;
	rc = key_names_read(d, &(struct key_names){ ids, n, take_chosen_name, c }, err);
	free(ids);
	return rc;
}

/* Lists the keys whose summaries are loaded. */
static void list_wanted_metrics(struct metric_select *c)
{
	size_t n = map_count(c->keys), i;

	c->wanted = mem_array(n + 1, sizeof(struct metric_select_key *));
	for (i = 0; i < n; i++) {
		struct metric_select_key *k = map_at(c->keys, i);

		if (k->name && (k->asked || k->watched))
			c->wanted[c->wanted_count++] = k;
	}
}

int metric_select_begin(struct metric_select *c, struct keysets *sets, struct db *d, const struct metric_select_list *l,
			struct err *err)
{
	size_t i, have = 0;
	int rc;

	c->keys = map_new(sizeof(struct metric_select_key));
	rc = mark_requested_metrics(c, d, l->o, err);
	if (!rc && l->keys)
		rc = count_key_runs(c, sets, d, l, err);
	if (!rc)
		rc = name_chosen_keys(c, d, err);
	for (i = 0; i < map_count(c->keys); i++)
		have += ((struct metric_select_key *)map_at(c->keys, i))->runs > 0;
	c->all = l->o->metrics_max ? have <= l->o->metrics_max : !l->o->some_metrics;
	if (!rc)
		list_wanted_metrics(c);
	return rc;
}

void metric_select_end(struct metric_select *c)
{
	free(c->wanted);
	c->wanted = NULL;
	map_free(c->keys);
	c->keys = NULL;
}

void metric_select_list_wanted(const struct metric_select *c, struct buf *b)
{
	size_t i;

	for (i = 0; i < c->wanted_count; i++)
		array_int(b, c->wanted[i]->id);
}

static bool is_requested_metric(const struct metric_select *c, const char *name)
{
	size_t i;

	for (i = 0; i < map_count(c->keys); i++) {
		const struct metric_select_key *k = map_at(c->keys, i);

		if (!k->asked)
			return false; /* requested keys come first */
		if (k->name && !strcmp(k->name, name))
			return true;
	}
	return false;
}

void metric_select_trim(const struct metric_select *c, struct query_run *r)
{
	size_t i, n = 0;

	if (c->all)
		return;
	for (i = 0; i < r->metric_count; i++)
		if (is_requested_metric(c, r->metrics[i].key))
			r->metrics[n++] = r->metrics[i];
	r->metric_count = n;
}

static int compare_key_names(const void *x, const void *y)
{
	return strcmp(((const struct query_key_runs *)x)->key, ((const struct query_key_runs *)y)->key);
}

void metric_select_keys(const struct metric_select *c, struct arena *a, struct query_runs *ret)
{
	size_t i;

	ret->keys = arena_array(a, map_count(c->keys) + 1, sizeof(*ret->keys));
	for (i = 0; i < map_count(c->keys); i++) {
		const struct metric_select_key *k = map_at(c->keys, i);

		if (!k->runs || !k->name)
			continue;
		ret->keys[ret->key_count++] = (struct query_key_runs){ arena_strdup(a, k->name), k->runs };
	}
	if (ret->key_count)
		qsort(ret->keys, ret->key_count, sizeof(*ret->keys), compare_key_names);
}
