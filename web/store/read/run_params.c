/* SPDX-License-Identifier: Apache-2.0 */
/* run_params.c: reads the rows of all runs by one query, chooses keys, then lists each run's pairs. */
#include "tracker/base/array.h"
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

static struct params_cell *new_param_cell(struct params *p)
{
	if (!array_reserve(&p->cells, &p->cell_cap, p->cell_count + 1))
		return NULL;
	return &p->cells[p->cell_count++];
}

static int take_param_row(struct params *p, struct db_rows *q)
{
	int64_t id = db_i64(q, COL_param_ids_of_runs_key_id);
	const char *value = db_str(q, COL_param_ids_of_runs_value);
	struct params_key *k = map_put(p->keys, &id, sizeof id);
	struct params_cell *cell = k ? new_param_cell(p) : NULL;

	if (!cell)
		return err_nomem(p->err, NULL);
	k->id = id;
	k->runs++;
	/* similar runs share most of their texts */
	cell->run = (size_t)db_i64(q, COL_param_ids_of_runs_place) - 1;
	cell->key = k;
	cell->value = k->first && !strcmp(k->first, value) ? k->first : arena_strdup(p->a, value);
	if (!cell->value)
		return err_nomem(p->err, NULL);
	if (!k->first)
		k->first = cell->value;
	k->differs = k->differs || cell->value != k->first;
	return 0;
}

static int read_runs_params(struct params *p, const int64_t *ids, size_t n)
{
	struct db_rows *q;
	struct buf list;
	int rc = array_of(&list, ids, n) ? db_start(p->d, &q, DB_param_ids_of_runs, p->err, "t", list.data)
					 : err_nomem(p->err, NULL);

	while (!rc && (rc = db_next(p->d, q, p->err)) > 0) {
		rc = take_param_row(p, q);
		if (rc)
			db_stop(q);
	}
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

static int take_param_name(void *arg, size_t at, const char *name)
{
	struct params *p = arg;
	struct params_key *k = map_at(p->keys, at);

	k->name = arena_strdup(p->a, name);
	if (!k->name)
		return err_nomem(p->err, NULL);
	k->named = find_named_param(p->o, k->name);
	return 0;
}

static int name_param_keys(struct params *p, size_t run_count)
{
	size_t n = map_count(p->keys), i;
	int64_t *ids = arena_array(p->a, n + 1, sizeof *ids);

	if (!ids)
		return err_nomem(p->err, NULL);
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
static int choose_params(struct params *p, bool *ret_left_out)
{
	size_t n = map_count(p->keys), most = p->o->params_max, i, named = 0;
	struct params_key **list = calloc(n + 1, sizeof *list);

	if (!list)
		return err_nomem(p->err, NULL);
	for (i = 0; i < n; i++) {
		struct params_key *k = map_at(p->keys, i);

		if (k->name)
			list[named++] = k;
	}
	if (named > most)
		qsort(list, named, sizeof *list, compare_param_choice);
	for (i = 0; i < named && i < most; i++)
		list[i]->chosen = true;
	*ret_left_out = named > most;
	free(list);
	return 0;
}

static int compare_param_keys(const void *x, const void *y)
{
	return strcmp(((const struct query_kv *)x)->key, ((const struct query_kv *)y)->key);
}

/* Makes the list of each run of its chosen keys. */
static int give_param_lists(struct params *p, struct query_runs *ret)
{
	struct query_run *r;
	size_t i;

	for (i = 0; i < p->cell_count; i++)
		ret->items[p->cells[i].run].param_count += p->cells[i].key->chosen;
	for (i = 0; i < ret->count; i++) {
		r = &ret->items[i];
		r->params = arena_array(p->a, r->param_count + 1, sizeof *r->params);
		r->param_count = 0;
		if (!r->params)
			return err_nomem(p->err, NULL);
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
	return 0;
}

int run_params_load(struct db *d, const struct metric_select_list *l, struct arena *a, struct query_runs *ret,
		    struct err *err)
{
	struct params p = { .d = d, .o = l->o, .a = a, .keys = map_new(sizeof(struct params_key)), .err = err };
	int rc = p.keys ? 0 : err_nomem(p.err, NULL);

	if (!rc)
		rc = read_runs_params(&p, l->runs, ret->count);
	if (!rc)
		rc = name_param_keys(&p, ret->count);
	if (!rc)
		rc = choose_params(&p, &ret->params_left_out);
	if (!rc)
		rc = give_param_lists(&p, ret);
	free(p.cells);
	map_free(p.keys);
	return rc;
}
