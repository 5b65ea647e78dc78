/* search.c: query_runs. Rows of the runs and one column a field named in filter or order come from the store's columns
 * (searches that name their runs read them one by one); filter, order and page are decided in memory, and only the
 * page's runs are loaded whole. Points are never touched. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/buf.h"
#include "web/store/base/location.h"
#include "web/store/base/parts.h"
#include "web/store/db/readers.h"
#include "web/store/filter/filter.h"
#include "web/store/read/chosen.h"
#include "web/store/read/columns.h"
#include "web/store/read/detail.h"
#include "web/store/read/page.h"
#include "web/store/read/params.h"
#include "web/store/read/query.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX 50000

struct search {
	const struct query_runs_opts *o;
	struct db *d;
	struct arena *a;    /* the search's own, freed at its end */
	struct filter *f;
	struct keysets *keysets;
	struct columns *columns; /* held; NULL: rows and cells were read for this search */
	const struct columns_row *base; /* of the held ones */
	const struct columns_cell *cells[FILTER_MAX_FIELDS]; /* by field; NULL: the matrix has it, or no run */
	const struct columns_row **rows; /* by id */
	size_t row_count, row_cap;
	struct filter_value *values; /* [row][field] */
	size_t fields;
	size_t *hits;
	size_t hit_count;
	struct page_place after; /* of the page token */
	bool has_after;
	uint32_t plan;
	struct err *err;
};

static int no_memory(struct search *s)
{
	return err_set(s->err, ERR_NOMEM, "out of memory");
}

static int keep_row(struct search *s, const struct columns_row *r)
{
	const struct columns_row **grown;
	size_t cap;

	if (s->o->only_deleted ? !r->deleted : r->deleted && !s->o->with_deleted)
		return 0;
	if (s->row_count == s->row_cap) {
		cap = s->row_cap ? s->row_cap * 2 : 256;
		grown = realloc(s->rows, cap * sizeof *grown);
		if (!grown)
			return no_memory(s);
		s->rows = grown;
		s->row_cap = cap;
	}
	s->rows[s->row_count++] = r;
	return 0;
}

static int add_row(struct search *s, struct db_rows *q)
{
	struct columns_row *r = arena_alloc(s->a, sizeof *r);

	return r && columns_read_row(q, s->a, r) ? keep_row(s, r) : no_memory(s);
}

static int read_rows(struct search *s, struct db_rows *q)
{
	int rc;

	while ((rc = db_next(s->d, q, s->err)) > 0) {
		rc = add_row(s, q);
		if (rc) {
			db_stop(q);
			break;
		}
	}
	return rc;
}

static int by_row_id(const void *x, const void *y)
{
	const struct columns_row *a = *(const struct columns_row *const *)x, *b = *(const struct columns_row *const *)y;

	return (a->id > b->id) - (a->id < b->id);
}

static void sort_rows(struct search *s)
{
	size_t i, n = 0;

	if (!s->row_count)
		return; /* rows may be NULL then, which qsort does not take */
	qsort(s->rows, s->row_count, sizeof *s->rows, by_row_id);
	for (i = 0; i < s->row_count; i++)
		if (!n || s->rows[n - 1]->id != s->rows[i]->id)
			s->rows[n++] = s->rows[i];
	s->row_count = n;
}

static bool has_experiments(const struct query_runs_opts *o)
{
	return o->experiments || o->experiment_ids;
}

static bool wanted_experiment(const int64_t *ids, size_t n, int64_t id)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (ids[i] == id)
			return true;
	return false;
}

static int experiment_ids(struct search *s, int64_t *ids)
{
	size_t i;
	int rc;

	for (i = 0; i < s->o->experiment_count; i++) {
		if (s->o->experiment_ids) {
			ids[i] = s->o->experiment_ids[i];
			continue;
		}
		rc = db_int(s->d, &ids[i], DB_experiment_by_name, s->err, "t", s->o->experiments[i]);
		if (rc < 0)
			return rc;
		if (!rc)
			return err_set(s->err, ERR_NOENT, "there is no experiment '%.100s'", s->o->experiments[i]);
	}
	return 0;
}

static int load_named(struct search *s, const int64_t *experiments)
{
	struct db_rows *q;
	size_t i, n = 0;
	int rc = 0;

	for (i = 0; i < s->o->id_count && !rc; i++) {
		rc = db_start(s->d, &q, DB_run_row, s->err, "t", s->o->ids[i]);
		if (!rc)
			rc = read_rows(s, q);
	}
	sort_rows(s);
	for (i = 0; i < s->row_count && has_experiments(s->o); i++)
		if (wanted_experiment(experiments, s->o->experiment_count, s->rows[i]->experiment_id))
			s->rows[n++] = s->rows[i];
	if (has_experiments(s->o))
		s->row_count = n;
	return rc;
}

/* The columns and a snapshot that is no older; a commit between the two calls makes another try. */
static int take_columns(struct search *s, struct store *store)
{
	int rc = ERR_BUSY, tries;

	for (tries = 0; rc == ERR_BUSY && tries < 100; tries++) {
		readers_give(store, s->d);
		s->d = NULL;
		rc = readers_take(store, &s->d, s->err);
		if (!rc)
			rc = columns_take(store->columns, s->d, s->err);
	}
	if (!rc)
		s->columns = store->columns;
	return rc;
}

static void give_columns(struct search *s)
{
	if (s->columns)
		columns_give(s->columns);
	s->columns = NULL;
}

static int load_rows(struct search *s, struct store *store)
{
	int64_t *ids = arena_array(s->a, s->o->experiment_count + 1, sizeof *ids);
	size_t count, i;
	int rc = ids ? experiment_ids(s, ids) : no_memory(s);

	if (!rc && s->o->ids)
		return load_named(s, ids);
	if (!rc)
		rc = take_columns(s, store);
	if (rc)
		return rc;
	s->base = columns_rows(s->columns, &count);
	for (i = 0; i < count && !rc; i++)
		if (!s->base[i].gone && (!has_experiments(s->o) ||
					 wanted_experiment(ids, s->o->experiment_count, s->base[i].experiment_id)))
			rc = keep_row(s, &s->base[i]);
	return rc;
}

static void put_cell(struct search *s, size_t row, size_t field, struct db_rows *q)
{
	const struct filter_field *ff = filter_field(s->f, field);
	struct filter_value *v = &s->values[row * s->fields + field];

	v->present = true;
	if (ff->entity == FILTER_METRIC) {
		v->is_number = true;
		v->number = columns_number(q, ff->aggregate);
		return;
	}
	v->text = db_text(s->a, q, COL_param_column_value);
	v->is_number = !s->o->mlflow && ff->entity == FILTER_PARAM && filter_number(v->text, &v->number);
}

static int load_column(struct search *s, size_t field)
{
	static const enum db_query cells[] = { DB_version_get, DB_param_cell, DB_tag_cell, DB_metric_cell };
	const struct filter_field *ff = filter_field(s->f, field);
	struct db_rows *q;
	int64_t key;
	size_t i;
	int rc;

	if (s->columns)
		return columns_get(s->columns, s->d, ff->entity, ff->key, &s->cells[field], s->err);
	rc = db_int(s->d, &key, DB_key_by_name, s->err, "t", ff->key);
	if (rc <= 0)
		return rc;
	for (i = 0, rc = 0; i < s->row_count && rc >= 0; i++) {
		rc = db_start(s->d, &q, cells[ff->entity], s->err, "ii", key, s->rows[i]->id);
		if (!rc && (rc = db_next(s->d, q, s->err)) > 0) {
			put_cell(s, i, field, q);
			db_stop(q);
		}
	}
	return rc < 0 ? rc : 0;
}

static int experiment_column(struct search *s, size_t field)
{
	struct db_rows *q;
	size_t i;
	int rc = db_start(s->d, &q, DB_experiment_list, s->err, "");

	while (!rc && (rc = db_next(s->d, q, s->err)) > 0) {
		int64_t id = db_i64(q, COL_experiment_list_id);
		const char *name = db_text(s->a, q, COL_experiment_list_name);

		for (i = 0; i < s->row_count; i++)
			if (s->rows[i]->experiment_id == id)
				s->values[i * s->fields + field] = (struct filter_value){ .present = true,
											  .text = name };
		rc = 0;
	}
	return rc;
}

/* Every data set of the run is one value. */
static int dataset_cell(struct search *s, size_t row, size_t field)
{
	const char *key = filter_field(s->f, field)->key;
	enum db_column column = !strcmp(key, "name") ? COL_dataset_cells_name :
				!strcmp(key, "digest") ? COL_dataset_cells_digest : COL_dataset_cells_context;
	struct filter_value *v = &s->values[row * s->fields + field];
	struct db_rows *q;
	int rc;

	rc = db_start(s->d, &q, DB_dataset_cells, s->err, "i", s->rows[row]->id);
	while (!rc && (rc = db_next(s->d, q, s->err)) > 0) {
		struct filter_value *more = v->present ? arena_alloc(s->a, sizeof *more) : NULL;

		rc = 0;
		if (db_null(q, column))
			continue;
		if (v->present && !more) {
			db_stop(q);
			return no_memory(s);
		}
		if (more)
			*more = *v;
		*v = (struct filter_value){ .present = true, .text = db_text(s->a, q, column), .more = more };
	}
	return rc;
}

static int dataset_column(struct search *s, size_t field)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < s->row_count && !rc; i++)
		rc = dataset_cell(s, i, field);
	return rc;
}

static const char *artifact_uri(struct search *s, const struct columns_row *r)
{
	const char *location = "";
	struct db_rows *q;

	if (!db_start(s->d, &q, DB_experiment_location, s->err, "i", r->experiment_id) &&
	    db_next(s->d, q, s->err) > 0) {
		location = db_text(s->a, q, COL_experiment_location_location);
		db_stop(q);
	}
	return location_of(s->a, location ? location : "", r->experiment_id,
			   arena_printf(s->a, "%s/artifacts", r->uuid));
}

static const char *attribute_text(struct search *s, const struct columns_row *r, enum filter_attribute which)
{
	switch (which) {
	case FILTER_RUN_ID:
		return r->uuid;
	case FILTER_NAME:
		return r->name;
	case FILTER_STATUS:
		return s->o->mlflow ? query_mlflow_status(r->status) : r->status;
	case FILTER_USER:
		return r->user;
	case FILTER_ARTIFACT_URI:
		return artifact_uri(s, r);
	default:
		return NULL;
	}
}

static void attribute_cell(struct search *s, const struct columns_row *r, enum filter_attribute which,
			   struct filter_value *v)
{
	int64_t time = which == FILTER_START_TIME ? r->start_ms : r->end_ms;

	v->present = true;
	v->text = attribute_text(s, r, which);
	if (!v->text) {
		v->present = time != INT64_MIN;
		v->is_number = true;
		v->number = (double)time;
	}
}

static int load_columns(struct search *s)
{
	size_t field, i;
	int rc = 0;

	s->fields = filter_field_count(s->f);
	s->values = calloc(s->row_count * s->fields + 1, sizeof *s->values);
	if (!s->values)
		return no_memory(s);
	for (field = 0; field < s->fields && !rc; field++) {
		const struct filter_field *ff = filter_field(s->f, field);

		if (ff->entity == FILTER_DATASET)
			rc = dataset_column(s, field);
		else if (ff->entity != FILTER_ATTRIBUTE)
			rc = load_column(s, field);
		else if (ff->attribute == FILTER_EXPERIMENT)
			rc = experiment_column(s, field);
		else
			for (i = 0; i < s->row_count; i++)
				attribute_cell(s, s->rows[i], ff->attribute, &s->values[i * s->fields + field]);
	}
	return rc;
}

static int compare_text_cut(const struct filter_value *a, const struct filter_value *b, bool descending)
{
	int order;

	if (!a->present || !b->present || a->is_number || b->is_number)
		return filter_compare(a, b, descending);
	order = strncmp(a->text, b->text, PAGE_TEXT_BYTES);
	return descending ? -order : order;
}

static int compare_start(int64_t a, int64_t b)
{
	/* Newest first; unknown (the smallest number) last. */
	return (a < b) - (a > b);
}

static int compare_hits(const void *x, const void *y, void *arg)
{
	struct search *s = arg;
	size_t a = *(const size_t *)x, b = *(const size_t *)y, i;
	int order;

	for (i = 0; i < filter_order_count(s->f); i++) {
		const struct filter_order *o = filter_order(s->f, i);

		order = compare_text_cut(&s->values[a * s->fields + o->field], &s->values[b * s->fields + o->field],
					 o->descending);
		if (order)
			return order;
	}
	order = compare_start(s->rows[a]->start_ms, s->rows[b]->start_ms);
	return order ? order : strcmp(s->rows[a]->uuid, s->rows[b]->uuid);
}

/* Whether a row comes after the last one of the page before. */
static bool is_after(const struct search *s, size_t row)
{
	const struct columns_row *r = s->rows[row];
	size_t i;
	int order;

	for (i = 0; i < filter_order_count(s->f); i++) {
		const struct filter_order *o = filter_order(s->f, i);

		order = compare_text_cut(&s->values[row * s->fields + o->field], &s->after.keys[i], o->descending);
		if (order)
			return order > 0;
	}
	order = compare_start(r->start_ms, s->after.start_ms);
	return order ? order > 0 : strcmp(r->uuid, s->after.uuid) > 0;
}

static void fill_row(struct search *s, size_t row)
{
	struct filter_value *values = s->values + row * s->fields;
	size_t field;

	for (field = 0; field < s->fields; field++) {
		const struct filter_field *ff = filter_field(s->f, field);
		const struct columns_cell *cell = s->cells[field] ? &s->cells[field][s->rows[row] - s->base] : NULL;

		if (!cell || !cell->present)
			continue;
		values[field].present = true;
		values[field].text = cell->text;
		values[field].is_number = cell->is_number && (ff->entity == FILTER_METRIC || !s->o->mlflow);
		values[field].number = cell->number[ff->entity == FILTER_METRIC ? ff->aggregate : 0];
	}
}

static bool before(struct search *s, size_t a, size_t b)
{
	return compare_hits(&a, &b, s) < 0;
}

/* The best n of the hits come first, in any order (quickselect); the rest is dropped. */
static void keep_best(struct search *s, size_t n)
{
	size_t lo = 0, hi = s->hit_count, *h = s->hits;

	while (hi - lo > 1) {
		size_t pivot = h[lo + (hi - lo - 1) / 2], i = lo, j = hi - 1, swap;

		for (;; i++, j--) {
			while (before(s, h[i], pivot))
				i++;
			while (before(s, pivot, h[j]))
				j--;
			if (i >= j)
				break;
			swap = h[i];
			h[i] = h[j];
			h[j] = swap;
		}
		if (n <= j + 1)
			hi = j + 1;
		else
			lo = j + 1;
		if (n == hi || n == lo)
			break;
	}
	s->hit_count = n;
}

static size_t page_limit(const struct search *s)
{
	size_t limit = s->o->limit ? s->o->limit : LIMIT_DEFAULT;

	return limit < LIMIT_MAX ? limit : LIMIT_MAX;
}

/* One hit more than the page holds tells that there is a next one. */
static int select_hits(struct search *s)
{
	size_t want = page_limit(s) + 1, room = 2 * want + 4096, i, k, worst = SIZE_MAX;

	s->hits = calloc(room, sizeof *s->hits);
	if (!s->hits)
		return no_memory(s);
	for (i = 0; i < s->row_count; i++) {
		if (s->columns)
			fill_row(s, i);
		if (!filter_match(s->f, s->values + i * s->fields) || (s->has_after && !is_after(s, i)) ||
		    (worst != SIZE_MAX && !before(s, i, worst)))
			continue;
		s->hits[s->hit_count++] = i;
		if (s->hit_count < room)
			continue;
		keep_best(s, want);
		for (k = 0, worst = s->hits[0]; k < want; k++)
			worst = before(s, worst, s->hits[k]) ? s->hits[k] : worst;
	}
	if (s->hit_count > want)
		keep_best(s, want);
	qsort_r(s->hits, s->hit_count, sizeof *s->hits, compare_hits, s);
	return 0;
}

static struct page_place stored_path(const struct search *s, size_t row)
{
	const struct columns_row *r = s->rows[row];
	struct page_place p = { .start_ms = r->start_ms };
	size_t i;

	memcpy(p.uuid, r->uuid, sizeof p.uuid);
	for (i = 0; i < filter_order_count(s->f); i++)
		p.keys[i] = s->values[row * s->fields + filter_order(s->f, i)->field];
	return p;
}

/* Where the page before this one ended. */
static int read_token(struct search *s)
{
	const char *token = s->o->page_token;

	s->has_after = token && *token;
	s->plan = page_plan(s->o);
	return s->has_after ? page_read(token, s->plan, filter_order_count(s->f), s->a, &s->after, s->err) : 0;
}

static int load_runs(struct search *s, const int64_t *ids, struct arena *a, struct query_runs *ret)
{
	const struct query_runs_opts *o = s->o;
	unsigned parts = o->bare ? 0 : o->parts ? o->parts : QUERY_PARTS;
	bool choose = o->some_metrics || o->metrics_max || o->with_keys;
	/* alerts are made of metrics that nobody asked for */
	struct chosen_list list = { o, ids, ret->count, o->metrics_max || o->with_keys || parts & QUERY_ALERTS };
	struct chosen chosen = { 0 };
	bool some = o->params_max && parts & QUERY_PARAMS;
	struct detail_want want = { some ? parts & ~QUERY_PARAMS : parts, choose ? &chosen : NULL };
	int rc = choose ? chosen_begin(&chosen, s->keysets, s->d, &list, s->err) : 0;

	if (!rc)
		rc = detail_load_all(s->d, ids, &want, a, ret, s->err);
	if (!rc && some)
		rc = params_load(s->d, o, ids, a, ret, s->err);
	if (!rc && o->with_keys)
		rc = chosen_keys(&chosen, a, ret, s->err);
	ret->metrics_left_out = o->metrics_max && !chosen.all;
	chosen_end(&chosen);
	return rc;
}

/* The runs in full; the columns are given back before, so that other searches go on meanwhile. */
static int load_page(struct search *s, struct arena *a, struct query_runs *ret)
{
	size_t limit = page_limit(s), i;
	struct page_place last;
	int64_t rev = 0, *ids = arena_array(s->a, s->hit_count + 1, sizeof *ids);
	int rc = db_int(s->d, &rev, DB_rev_get, s->err, "");

	if (rc < 0)
		return rc;
	ret->rev = (uint64_t)rev;
	ret->count = s->hit_count < limit ? s->hit_count : limit;
	ret->items = arena_array(a, ret->count ? ret->count : 1, sizeof *ret->items);
	if (s->hit_count > limit) {
		last = stored_path(s, s->hits[limit - 1]);
		ret->next_page_token = page_write(s->plan, &last, filter_order_count(s->f), a);
	}
	if (!ids || !ret->items || (s->hit_count > limit && !ret->next_page_token))
		return no_memory(s);
	for (i = 0; i < ret->count; i++)
		ids[i] = s->rows[s->hits[i]]->id;
	give_columns(s);
	return load_runs(s, ids, a, ret);
}

int query_runs(struct store *store, const struct query_runs_opts *o, struct arena *a, struct query_runs *ret,
	       struct err *err)
{
	struct search s = { .o = o, .a = arena_new(), .keysets = store->keysets, .err = err };
	struct query_runs page = { 0 };
	int rc = s.a ? 0 : no_memory(&s);

	if (!rc && o->mlflow)
		rc = filter_parse_mlflow(&s.f, s.a, o->mlflow, err);
	else if (!rc)
		rc = filter_parse(&s.f, s.a, o->filter, o->order_by, err);
	if (!rc)
		rc = read_token(&s);
	if (!rc)
		rc = readers_take(store, &s.d, err);
	if (!rc)
		rc = load_rows(&s, store);
	if (!rc)
		rc = load_columns(&s);
	if (!rc)
		rc = select_hits(&s);
	if (!rc)
		rc = load_page(&s, a, &page);
	give_columns(&s);
	readers_give(store, s.d);
	free(s.rows);
	free(s.values);
	free(s.hits);
	arena_free(s.a);
	if (!rc)
		*ret = page;
	return rc;
}
