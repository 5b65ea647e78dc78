/* SPDX-License-Identifier: Apache-2.0 */
/* registered.c: reads registered models and versions by name, and searches them in pages. */
#include "web/store/registry/registered.h"

#include <stdlib.h>

#include "web/store/db/db.h"
#include "web/store/read/page_token.h"

/* --- rows ----------------------------------------------------------------------------------------------------- */

/* From the current row of a query with the columns of registered_rows or version_rows. */
static struct registered_model rows_model(struct arena *a, struct db_rows *q)
{
	return (struct registered_model){
		.name = db_text(a, q, COL_registered_rows_name),
		.description = db_text(a, q, COL_registered_rows_description),
		.created_ms = db_i64(q, COL_registered_rows_created_ms),
		.updated_ms = db_i64(q, COL_registered_rows_updated_ms),
	};
}

static const char *read_optional_text(struct arena *a, struct db_rows *q, enum db_column column)
{
	return db_null(q, column) ? NULL : db_text(a, q, column);
}

static struct registered_version rows_version(struct arena *a, struct db_rows *q)
{
	return (struct registered_version){
		.model = db_text(a, q, COL_version_rows_name),
		.version = db_i64(q, COL_version_rows_version),
		.description = read_optional_text(a, q, COL_version_rows_description),
		.user = read_optional_text(a, q, COL_version_rows_user),
		.run = read_optional_text(a, q, COL_version_rows_run),
		.run_link = read_optional_text(a, q, COL_version_rows_run_link),
		.status_text = read_optional_text(a, q, COL_version_rows_status_text),
		.stage = db_text(a, q, COL_version_rows_stage),
		.source = db_text(a, q, COL_version_rows_source),
		.status = db_text(a, q, COL_version_rows_status),
		.location = db_text(a, q, COL_version_rows_location),
		.created_ms = db_i64(q, COL_version_rows_created_ms),
		.updated_ms = db_i64(q, COL_version_rows_updated_ms),
	};
}

/* A version belongs to the experiment of its run; without a run its model's name is judged, like an experiment's. */
static bool is_permitted_version(const struct db *d, struct db_rows *q, enum db_column experiment, const char *model)
{
	return db_null(q, experiment) ? permitted_level(d, model) >= GRANT_READ : permitted(d, db_i64(q, experiment));
}

/* A registered model is seen by its name or by a version that is seen. */
static bool is_permitted_model(const struct db *d, struct db_rows *q)
{
	return db_i32(q, COL_registered_rows_seen) ||
	       permitted_level(d, db_str(q, COL_registered_rows_name)) >= GRANT_READ;
}

/* id: row of the registered model. */
static int rows_model_tags(struct db *d, int64_t id, struct arena *a, struct registered_model *m, struct err *err)
{
	struct query_kvs tags = { 0 };
	struct db_rows *q;
	int rc = db_start(d, &q, DB_registered_tags, err, "i", id);

	rc = rc ? rc : query_pairs_read(d, q, a, &tags, err);
	m->tags = tags.items;
	m->tag_count = tags.count;
	return rc;
}

static int rows_version_tags(struct db *d, int64_t id, struct arena *a, struct registered_version *v, struct err *err)
{
	struct query_kvs tags = { 0 };
	struct db_rows *q;
	int rc = db_start(d, &q, DB_version_tags, err, "ii", id, v->version);

	rc = rc ? rc : query_pairs_read(d, q, a, &tags, err);
	v->tags = tags.items;
	v->tag_count = tags.count;
	return rc;
}

static int rows_model_aliases(struct db *d, int64_t id, struct arena *a, struct registered_model *m, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_registered_aliases, err, "i", id);

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		if (is_permitted_version(d, q, COL_registered_aliases_experiment_id, m->name))
			list_push(a, &m->aliases, &m->alias_count,
				  (struct registered_alias){ db_text(a, q, COL_registered_aliases_alias),
							     db_i64(q, COL_registered_aliases_version) });
	return rc;
}

static int rows_model_latest(struct db *d, int64_t id, struct arena *a, struct registered_model *m, struct err *err)
{
	struct db_rows *q;
	size_t i;
	int rc = db_start(d, &q, DB_version_latest, err, "iti", id, permitted_ids(d),
			  (int64_t)(permitted_level(d, m->name) >= GRANT_READ));

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		list_push(a, &m->latest, &m->latest_count, rows_version(a, q));
	for (i = 0; i < m->latest_count && !rc; i++)
		rc = rows_version_tags(d, id, a, &m->latest[i], err);
	return rc;
}

/* Reads tags, aliases and the newest versions. */
static int rows_model_parts(struct db *d, int64_t id, struct arena *a, struct registered_model *m, struct err *err)
{
	int rc = rows_model_tags(d, id, a, m, err);

	if (!rc)
		rc = rows_model_aliases(d, id, a, m, err);
	return rc ? rc : rows_model_latest(d, id, a, m, err);
}

/* --- searches ------------------------------------------------------------------------------------------------- */

/* Searches the registry. It is small compared with runs, so a search reads all of it. */

#define PROMPT_TAG "mlflow.prompt.is_prompt"

/* A registered model, or one version where v.model is set. */
struct registered_hit {
	int64_t id; /* row of the registered model */
	bool prompt;
	struct registered_model m;
	struct registered_version v;
	struct filter_value *values;
};

struct registry_search {
	const struct registered_opts *o;
	struct db *d;
	struct arena *a; /* for the search only */
	struct filter *f;
	bool versions;
	struct registered_hit *hits;
	size_t count;
	struct err *err;
};

static int load_registered_tags(struct registry_search *s, struct registered_hit *h, struct arena *a)
{
	return s->versions ? rows_version_tags(s->d, h->id, a, &h->v, s->err)
			   : rows_model_tags(s->d, h->id, a, &h->m, s->err);
}

/* --- values --------------------------------------------------------------------------------------------------- */

static struct filter_value text_value(const char *text)
{
	return (struct filter_value){ .present = text != NULL, .text = text };
}

static struct filter_value number_value(int64_t number)
{
	return (struct filter_value){ .present = true, .is_number = true, .number = (double)number };
}

static struct filter_value registered_attribute_value(const struct registry_search *s, const struct registered_hit *h,
						      enum filter_attribute which)
{
	switch (which) {
	case FILTER_NAME:
		return text_value(s->versions ? h->v.model : h->m.name);
	case FILTER_VERSION:
		return number_value(h->v.version);
	case FILTER_SOURCE_RUN:
		return text_value(h->v.run);
	case FILTER_ARTIFACT_URI:
		return text_value(h->v.source);
	case FILTER_CREATED:
		return number_value(s->versions ? h->v.created_ms : h->m.created_ms);
	default:
		return number_value(s->versions ? h->v.updated_ms : h->m.updated_ms);
	}
}

static struct filter_value registered_tag_value(const struct registry_search *s, const struct registered_hit *h,
						const char *key)
{
	const struct query_kv *tags = s->versions ? h->v.tags : h->m.tags;
	size_t n = s->versions ? h->v.tag_count : h->m.tag_count, i;

	for (i = 0; i < n; i++)
		if (!strcmp(tags[i].key, key))
			return text_value(tags[i].value);
	return text_value(strcmp(key, PROMPT_TAG) ? NULL : h->prompt ? "true" : "false");
}

/* Reads tags only if the filter needs one. */
static int fill_registered_hit(struct registry_search *s, struct registered_hit *h)
{
	size_t n = filter_field_count(s->f), i;
	bool loaded = false;
	int rc = 0;

	h->values = arena_array(s->a, n + 1, sizeof(*h->values));
	for (i = 0; i < n && !rc; i++) {
		const struct filter_field *ff = filter_field(s->f, i);

		if (ff->entity == FILTER_TAG && !loaded) {
			rc = load_registered_tags(s, h, s->a);
			loaded = true;
		}
		h->values[i] = ff->entity == FILTER_TAG ? registered_tag_value(s, h, ff->key)
							: registered_attribute_value(s, h, ff->attribute);
	}
	return rc;
}

static bool names_prompts(const struct filter *f)
{
	size_t i;

	for (i = 0; i < filter_field_count(f); i++)
		if (filter_field(f, i)->entity == FILTER_TAG && !strcmp(filter_field(f, i)->key, PROMPT_TAG))
			return true;
	return false;
}

/* --- rows ----------------------------------------------------------------------------------------------------- */

static struct registered_hit read_registered_hit(struct registry_search *s, struct db_rows *q)
{
	struct registered_hit h = { 0 };

	if (s->versions) {
		h.id = db_i64(q, COL_version_rows_registered_id);
		h.prompt = db_i32(q, COL_version_rows_prompt);
		h.v = rows_version(s->a, q);
	} else {
		h.id = db_i64(q, COL_registered_rows_id);
		h.prompt = db_i32(q, COL_registered_rows_prompt);
		h.m = rows_model(s->a, q);
	}
	return h;
}

/* Reads all models or versions and keeps those that match. */
static int load_registered_hits(struct registry_search *s)
{
	bool prompts = names_prompts(s->f), hit;
	size_t i, n = 0;
	struct db_rows *q;
	int rc = s->versions ? db_start(s->d, &q, DB_version_rows, s->err, "")
			     : db_start(s->d, &q, DB_registered_rows, s->err, "t", permitted_ids(s->d));

	while (rc >= 0 && (rc = db_next(s->d, q, s->err)) > 0)
		if (s->versions ? is_permitted_version(s->d, q, COL_version_rows_experiment_id,
						       db_str(q, COL_version_rows_name))
				: is_permitted_model(s->d, q))
			list_push(s->a, &s->hits, &s->count, read_registered_hit(s, q));
	for (i = 0; i < s->count && !rc; i++) {
		if (s->hits[i].prompt && !prompts)
			continue;
		rc = fill_registered_hit(s, &s->hits[i]);
		if (!rc)
			rc = filter_match(s->f, s->hits[i].values, &hit, s->err);
		if (!rc && hit)
			s->hits[n++] = s->hits[i];
	}
	s->count = n;
	return rc;
}

/* --- order ---------------------------------------------------------------------------------------------------- */

static int compare_numbers(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int compare_registered_hits(const void *x, const void *y, void *arg)
{
	const struct registry_search *s = arg;
	const struct registered_hit *a = x, *b = y;
	size_t i;
	int order = 0;

	for (i = 0; i < filter_order_count(s->f) && !order; i++) {
		const struct filter_order *o = filter_order(s->f, i);

		order = filter_compare(&a->values[o->field], &b->values[o->field], o->descending);
	}
	if (!order && s->versions && !filter_order_count(s->f))
		order = compare_numbers(b->v.updated_ms, a->v.updated_ms);
	if (!order)
		order = s->versions ? strcmp(a->v.model, b->v.model) : strcmp(a->m.name, b->m.name);
	return order ? order : compare_numbers(b->v.version, a->v.version);
}

/* --- pages ---------------------------------------------------------------------------------------------------- */

/* Copies the hit for the caller, with its text in a. */
static int copy_out_model(struct registry_search *s, const struct registered_hit *h, struct arena *a,
			  struct registered_model *ret)
{
	*ret = h->m;
	ret->tags = NULL;
	ret->tag_count = 0;
	ret->name = arena_strdup(a, h->m.name);
	ret->description = arena_strdup(a, h->m.description);
	return rows_model_parts(s->d, h->id, a, ret, s->err);
}

static int copy_out_version(struct registry_search *s, const struct registered_hit *h, struct arena *a,
			    struct registered_version *ret)
{
	const char **texts[] = { &ret->model,	    &ret->description, &ret->user,   &ret->run,	   &ret->run_link,
				 &ret->status_text, &ret->stage,       &ret->source, &ret->status, &ret->location };
	size_t i;

	*ret = h->v;
	ret->tags = NULL;
	ret->tag_count = 0;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (*texts[i])
			*texts[i] = arena_strdup(a, *texts[i]);
	return rows_version_tags(s->d, h->id, a, ret, s->err);
}

/* Selects the hits of the page, and writes the token of the next. */
struct registry_page {
	size_t from, count;
	const char *next;
};

static int turn_to_place(struct registry_search *s, struct arena *a, struct registry_page *p)
{
	uint32_t made_for = list_token_made_for(s->o->filter, s->o->order, s->o->order_count);
	int rc = list_token_read(s->o->page_token, made_for, &p->from, s->err);

	if (rc)
		return rc;
	if (s->count)
		qsort_r(s->hits, s->count, sizeof(*s->hits), compare_registered_hits, s);
	p->from = p->from < s->count ? p->from : s->count;
	p->count = s->count - p->from < s->o->limit ? s->count - p->from : s->o->limit;
	p->next = p->from + p->count < s->count ? list_token_write(a, made_for, p->from + p->count) : NULL;
	return 0;
}

/* Fills a list of registered models, or of versions. */
static int copy_out_page(struct registry_search *s, struct arena *a, void *ret)
{
	struct registered_models *models = ret;
	struct registered_versions *versions = ret;
	struct registry_page p = { 0 };
	size_t i;
	int rc = turn_to_place(s, a, &p);

	if (rc)
		return rc;
	if (s->versions)
		*versions = (struct registered_versions){ arena_array(a, p.count + 1, sizeof(*versions->items)),
							  p.count, p.next };
	else
		*models = (struct registered_models){ arena_array(a, p.count + 1, sizeof(*models->items)), p.count,
						      p.next };
	for (i = 0; i < p.count && !rc; i++)
		rc = s->versions ? copy_out_version(s, &s->hits[p.from + i], a, &versions->items[i])
				 : copy_out_model(s, &s->hits[p.from + i], a, &models->items[i]);
	return rc;
}

static int run_search(struct store *store, struct registry_search *s, struct arena *a, void *ret)
{
	struct filter_mlflow text = { s->versions ? FILTER_VERSIONS : FILTER_REGISTERED, s->o->filter, s->o->order,
				      s->o->order_count };
	int rc;

	s->a = arena_new();
	rc = filter_parse_mlflow(&s->f, s->a, &text, s->err);
	if (!rc)
		rc = readers_take_permitted(store, &s->d, s->err);
	if (!rc) {
		rc = load_registered_hits(s);
		if (!rc)
			rc = copy_out_page(s, a, ret);
		readers_give(store, s->d);
	}
	arena_free(s->a);
	return rc;
}

int registered_search(struct store *store, const struct registered_opts *o, struct arena *a,
		      struct registered_models *ret, struct err *err)
{
	struct registry_search s = { .o = o, .err = err };
	struct registered_models list;
	int rc = run_search(store, &s, a, &list);

	if (!rc)
		*ret = list;
	return rc;
}

int registered_versions_search(struct store *store, const struct registered_opts *o, struct arena *a,
			       struct registered_versions *ret, struct err *err)
{
	struct registry_search s = { .o = o, .err = err, .versions = true };
	struct registered_versions list;
	int rc = run_search(store, &s, a, &list);

	if (!rc)
		*ret = list;
	return rc;
}

/* Keeps the aliases of the version. */
static void keep_aliases(const struct registered_model *m, struct arena *a, struct registered_version *v)
{
	size_t i;

	v->aliases = arena_array(a, m->alias_count + 1, sizeof(*v->aliases));
	for (i = 0; i < m->alias_count; i++)
		if (m->aliases[i].version == v->version)
			v->aliases[v->alias_count++] = m->aliases[i].alias;
}

static int find_registered_model(struct db *d, const char *name, struct arena *a, struct registered_model *m,
				 struct err *err)
{
	struct db_rows *q;
	int64_t id = 0;
	size_t i;
	int rc = db_start(d, &q, DB_registered_row, err, "tt", name, permitted_ids(d));

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc ? rc : ERR_NOENT;
	id = db_i64(q, COL_registered_rows_id);
	*m = rows_model(a, q);
	rc = is_permitted_model(d, q) ? 0 : ERR_NOENT;
	db_stop(q);
	if (rc)
		return rc;
	rc = rows_model_parts(d, id, a, m, err);
	for (i = 0; i < m->latest_count && !rc; i++)
		keep_aliases(m, a, &m->latest[i]);
	return rc;
}

int registered_get(struct store *s, const char *name, struct arena *a, struct registered_model *ret, struct err *err)
{
	struct registered_model m = { 0 };
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = find_registered_model(d, name, a, &m, err);
	readers_give(s, d);
	if (!rc)
		*ret = m;
	return rc;
}

/* Reads one version; ERR_NOENT also where the caller may not see it. */
static int find_version(struct db *d, const struct registered_version_name *of, struct arena *a,
			struct registered_version *v, struct err *err)
{
	struct registered_model m = { 0 };
	struct db_rows *q;
	int64_t id;
	int rc = db_start(d, &q, DB_version_row, err, "ti", of->model, of->version);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc ? rc : ERR_NOENT;
	id = db_i64(q, COL_version_rows_registered_id);
	*v = rows_version(a, q);
	rc = is_permitted_version(d, q, COL_version_rows_experiment_id, v->model) ? 0 : ERR_NOENT;
	db_stop(q);
	if (rc)
		return rc;
	m.name = v->model;
	rc = rows_version_tags(d, id, a, v, err);
	if (!rc)
		rc = rows_model_aliases(d, id, a, &m, err);
	if (!rc)
		keep_aliases(&m, a, v);
	return rc;
}

int registered_version_get(struct store *s, const struct registered_version_name *of, struct arena *a,
			   struct registered_version *ret, struct err *err)
{
	struct registered_version v = { 0 };
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	rc = find_version(d, of, a, &v, err);
	readers_give(s, d);
	if (!rc)
		*ret = v;
	return rc;
}
