/* SPDX-License-Identifier: Apache-2.0 */
/* logged_models.c: reads one logged model, and searches those of some experiments, in pages. */
#include "web/store/mlflow/logged_models.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "web/store/db/db.h"
#include "web/store/filter/filter.h"

/* --- page tokens ---------------------------------------------------------------------------------------------- */

/* A token has lines: the position, the experiments, the order and the filter (last, because it may
 * have several lines). Values are in Python's syntax, like MLflow's: ['1', '2'], None. */

/* A Python string, with the quotes that need fewer escapes. */
static void print_quoted_text(struct buf *out, const char *text)
{
	char quote = strchr(text, '\'') && !strchr(text, '"') ? '"' : '\'';

	buf_addf(out, "%c", quote);
	for (; *text; text++)
		if (*text == '\n')
			buf_adds(out, "\\n");
		else if (*text == '\\' || *text == quote)
			buf_addf(out, "\\%c", *text);
		else
			buf_addf(out, "%c", *text);
	buf_addf(out, "%c", quote);
}

static void print_optional(struct buf *out, const char *key, const char *text)
{
	buf_addf(out, ", '%s': ", key);
	if (text)
		print_quoted_text(out, text);
	else
		buf_adds(out, "None");
}

static void print_experiment_ids(struct buf *out, const struct models_opts *o)
{
	buf_adds(out, "[");
	for (size_t i = 0; i < o->experiment_count; i++)
		buf_addf(out, "%s'%" PRId64 "'", i ? ", " : "", o->experiments[i]);
	buf_adds(out, "]");
}

static void print_order(struct buf *out, const struct models_opts *o)
{
	if (!o->order_count)
		buf_adds(out, "None");
	for (size_t i = 0; i < o->order_count; i++) {
		buf_adds(out, i ? ", {'field_name': " : "[{'field_name': ");
		print_quoted_text(out, o->order[i].field);
		buf_addf(out, ", 'ascending': %s", o->order[i].descending ? "False" : "True");
		print_optional(out, "dataset_name", o->order[i].dataset.name);
		print_optional(out, "dataset_digest", o->order[i].dataset.digest);
		buf_adds(out, i + 1 < o->order_count ? "}" : "}]");
	}
}

static void print_search(struct buf *out, const struct models_opts *o)
{
	print_experiment_ids(out, o);
	buf_addc(out, '\n');
	print_order(out, o);
	buf_addc(out, '\n');
	buf_adds(out, o->filter && *o->filter ? o->filter : "None");
}

static const char *models_token_write(struct arena *a, const struct models_opts *o, size_t place)
{
	const char *token;
	struct buf text;

	buf_init(&text, SIZE_MAX);
	buf_addf(&text, "%zu\n", place);
	print_search(&text, o);
	token = arena_strdup(a, text.data);
	buf_done(&text);
	return token;
}

/* Length of the first line. */
static size_t line_length(const char *text)
{
	return strcspn(text, "\n");
}

static int compare_searches(const char *expected, const char *found, struct err *err)
{
	static const char *const parts[][2] = { { "Experiment IDs", "experiment IDs" },
						{ "Order by", "order by" },
						{ "Filter string", "filter string" } };

	for (int i = 0; i < 3; i++) {
		size_t e = i < 2 ? line_length(expected) : strlen(expected),
		       f = i < 2 ? line_length(found) : strlen(found);

		if (e != f || memcmp(expected, found, e) != 0)
			return err_set(err, ERR_USAGE,
				       "%s in the page token do%s not match the requested %s. Expected: %.*s. Found: "
				       "%.*s",
				       parts[i][0], i ? "es" : "", parts[i][1], (int)e, expected, (int)f, found);
		expected += e + (i < 2);
		found += f + (i < 2 && found[f]);
	}
	return 0;
}

/* *ret: the number of models before the page of o->page_token, 0 without one. ERR_USAGE in MLflow's words: not a
 * token, or of another search. */
static int models_token_read(size_t *ret, const struct models_opts *o, struct err *err)
{
	struct buf expected;
	int end = 0, rc;

	*ret = 0;
	if (!o->page_token || !*o->page_token)
		return 0;
	if (sscanf(o->page_token, "%9zu%n", ret, &end) != 1 || o->page_token[end] != '\n' || *o->page_token == '-')
		return err_set(err, ERR_USAGE, "Invalid page token: '%.60s'", o->page_token);
	buf_init(&expected, SIZE_MAX);
	print_search(&expected, o);
	rc = compare_searches(expected.data, o->page_token + end + 1, err);
	buf_done(&expected);
	return rc;
}

static int load_model_metrics(struct db *d, int64_t id, struct arena *a, struct model *m, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_model_metrics, err, "i", id);

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		list_push(a, &m->metrics, &m->metric_count,
			  (struct model_metric){ .key = db_text(a, q, COL_model_metrics_name),
						 .time_ms = db_i64(q, COL_model_metrics_time_ms),
						 .step = db_i64(q, COL_model_metrics_step),
						 .run = db_text(a, q, COL_model_metrics_run),
						 .value = db_f64(q, COL_model_metrics_value),
						 .dataset_name = db_text(a, q, COL_model_metrics_dataset_name),
						 .dataset_digest = db_text(a, q, COL_model_metrics_dataset_digest) });
	return rc;
}

static int load_model_parts(struct db *d, int64_t id, struct arena *a, struct model *m, struct err *err)
{
	struct query_kvs params = { 0 }, tags = { 0 };
	struct db_rows *q;
	int rc = db_start(d, &q, DB_model_params, err, "i", id);

	rc = rc ? rc : query_pairs_read(d, q, a, &params, err);
	if (!rc)
		rc = db_start(d, &q, DB_model_tags, err, "i", id);
	rc = rc ? rc : query_pairs_read(d, q, a, &tags, err);
	m->params = params.items;
	m->param_count = params.count;
	m->tags = tags.items;
	m->tag_count = tags.count;
	return rc ? rc : load_model_metrics(d, id, a, m, err);
}

static struct model read_model_row(struct arena *a, struct db_rows *q)
{
	return (struct model){
		.id = db_text(a, q, COL_model_row_uuid), .experiment = db_i64(q, COL_model_row_experiment_id),
		.name = db_text(a, q, COL_model_row_name), .type = db_text(a, q, COL_model_row_type),
		.source_run = db_text(a, q, COL_model_row_source_run), .status = db_text(a, q, COL_model_row_status),
		.created_ms = db_i64(q, COL_model_row_created_ms),
		.updated_ms = db_i64(q, COL_model_row_updated_ms),
	};
}

/* Reads the one row of a started query, and its parts. */
static int load_model(struct db *d, struct db_rows *q, struct arena *a, struct model *ret, struct err *err)
{
	struct model m;
	int64_t row;
	int rc = db_next(d, q, err);

	if (rc <= 0)
		return rc ? rc : ERR_NOENT;
	row = db_i64(q, COL_model_row_id);
	m = read_model_row(a, q);
	db_stop(q);
	if (!permitted(d, m.experiment))
		return ERR_NOENT;
	rc = load_model_parts(d, row, a, &m, err);
	if (!rc)
		*ret = m;
	return rc;
}

struct model_ref {
	const char *id;
	bool deleted;
};

static int get_model(struct store *s, const struct model_ref *of, struct arena *a, struct model *ret, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_model_row, err, "ti", of->id, (int64_t)of->deleted);
	rc = rc ? rc : load_model(d, q, a, ret, err);
	readers_give(s, d);
	return rc;
}

int model_get(struct store *s, const char *id, struct arena *a, struct model *ret, struct err *err)
{
	return get_model(s, &(struct model_ref){ id, false }, a, ret, err);
}

int model_get_deleted(struct store *s, const char *id, struct arena *a, struct model *ret, struct err *err)
{
	return get_model(s, &(struct model_ref){ id, true }, a, ret, err);
}

int models_folders(struct store *s, const char *run, struct arena *a, struct models_folders *ret, struct err *err)
{
	struct models_folders list = { 0 };
	struct db_rows *q;
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_models_of_run, err, "t", run);
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		if (permitted(d, db_i64(q, COL_models_of_run_experiment_id)))
			list_push(a, &list.items, &list.count,
				  arena_printf(a, "%lld/models/%s/artifacts",
					       (long long)db_i64(q, COL_models_of_run_experiment_id),
					       db_str(q, COL_models_of_run_uuid)));
	readers_give(s, d);
	*ret = list;
	return rc;
}

/* --- search ------------------------------------------------------------------------------------------------- */

struct model_hit {
	struct model m;
	struct filter_value *values, *order;
};

struct model_search {
	const struct models_opts *o;
	struct db *d;
	struct arena *a;
	struct filter *f;
	struct model_hit *hits;
	size_t count;
	size_t place; /* number of models before the page */
	struct err *err;
};

static bool is_on_dataset(const struct model_metric *m, const struct models_dataset *d)
{
	return (!d->name || !strcmp(m->dataset_name, d->name)) && (!d->digest || !strcmp(m->dataset_digest, d->digest));
}

static bool is_on_any_dataset(const struct model_search *s, const struct model_metric *m)
{
	size_t i;

	for (i = 0; i < s->o->dataset_count; i++)
		if (is_on_dataset(m, &s->o->datasets[i]))
			return true;
	return !s->o->dataset_count;
}

static void model_attribute_value(const struct model *m, enum filter_attribute which, struct filter_value *v)
{
	v->present = true;
	v->text = which == FILTER_RUN_ID ? m->id : which == FILTER_NAME ? m->name : which == FILTER_TYPE ? m->type :
		  which == FILTER_STATUS ? m->status : which == FILTER_SOURCE_RUN ? m->source_run : NULL;
	v->is_number = !v->text;
	v->number = (double)(which == FILTER_CREATED ? m->created_ms : m->updated_ms);
	v->present = !v->text || *v->text;
}

/* Each point of the metric is one value. */
static void metric_values(struct model_search *s, const struct model *m, const char *key, struct filter_value *v)
{
	struct filter_value *more;
	size_t i;

	for (i = 0; i < m->metric_count; i++) {
		if (strcmp(m->metrics[i].key, key) || !is_on_any_dataset(s, &m->metrics[i]))
			continue;
		more = v->present ? arena_alloc(s->a, sizeof(*more)) : NULL;
		if (more)
			*more = *v;
		*v = (struct filter_value){
			.present = true, .is_number = true, .number = m->metrics[i].value, .more = more
		};
	}
}

/* Fills the values of the filter's fields. */
static void fill_model_hit(struct model_search *s, struct model_hit *h)
{
	size_t n = filter_field_count(s->f), i, k;

	h->values = arena_array(s->a, n + 1, sizeof(*h->values));
	for (i = 0; i < n; i++) {
		const struct filter_field *ff = filter_field(s->f, i);
		const struct query_kv *kv = ff->entity == FILTER_PARAM ? h->m.params : h->m.tags;
		size_t pairs = ff->entity == FILTER_PARAM ? h->m.param_count : h->m.tag_count;

		if (ff->entity == FILTER_ATTRIBUTE)
			model_attribute_value(&h->m, ff->attribute, &h->values[i]);
		else if (ff->entity == FILTER_METRIC)
			metric_values(s, &h->m, ff->key, &h->values[i]);
		else
			for (k = 0; k < pairs; k++)
				if (!strcmp(kv[k].key, ff->key))
					h->values[i] = (struct filter_value){ .present = true, .text = kv[k].value };
	}
}

/* If the filter tests no metric, a model matches that has any metric on one of the data sets. */
static bool datasets_match(const struct model_search *s, const struct model *m)
{
	size_t i;

	for (i = 0; i < filter_field_count(s->f); i++)
		if (filter_field(s->f, i)->entity == FILTER_METRIC)
			return true;
	for (i = 0; i < m->metric_count && s->o->dataset_count; i++)
		if (is_on_any_dataset(s, &m->metrics[i]))
			return true;
	return !s->o->dataset_count;
}

/* --- order -------------------------------------------------------------------------------------------------- */

static bool is_later_metric(const struct model_metric *a, const struct model_metric *b)
{
	if (a->time_ms != b->time_ms)
		return a->time_ms > b->time_ms;
	return a->step != b->step ? a->step > b->step : strcmp(a->run, b->run) < 0;
}

static void order_metric(const struct model *m, const struct models_order *o, struct filter_value *v)
{
	const struct model_metric *last = NULL;
	size_t i;

	for (i = 0; i < m->metric_count; i++) {
		const struct model_metric *p = &m->metrics[i];

		if (!strcmp(p->key, o->field + 8) && is_on_dataset(p, &o->dataset) &&
		    (!last || is_later_metric(p, last)))
			last = p;
	}
	if (last)
		*v = (struct filter_value){ .present = true, .is_number = true, .number = last->value };
}

static const struct {
	const char *name;
	enum filter_attribute attribute;
} order_names[] = {
	{ "name", FILTER_NAME },
	{ "model_id", FILTER_RUN_ID },
	{ "model_type", FILTER_TYPE },
	{ "status", FILTER_STATUS },
	{ "source_run_id", FILTER_SOURCE_RUN },
	{ "creation_time", FILTER_CREATED },
	{ "creation_timestamp", FILTER_CREATED },
	{ "creation_timestamp_ms", FILTER_CREATED },
	{ "last_updated_time", FILTER_UPDATED },
	{ "last_updated_timestamp", FILTER_UPDATED },
	{ "last_updated_timestamp_ms", FILTER_UPDATED },
};

static int order_attribute(const char *field)
{
	size_t i;

	for (i = 0; i < sizeof(order_names) / sizeof(order_names[0]); i++)
		if (!strcmp(order_names[i].name, field))
			return (int)order_names[i].attribute;
	return -1;
}

static int check_order(const struct models_opts *o, struct err *err)
{
	size_t i;

	for (i = 0; i < o->order_count; i++) {
		if (!strncmp(o->order[i].field, "metrics.", 8))
			continue;
		if (strchr(o->order[i].field, '.'))
			return err_set(err, ERR_USAGE,
				       "Invalid order by field name: %.100s. Only metrics are supported.",
				       o->order[i].field);
		if (order_attribute(o->order[i].field) < 0)
			return err_set(err, ERR_USAGE, "Invalid order by field name: %.100s", o->order[i].field);
	}
	return 0;
}

static void fill_model_order(struct model_search *s, struct model_hit *h)
{
	size_t i;

	h->order = arena_array(s->a, s->o->order_count + 1, sizeof(*h->order));
	for (i = 0; i < s->o->order_count; i++) {
		const struct models_order *o = &s->o->order[i];

		if (!strncmp(o->field, "metrics.", 8))
			order_metric(&h->m, o, &h->order[i]);
		else
			model_attribute_value(&h->m, (enum filter_attribute)order_attribute(o->field), &h->order[i]);
	}
}

static int compare_model_hits(const void *x, const void *y, void *arg)
{
	const struct models_opts *o = arg;
	const struct model_hit *a = x, *b = y;
	size_t i;
	int order;

	for (i = 0; i < o->order_count; i++) {
		order = filter_compare(&a->order[i], &b->order[i], o->order[i].descending);
		if (order)
			return order;
	}
	if (a->m.created_ms != b->m.created_ms)
		return a->m.created_ms < b->m.created_ms ? 1 : -1;
	return strcmp(a->m.id, b->m.id);
}

/* --- pages -------------------------------------------------------------------------------------------------- */

/* Reads the models of an experiment and keeps those that match. */
static int load_experiment_models(struct model_search *s, int64_t experiment)
{
	int64_t *ids = NULL;
	size_t first = s->count, id_count = 0, i, n;
	struct db_rows *q;
	bool hit;
	int rc = db_start(s->d, &q, DB_model_rows, s->err, "i", experiment);

	while (rc >= 0 && (rc = db_next(s->d, q, s->err)) > 0) {
		list_push(s->a, &ids, &id_count, db_i64(q, COL_model_row_id));
		list_push(s->a, &s->hits, &s->count, (struct model_hit){ .m = read_model_row(s->a, q) });
	}
	for (i = n = first; i < s->count && !rc; i++) {
		struct model_hit *h = &s->hits[i];

		rc = load_model_parts(s->d, ids[i - first], s->a, &h->m, s->err);
		if (!rc)
			fill_model_hit(s, h);
		if (!rc)
			rc = filter_match(s->f, h->values, &hit, s->err);
		if (!rc && hit && datasets_match(s, &h->m)) {
			fill_model_order(s, h);
			s->hits[n++] = *h;
		}
	}
	s->count = n;
	return rc;
}

static void take_model_page(struct model_search *s, struct arena *a, struct models *ret)
{
	size_t place = s->place < s->count ? s->place : s->count, i;

	if (s->count)
		qsort_r(s->hits, s->count, sizeof(*s->hits), compare_model_hits, (void *)(uintptr_t)s->o);
	ret->count = s->count - place < s->o->limit ? s->count - place : s->o->limit;
	ret->items = arena_array(a, ret->count + 1, sizeof(*ret->items));
	for (i = 0; i < ret->count; i++)
		ret->items[i] = s->hits[place + i].m;
	if (place + ret->count < s->count)
		ret->next_page_token = models_token_write(a, s->o, place + ret->count);
}

int models_search(struct store *store, const struct models_opts *o, struct arena *a, struct models *ret,
		  struct err *err)
{
	struct filter_mlflow text = { FILTER_MODELS, o->filter, NULL, 0 };
	struct model_search s = { .o = o, .a = a, .err = err };
	struct models page = { 0 };
	size_t i, k;
	int rc = models_token_read(&s.place, o, err);

	if (!rc)
		rc = check_order(o, err);
	if (!rc)
		rc = filter_parse_mlflow(&s.f, s.a, &text, err);
	if (!rc)
		rc = readers_take_permitted(store, &s.d, err);
	if (rc)
		return rc;
	for (i = 0; i < o->experiment_count && !rc; i++) {
		for (k = 0; k < i && o->experiments[k] != o->experiments[i]; k++)
			;
		if (k == i && permitted(s.d, o->experiments[i]))
			rc = load_experiment_models(&s, o->experiments[i]);
	}
	readers_give(store, s.d);
	if (!rc)
		take_model_page(&s, a, &page);
	if (!rc)
		*ret = page;
	return rc;
}
