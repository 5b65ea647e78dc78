/* SPDX-License-Identifier: Apache-2.0 */
/* model_links.c: reads data sets and models linked to runs, and data sets of experiments. */

#include "web/store/db/db.h"
#include "web/store/mlflow/logged_models.h"

#define SUMMARIES_MAX 1000

static const char *read_text_or_null(struct arena *a, struct db_rows *q, enum db_column column)
{
	return db_null(q, column) ? NULL : db_text(a, q, column);
}

struct link_reading {
	struct db *d;
	struct arena *a;
	struct run_links *links; /* one for each run */
	struct err *err;
};

static struct run_links *find_run_links(const struct link_reading *w, struct db_rows *q, enum db_column place)
{
	return &w->links[db_i64(q, place) - 1];
}

static void add_dataset(const struct link_reading *w, struct db_rows *q, struct run_links *l)
{
	list_push(w->a, &l->datasets, &l->dataset_count,
		  (struct run_dataset){ .id = db_i64(q, COL_runs_datasets_id),
					.name = db_text(w->a, q, COL_runs_datasets_name),
					.digest = db_text(w->a, q, COL_runs_datasets_digest),
					.source_type = db_text(w->a, q, COL_runs_datasets_source_type),
					.source = db_text(w->a, q, COL_runs_datasets_source),
					.schema = read_text_or_null(w->a, q, COL_runs_datasets_schema),
					.profile = read_text_or_null(w->a, q, COL_runs_datasets_profile) });
}

static int take_run_datasets(const struct link_reading *w, struct db_rows *q)
{
	int rc;

	while ((rc = db_next(w->d, q, w->err)) > 0)
		add_dataset(w, q, find_run_links(w, q, COL_runs_datasets_place));
	return rc;
}

static void add_dataset_tag(const struct link_reading *w, struct db_rows *q, struct run_dataset *s)
{
	list_push(w->a, &s->tags, &s->tag_count,
		  (struct query_kv){ db_text(w->a, q, COL_runs_dataset_tags_name),
				     db_text(w->a, q, COL_runs_dataset_tags_value) });
}

/* Call it after the data sets are read. */
static int take_dataset_tags(const struct link_reading *w, struct db_rows *q)
{
	int rc;

	while ((rc = db_next(w->d, q, w->err)) > 0) {
		const struct run_links *l = find_run_links(w, q, COL_runs_dataset_tags_place);
		int64_t id = db_i64(q, COL_runs_dataset_tags_dataset_id);
		size_t i = 0;

		while (i < l->dataset_count && l->datasets[i].id != id)
			i++;
		if (i < l->dataset_count)
			add_dataset_tag(w, q, &l->datasets[i]);
	}
	return rc;
}

static int take_run_models(const struct link_reading *w, struct db_rows *q)
{
	int rc;

	while ((rc = db_next(w->d, q, w->err)) > 0) {
		struct run_links *l = find_run_links(w, q, COL_runs_models_place);

		list_push(w->a, &l->models, &l->model_count,
			  (struct run_model){ db_text(w->a, q, COL_runs_models_model),
					      db_i64(q, COL_runs_models_step),
					      db_i32(q, COL_runs_models_direction) });
	}
	return rc;
}

static int load_links(const struct link_reading *w, const struct runs_linked *r)
{
	struct db_rows *datasets, *tags, *models;
	struct buf ids;
	size_t i;
	int rc;

	array_begin(&ids);
	for (i = 0; i < r->count; i++)
		array_text(&ids, r->runs[i]);
	rc = db_start(w->d, &datasets, DB_runs_datasets, w->err, "t", array_end(&ids));
	rc = rc ? rc : db_start(w->d, &tags, DB_runs_dataset_tags, w->err, "t", ids.data);
	rc = rc ? rc : db_start(w->d, &models, DB_runs_models, w->err, "t", ids.data);
	rc = rc ? rc : take_run_datasets(w, datasets);
	rc = rc ? rc : take_dataset_tags(w, tags);
	rc = rc ? rc : take_run_models(w, models);
	buf_done(&ids);
	return rc;
}

int runs_links(struct store *s, const struct runs_linked *r, struct arena *a, struct err *err)
{
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	memset(r->links, 0, r->count * sizeof(*r->links));
	rc = load_links(&(struct link_reading){ .d = d, .a = a, .links = r->links, .err = err }, r);
	readers_give(s, d);
	return rc;
}

int run_links(struct store *s, const char *run, struct arena *a, struct run_links *ret, struct err *err)
{
	return runs_links(s, &(struct runs_linked){ &run, 1, ret }, a, err);
}

static struct dataset_summary read_dataset_summary(struct arena *a, struct db_rows *q)
{
	return (struct dataset_summary){ db_text(a, q, COL_dataset_summaries_experiment_id),
					 db_text(a, q, COL_dataset_summaries_name),
					 db_text(a, q, COL_dataset_summaries_digest),
					 read_text_or_null(a, q, COL_dataset_summaries_context) };
}

int dataset_summaries(struct store *s, struct dataset_summaries *io, struct arena *a, struct err *err)
{
	struct dataset_summary *list = NULL;
	size_t count = 0, i;
	struct db_rows *q = NULL;
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	for (i = 0; i < io->experiment_count && !rc; i++) {
		if (!permitted(d, io->experiments[i]))
			continue;
		rc = db_start(d, &q, DB_dataset_summaries, err, "i", io->experiments[i]);
		while (rc >= 0 && count < SUMMARIES_MAX && (rc = db_next(d, q, err)) > 0)
			list_push(a, &list, &count, read_dataset_summary(a, q));
		db_stop(q);
		rc = rc < 0 ? rc : 0;
	}
	readers_give(s, d);
	if (rc)
		return rc;
	io->items = list;
	io->count = count;
	return 0;
}
