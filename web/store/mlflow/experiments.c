/* SPDX-License-Identifier: Apache-2.0 */
/* experiments.c: reads experiments. There are few, so a search reads all of them. */
#include "web/store/mlflow/experiments.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tracker/base/crc32c.h"
#include "tracker/mem/mem.h"
#include "web/store/db/db.h"
#include "web/store/read/page_token.h"

static int load_experiment_tags(struct db *d, struct arena *a, struct experiment *e, struct err *err)
{
	struct query_kvs tags = { 0 };
	struct db_rows *q;
	int rc = db_start(d, &q, DB_experiment_tags, err, "i", e->id);

	rc = rc ? rc : query_pairs_read(d, q, a, &tags, err);
	e->tags = tags.items;
	e->tag_count = tags.count;
	return rc;
}

static struct experiment read_experiment_row(struct arena *a, struct db_rows *q)
{
	return (struct experiment){ .id = db_i64(q, COL_experiment_rows_id),
				    .name = db_text(a, q, COL_experiment_rows_name),
				    .created_ms = db_i64(q, COL_experiment_rows_created_ms),
				    .updated_ms = db_i64(q, COL_experiment_rows_updated_ms),
				    .deleted = db_i32(q, COL_experiment_rows_deleted),
				    .location = db_text(a, q, COL_experiment_rows_location) };
}

/* Reads the one row of a started query, and its tags. */
static int load_experiment(struct db *d, struct db_rows *q, struct arena *a, struct experiment *ret, struct err *err)
{
	struct experiment e;
	int rc = db_next(d, q, err);

	if (rc <= 0)
		return rc ? rc : ERR_NOENT;
	e = read_experiment_row(a, q);
	db_stop(q);
	if (!permitted(d, e.id))
		return ERR_NOENT;
	rc = load_experiment_tags(d, a, &e, err);
	if (!rc)
		*ret = e;
	return rc;
}

int experiment_get(struct store *s, int64_t id, struct arena *a, struct experiment *ret, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_experiment_row, err, "i", id);
	rc = rc ? rc : load_experiment(d, q, a, ret, err);
	readers_give(s, d);
	return rc;
}

int experiment_find(struct store *s, const char *name, struct arena *a, struct experiment *ret, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_experiment_row_by_name, err, "t", name);
	rc = rc ? rc : load_experiment(d, q, a, ret, err);
	readers_give(s, d);
	return rc;
}

int experiment_location(struct store *s, int64_t id, struct arena *a, const char **ret, struct err *err)
{
	const char *location = "";
	struct db_rows *q;
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = permitted(d, id) ? db_start(d, &q, DB_experiment_location, err, "i", id) : 1;
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		location = db_text(a, q, COL_experiment_location_location);
		db_stop(q);
	}
	readers_give(s, d);
	if (rc >= 0)
		*ret = location;
	return rc < 0 ? rc : 0;
}

/* --- search ------------------------------------------------------------------------------------------------- */

struct experiment_hit {
	struct experiment e;
	struct filter_value *values;
};

struct experiment_search {
	const struct experiments_opts *o;
	struct db *d;
	struct arena *a;
	struct filter *f;
	struct experiment_hit *hits;
	size_t count, cap;
	struct err *err;
};

static int experiment_tag_value(struct experiment_search *s, int64_t id, const char *key, struct filter_value *v)
{
	struct db_rows *q;
	int rc = db_start(s->d, &q, DB_experiment_tag_value, s->err, "it", id, key);

	if (rc || (rc = db_next(s->d, q, s->err)) <= 0)
		return rc;
	*v = (struct filter_value){ .present = true, .text = db_text(s->a, q, COL_experiment_tag_value_value) };
	db_stop(q);
	return 0;
}

/* Fills the values of the filter's fields. */
static int fill_experiment_hit(struct experiment_search *s, struct experiment_hit *h)
{
	size_t n = filter_field_count(s->f), i;
	int rc = 0;

	h->values = arena_array(s->a, n + 1, sizeof(*h->values));
	for (i = 0; i < n && !rc; i++) {
		const struct filter_field *ff = filter_field(s->f, i);
		struct filter_value *v = &h->values[i];

		if (ff->entity == FILTER_TAG) {
			rc = experiment_tag_value(s, h->e.id, ff->key, v);
			continue;
		}
		v->present = true;
		v->is_number = ff->attribute == FILTER_CREATED || ff->attribute == FILTER_UPDATED;
		v->number = (double)(ff->attribute == FILTER_CREATED ? h->e.created_ms : h->e.updated_ms);
		if (ff->attribute == FILTER_NAME)
			v->text = h->e.name;
		else if (!v->is_number)
			v->text = arena_printf(s->a, "%" PRId64, h->e.id);
	}
	return rc;
}

/* Reads the experiments of the wanted states and keeps those that match. */
static int load_experiments(struct experiment_search *s)
{
	struct db_rows *q;
	size_t i, n = 0;
	bool hit;
	int rc = db_start(s->d, &q, DB_experiment_rows, s->err, "t", permitted_ids(s->d));

	while (rc >= 0 && (rc = db_next(s->d, q, s->err)) > 0) {
		struct experiment e = read_experiment_row(s->a, q);

		if (e.deleted ? s->o->deleted : s->o->active)
			mem_push(&s->hits, &s->count, &s->cap, (struct experiment_hit){ .e = e });
	}
	for (i = 0; i < s->count && !rc; i++) {
		rc = fill_experiment_hit(s, &s->hits[i]);
		if (!rc)
			rc = filter_match(s->f, s->hits[i].values, &hit, s->err);
		if (!rc && hit)
			s->hits[n++] = s->hits[i];
	}
	s->count = n;
	return rc;
}

static int compare_experiment_hits(const void *x, const void *y, void *arg)
{
	const struct experiment_search *s = arg;
	const struct experiment_hit *a = x, *b = y;
	size_t i;
	int order;

	for (i = 0; i < filter_order_count(s->f); i++) {
		const struct filter_order *o = filter_order(s->f, i);
		bool ids = filter_field(s->f, o->field)->attribute == FILTER_RUN_ID;

		order = ids ? (a->e.id > b->e.id) - (a->e.id < b->e.id)
			    : filter_compare(&a->values[o->field], &b->values[o->field], o->descending);
		if (order)
			return ids && o->descending ? -order : order;
	}
	if (filter_order_count(s->f))
		return (a->e.id < b->e.id) - (a->e.id > b->e.id);
	if (a->e.created_ms != b->e.created_ms)
		return a->e.created_ms < b->e.created_ms ? 1 : -1;
	return (a->e.id > b->e.id) - (a->e.id < b->e.id);
}

static uint32_t plan_experiment_search(const struct experiments_opts *o)
{
	return crc32c(list_token_made_for(o->filter, o->order, o->order_count),
		      (unsigned char[]){ o->active, o->deleted }, 2);
}

/* Copies one page of the sorted hits, with their tags. */
static int take_experiment_page(struct experiment_search *s, struct arena *a, struct experiments *ret)
{
	size_t place = 0, i;
	int rc = list_token_read(s->o->page_token, plan_experiment_search(s->o), &place, s->err);

	if (rc)
		return rc;
	place = place < s->count ? place : s->count;
	ret->count = s->count - place < s->o->limit ? s->count - place : s->o->limit;
	ret->items = arena_array(a, ret->count + 1, sizeof(*ret->items));
	for (i = 0; i < ret->count && !rc; i++) {
		ret->items[i] = s->hits[place + i].e;
		ret->items[i].name = arena_strdup(a, ret->items[i].name);
		ret->items[i].location = arena_strdup(a, ret->items[i].location);
		rc = load_experiment_tags(s->d, a, &ret->items[i], s->err);
	}
	if (place + ret->count < s->count)
		ret->next_page_token = list_token_write(a, plan_experiment_search(s->o), place + ret->count);
	return rc;
}

int experiments_search(struct store *store, const struct experiments_opts *o, struct arena *a, struct experiments *ret,
		       struct err *err)
{
	struct filter_mlflow text = { FILTER_EXPERIMENTS, o->filter, o->order, o->order_count };
	struct experiment_search s = { .o = o, .a = arena_new(), .err = err };
	struct experiments page = { 0 };
	int rc = filter_parse_mlflow(&s.f, s.a, &text, err);

	if (!rc)
		rc = readers_take_permitted(store, &s.d, err);
	if (!rc) {
		rc = load_experiments(&s);
		if (!rc && s.count)
			qsort_r(s.hits, s.count, sizeof(*s.hits), compare_experiment_hits, &s);
		if (!rc)
			rc = take_experiment_page(&s, a, &page);
		readers_give(store, s.d);
	}
	free(s.hits);
	arena_free(s.a);
	if (!rc)
		*ret = page;
	return rc;
}
