/* SPDX-License-Identifier: Apache-2.0 */
/* run_search.c: query_runs. Rows and one column per field of filter and order come from the store's columns; a search
 * that names its runs reads them one by one. Filter, order and page are computed in memory, and only the runs of the
 * page are loaded completely. Points are never read. */
#include <stdlib.h>

#include "tracker/mem/mem.h"
#include "web/store/base/parts.h"
#include "web/store/read/page_token.h"
#include "web/store/read/read_inside.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX 50000

/* A candidate for the page. */
struct run_hit {
	const struct columns_row *row;
	struct filter_value *values; /* one per field */
};

struct run_search {
	const struct query_runs_opts *o;
	struct db *d;
	struct arena *a; /* of the search, freed at its end */
	struct filter *f;
	struct keysets *keysets;
	struct columns *columns;	 /* taken; NULL: rows were read for this search */
	const struct columns_row **rows; /* by id */
	size_t row_count, row_cap;
	struct cells cells;
	struct run_hit *hits;
	size_t hit_count;
	struct filter_value *values;   /* values of all hits */
	struct page_token_place after; /* from the page token */
	bool has_after;
	struct page_token_search token;
	struct err *err;
};

static bool is_shown_run(const struct query_runs_opts *o, bool deleted)
{
	return o->only_deleted ? deleted : !deleted || o->with_deleted;
}

static void keep_search_row(struct run_search *s, const struct columns_row *r)
{
	mem_push(&s->rows, &s->row_count, &s->row_cap, r);
}

static void add_search_row(struct run_search *s, struct db_rows *q)
{
	struct columns_row *r = arena_alloc(s->a, sizeof(*r));

	columns_read_row(q, s->a, r);
	if (is_shown_run(s->o, r->deleted) && permitted(s->d, r->experiment_id))
		keep_search_row(s, r);
}

static int read_search_rows(struct run_search *s, struct db_rows *q)
{
	int rc;

	while ((rc = db_next(s->d, q, s->err)) > 0)
		add_search_row(s, q);
	return rc;
}

static int compare_row_ids(const void *x, const void *y)
{
	const struct columns_row *a = *(const struct columns_row *const *)x, *b = *(const struct columns_row *const *)y;

	return (a->id > b->id) - (a->id < b->id);
}

static void sort_rows(struct run_search *s)
{
	size_t i, n = 0;

	if (!s->row_count)
		return; /* rows may be NULL then, which qsort does not accept */
	qsort(s->rows, s->row_count, sizeof(*s->rows), compare_row_ids);
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

static int experiment_ids(struct run_search *s, int64_t *ids)
{
	size_t i;
	int rc;

	for (i = 0; i < s->o->experiment_count; i++) {
		if (s->o->experiment_ids) {
			ids[i] = s->o->experiment_ids[i];
			continue;
		}
		rc = experiment_named(s->d, s->o->experiments[i], &ids[i], s->err);
		if (rc)
			return rc;
	}
	return 0;
}

static int load_named(struct run_search *s, const int64_t *experiments)
{
	struct db_rows *q;
	size_t i, n = 0;
	int rc = 0;

	for (i = 0; i < s->o->id_count && !rc; i++) {
		rc = db_start(s->d, &q, DB_run_row, s->err, "t", s->o->ids[i]);
		if (!rc)
			rc = read_search_rows(s, q);
	}
	sort_rows(s);
	for (i = 0; i < s->row_count && has_experiments(s->o); i++)
		if (wanted_experiment(experiments, s->o->experiment_count, s->rows[i]->experiment_id))
			s->rows[n++] = s->rows[i];
	if (has_experiments(s->o))
		s->row_count = n;
	return rc;
}

/* Takes the columns and a snapshot that is at least as new; a commit in between causes a retry. */
static int take_columns(struct run_search *s, struct store *store)
{
	int rc = ERR_BUSY, tries;

	for (tries = 0; rc == ERR_BUSY && tries < 100; tries++) {
		readers_give(store, s->d);
		s->d = NULL;
		rc = readers_take_permitted(store, &s->d, s->err);
		if (!rc)
			rc = columns_take(store->columns, s->d, s->err);
	}
	if (!rc)
		s->columns = store->columns;
	return rc;
}

static void give_columns(struct run_search *s)
{
	if (s->columns)
		columns_give(s->columns);
	s->columns = NULL;
}

/* Lists the rows that experiments and deletion state admit. */
static int load_search_rows(struct run_search *s, struct store *store)
{
	int64_t *ids = arena_array(s->a, s->o->experiment_count + 1, sizeof(*ids));
	const struct columns_mark *marks;
	const struct columns_row *base;
	size_t count, i;
	int rc = experiment_ids(s, ids);

	if (!rc && s->o->ids)
		return load_named(s, ids);
	if (!rc)
		rc = take_columns(s, store);
	if (rc)
		return rc;
	base = columns_rows(s->columns, &count);
	marks = columns_marks(s->columns);
	for (i = 0; i < count; i++)
		if (!marks[i].gone && is_shown_run(s->o, marks[i].deleted) && permitted(s->d, marks[i].experiment_id) &&
		    (!has_experiments(s->o) || wanted_experiment(ids, s->o->experiment_count, marks[i].experiment_id)))
			keep_search_row(s, &base[i]);
	return 0;
}

static int compare_text_cut(const struct run_search *s, const struct filter_value *a, const struct filter_value *b,
			    bool descending)
{
	int order;

	if (!a->present || !b->present || a->is_number || b->is_number)
		return s->o->mlflow ? filter_compare(a, b, descending) : filter_compare_finite(a, b, descending);
	order = strncmp(a->text, b->text, PAGE_TOKEN_TEXT_BYTES);
	return descending ? -order : order;
}

static int compare_start(int64_t a, int64_t b)
{
	/* Newest first; unknown (INT64_MIN) last. */
	return (a < b) - (a > b);
}

static int compare_rows(const struct columns_row *r, int64_t start_ms, const char *uuid)
{
	int order = compare_start(r->start_ms, start_ms);

	return order ? order : strcmp(r->uuid, uuid);
}

static int compare_sort_values(const struct run_search *s, const struct run_hit *a, const struct run_hit *b)
{
	size_t i;
	int order;

	for (i = 0; i < filter_order_count(s->f); i++) {
		const struct filter_order *o = filter_order(s->f, i);

		order = compare_text_cut(s, &a->values[o->field], &b->values[o->field], o->descending);
		if (order)
			return order;
	}
	return compare_rows(a->row, b->row->start_ms, b->row->uuid);
}

static int compare_search_hits(const void *x, const void *y, void *arg)
{
	return compare_sort_values(arg, x, y);
}

static bool is_hit_before(const struct run_search *s, const struct run_hit *a, const struct run_hit *b)
{
	return compare_sort_values(s, a, b) < 0;
}

/* Returns true if a run is after the last one of the previous page. */
static bool is_after_page(const struct run_search *s, const struct run_hit *h)
{
	size_t i;
	int order;

	for (i = 0; i < filter_order_count(s->f); i++) {
		const struct filter_order *o = filter_order(s->f, i);

		order = compare_text_cut(s, &h->values[o->field], &s->after.keys[i], o->descending);
		if (order)
			return order > 0;
	}
	return compare_rows(h->row, s->after.start_ms, s->after.uuid) > 0;
}

/* Moves the best n hits to the front, in any order (quickselect), and drops the rest. */
static void keep_best(struct run_search *s, size_t n)
{
	size_t lo = 0, hi = s->hit_count;
	struct run_hit *h = s->hits;

	while (hi - lo > 1) {
		struct run_hit pivot = h[lo + (hi - lo - 1) / 2], swap;
		size_t i = lo, j = hi - 1;

		for (;; i++, j--) {
			while (is_hit_before(s, &h[i], &pivot))
				i++;
			while (is_hit_before(s, &pivot, &h[j]))
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

static size_t page_limit(const struct run_search *s)
{
	size_t limit = s->o->limit ? s->o->limit : LIMIT_DEFAULT;

	return limit < LIMIT_MAX ? limit : LIMIT_MAX;
}

static void make_hits(struct run_search *s, size_t room)
{
	size_t fields = filter_field_count(s->f), i;

	s->hits = mem_array(room, sizeof(*s->hits));
	s->values = mem_array(room * fields + 1, sizeof(*s->values));
	for (i = 0; i < room; i++)
		s->hits[i].values = s->values + i * fields;
}

static const struct run_hit *find_worst(const struct run_search *s)
{
	const struct run_hit *worst = s->hits;
	size_t i;

	for (i = 1; i < s->hit_count; i++)
		worst = is_hit_before(s, worst, &s->hits[i]) ? &s->hits[i] : worst;
	return worst;
}

static int fill_search_hit(struct run_search *s, struct run_hit *h, size_t from, size_t to)
{
	size_t field;
	int rc = 0;

	for (field = from; field < to && !rc; field++)
		rc = cells_get(&s->cells, h->row, field, &h->values[field], s->err);
	return rc;
}

/* Tests whether the first sort key places a run after the worst of a full page, which excludes most runs. */
static int is_beyond(struct run_search *s, struct run_hit *h, const struct run_hit *worst, bool *ret)
{
	const struct filter_order *o = filter_order_count(s->f) ? filter_order(s->f, 0) : NULL;
	int rc = 0;

	*ret = false;
	if (o)
		rc = fill_search_hit(s, h, o->field, o->field + 1);
	if (o && !rc)
		*ret = compare_text_cut(s, &h->values[o->field], &worst->values[o->field], o->descending) > 0;
	return rc;
}

/* Tests whether a run may be on the page. worst: of a full page, or NULL. */
static int judge_search_hit(struct run_search *s, struct run_hit *h, const struct run_hit *worst, bool *ret)
{
	size_t tested = filter_tested_count(s->f);
	bool beyond = false, hit = false;
	int rc = fill_search_hit(s, h, 0, tested);

	*ret = false;
	if (!rc)
		rc = filter_match(s->f, h->values, &hit, s->err);
	if (rc || !hit)
		return rc;
	if (worst)
		rc = is_beyond(s, h, worst, &beyond);
	if (rc || beyond)
		return rc;
	rc = fill_search_hit(s, h, tested, filter_field_count(s->f));
	*ret = !rc && !(s->has_after && !is_after_page(s, h)) && !(worst && !is_hit_before(s, h, worst));
	return rc;
}

/* Selects one hit more than the page has, which shows that there is a next page. */
static int select_hits(struct run_search *s)
{
	size_t want = page_limit(s) + 1, room = 2 * want + 4096, i;
	const struct run_hit *worst = NULL; /* the last hit of a full page */
	bool hit;
	int rc = 0;

	room = room > s->row_count ? s->row_count + 1 : room;
	make_hits(s, room);
	for (i = 0; i < s->row_count && !rc; i++) {
		struct run_hit *h = &s->hits[s->hit_count];

		h->row = s->rows[i];
		rc = judge_search_hit(s, h, worst, &hit);
		if (rc || !hit || ++s->hit_count < room)
			continue;
		keep_best(s, want);
		worst = find_worst(s);
	}
	if (rc)
		return rc;
	if (s->hit_count > want)
		keep_best(s, want);
	if (s->hit_count)
		qsort_r(s->hits, s->hit_count, sizeof(*s->hits), compare_search_hits, s);
	return 0;
}

static struct page_token_place hit_place(const struct run_search *s, const struct run_hit *h)
{
	struct page_token_place p = { .start_ms = h->row->start_ms };
	size_t i;

	memcpy(p.uuid, h->row->uuid, sizeof(p.uuid));
	for (i = 0; i < filter_order_count(s->f); i++)
		p.keys[i] = h->values[filter_order(s->f, i)->field];
	return p;
}

/* Reads where the previous page ended. */
static int read_search_token(struct run_search *s)
{
	const char *token = s->o->page_token;

	s->has_after = token && *token;
	s->token = (struct page_token_search){ page_token_plan(s->o), filter_order_count(s->f) };
	return s->has_after ? page_token_read(token, &s->token, s->a, &s->after, s->err) : 0;
}

static int load_runs(struct run_search *s, const int64_t *ids, struct arena *a, struct query_runs *ret)
{
	const struct query_runs_opts *o = s->o;
	unsigned parts = o->bare ? 0 : o->parts ? o->parts : QUERY_PARTS;
	bool choose = o->some_metrics || o->metrics_max || o->with_keys;
	/* alerts need metrics that were not requested */
	struct metric_select_list list = { o, ids, ret->count, o->metrics_max || o->with_keys || parts & QUERY_ALERTS };
	struct metric_select chosen = { 0 };
	bool some = o->params_max && parts & QUERY_PARAMS;
	struct detail_want want = { ids, some ? parts & ~QUERY_PARAMS : parts, choose ? &chosen : NULL };
	int rc = choose ? metric_select_begin(&chosen, s->keysets, s->d, &list, s->err) : 0;

	if (!rc)
		rc = detail_load_all(s->d, &want, a, ret, s->err);
	if (!rc && some)
		rc = run_params_load(s->d, &list, a, ret, s->err);
	if (!rc && o->with_keys)
		metric_select_keys(&chosen, a, ret);
	ret->metrics_left_out = o->metrics_max && !chosen.all;
	metric_select_end(&chosen);
	return rc;
}

/* Loads the runs completely; gives the columns back first, so that other searches can run. */
static int load_page(struct run_search *s, struct arena *a, struct query_runs *ret)
{
	size_t limit = page_limit(s), i;
	struct page_token_place last;
	int64_t *ids = arena_array(s->a, s->hit_count + 1, sizeof(*ids));

	ret->count = s->hit_count < limit ? s->hit_count : limit;
	ret->items = arena_array(a, ret->count ? ret->count : 1, sizeof(*ret->items));
	if (s->hit_count > limit) {
		last = hit_place(s, &s->hits[limit - 1]);
		ret->next_page_token = page_token_write(&s->token, &last, a);
	}
	for (i = 0; i < ret->count; i++)
		ids[i] = s->hits[i].row->id;
	give_columns(s);
	return load_runs(s, ids, a, ret);
}

static int read_rev(struct run_search *s, struct db_rows *q, struct query_runs *ret)
{
	int rc = db_next(s->d, q, s->err);

	if (rc <= 0)
		return rc;
	ret->rev = (uint64_t)db_i64(q, COL_rev_get_rev);
	db_stop(q);
	return 0;
}

static int find_cells(struct run_search *s)
{
	s->cells = (struct cells){ .d = s->d, .a = s->a, .f = s->f, .mlflow = s->o->mlflow != NULL };
	return cells_begin(&s->cells, s->columns, s->err);
}

int query_runs(struct store *store, const struct query_runs_opts *o, struct arena *a, struct query_runs *ret,
	       struct err *err)
{
	struct run_search s = { .o = o, .a = arena_new(), .keysets = store->keysets, .err = err };
	struct query_runs page = { 0 };
	struct db_rows *rev;
	int rc;

	if (o->mlflow)
		rc = filter_parse_mlflow(&s.f, s.a, o->mlflow, err);
	else
		rc = filter_parse(&s.f, s.a, o->filter, o->order_by, err);
	if (!rc)
		rc = read_search_token(&s);
	if (!rc)
		rc = readers_take_permitted(store, &s.d, err);
	if (!rc)
		rc = load_search_rows(&s, store);
	if (!rc)
		rc = find_cells(&s);
	if (!rc)
		rc = select_hits(&s);
	if (!rc)
		rc = db_start(s.d, &rev, DB_rev_get, err, "");
	if (!rc)
		rc = load_page(&s, a, &page);
	if (!rc)
		rc = read_rev(&s, rev, &page);
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
