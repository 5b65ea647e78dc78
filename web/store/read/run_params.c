/* SPDX-License-Identifier: Apache-2.0 */
/* run_params.c: reads the rows of all runs by one query, chooses keys, then lists each run's pairs. */
#include "tracker/mem/mem.h"
#include "web/store/read/read_inside.h"

#include <stdlib.h>

#include "web/store/read/keysets.h"

/* Statistics of a key. */
struct params_key {
	int64_t id;
	const char *name;  /* in the caller's arena */
	const char *first; /* the first value seen */
	size_t runs;
	size_t named; /* its position in the requested names */
	bool differs, chosen;
};

/* A value of a run. */
struct params_cell {
	struct params_key *key;
	const char *value;
	size_t run; /* its place in the list */
};

struct params {
	struct db *d;
	const struct query_runs_opts *o;
	struct arena *a;
	struct map *keys; /* int64 id -> struct params_key */
	struct params_cell *cells;
	size_t cell_count, cell_cap;
	struct err *err;
};

static void take_param_row(struct params *p, struct db_rows *q)
{
	int64_t id = db_i64(q, COL_param_ids_of_runs_key_id);
	const char *value = db_str(q, COL_param_ids_of_runs_value);
	struct params_key *k = map_put(p->keys, &id, sizeof(id));
	struct params_cell cell = { .run = (size_t)db_i64(q, COL_param_ids_of_runs_place) - 1, .key = k };

	k->id = id;
	k->runs++;
	/* similar runs share most of their texts */
	cell.value = k->first && !strcmp(k->first, value) ? k->first : arena_strdup(p->a, value);
	if (!k->first)
		k->first = cell.value;
	k->differs = k->differs || cell.value != k->first;
	mem_push(&p->cells, &p->cell_count, &p->cell_cap, cell);
}

static int read_runs_params(struct params *p, const int64_t *ids, size_t n)
{
	struct db_rows *q;
	struct buf list;
	int rc = db_start(p->d, &q, DB_param_ids_of_runs, p->err, "t", array_of(&list, ids, n));

	while (rc >= 0 && (rc = db_next(p->d, q, p->err)) > 0)
		take_param_row(p, q);
	buf_done(&list);
	return rc;
}

static size_t find_named_param(const struct query_runs_opts *o, const char *name)
{
	size_t i;

	for (i = 0; i < o->param_count && strcmp(o->params[i], name); i++)
		;
	return i;
}

static void take_param_name(void *arg, size_t at, const char *name)
{
	struct params *p = arg;
	struct params_key *k = map_at(p->keys, at);

	k->name = arena_strdup(p->a, name);
	k->named = find_named_param(p->o, k->name);
}

static int name_param_keys(struct params *p, size_t run_count)
{
	size_t n = map_count(p->keys), i;
	int64_t *ids = arena_array(p->a, n + 1, sizeof(*ids));

	for (i = 0; i < n; i++) {
		struct params_key *k = map_at(p->keys, i);

		ids[i] = k->id;
		k->differs = k->differs || k->runs < run_count;
	}
	return key_names_read(p->d, &(struct key_names){ ids, n, take_param_name, p }, p->err);
}

static int compare_param_choice(const void *x, const void *y)
{
	const struct params_key *a = *(struct params_key *const *)x, *b = *(struct params_key *const *)y;

	if (a->named != b->named)
		return a->named < b->named ? -1 : 1;
	if (a->differs != b->differs)
		return a->differs ? -1 : 1;
	return strverscmp(a->name, b->name);
}

/* Marks the keys to send. */
static void choose_params(struct params *p, bool *ret_left_out)
{
	size_t n = map_count(p->keys), most = p->o->params_max, i, named = 0;
	struct params_key **list = mem_array(n + 1, sizeof(*list));

	for (i = 0; i < n; i++) {
		struct params_key *k = map_at(p->keys, i);

		if (k->name)
			list[named++] = k;
	}
	if (named > most)
		qsort(list, named, sizeof(*list), compare_param_choice);
	for (i = 0; i < named && i < most; i++)
		list[i]->chosen = true;
	*ret_left_out = named > most;
	free(list);
}

static int compare_param_keys(const void *x, const void *y)
{
	return strcmp(((const struct query_kv *)x)->key, ((const struct query_kv *)y)->key);
}

/* Makes the list of each run of its chosen keys. */
static void give_param_lists(struct params *p, struct query_runs *ret)
{
	struct query_run *r;
	size_t i;

	for (i = 0; i < p->cell_count; i++)
		ret->items[p->cells[i].run].param_count += p->cells[i].key->chosen;
	for (i = 0; i < ret->count; i++) {
		r = &ret->items[i];
		r->params = arena_array(p->a, r->param_count + 1, sizeof(*r->params));
		r->param_count = 0;
	}
	for (i = 0; i < p->cell_count; i++) {
		r = &ret->items[p->cells[i].run];
		if (p->cells[i].key->chosen)
			r->params[r->param_count++] =
				(struct query_kv){ p->cells[i].key->name, p->cells[i].value };
	}
	for (i = 0; i < ret->count; i++)
		if (ret->items[i].param_count)
			qsort(ret->items[i].params, ret->items[i].param_count, sizeof(struct query_kv),
			      compare_param_keys);
}

int run_params_load(struct db *d, const struct metric_select_list *l, struct arena *a, struct query_runs *ret,
		    struct err *err)
{
	struct params p = { .d = d, .o = l->o, .a = a, .keys = map_new(sizeof(struct params_key)), .err = err };
	int rc = read_runs_params(&p, l->runs, ret->count);

	if (!rc)
		rc = name_param_keys(&p, ret->count);
	if (!rc) {
		choose_params(&p, &ret->params_left_out);
		give_param_lists(&p, ret);
	}
	free(p.cells);
	map_free(p.keys);
	return rc;
}
