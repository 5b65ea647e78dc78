/* links.c: what runs read and made: data sets and models; and the data sets of experiments. */
#include <string.h>

#include "web/store/base/list.h"
#include "web/store/db/array.h"
#include "web/store/db/readers.h"
#include "web/store/mlflow/models.h"

#define SUMMARIES_MAX 1000

static int no_memory(struct err *err)
{
	return err_set(err, ERR_NOMEM, "out of memory");
}

static const char *or_null(struct arena *a, struct db_rows *q, enum db_column column)
{
	return db_null(q, column) ? NULL : db_text(a, q, column);
}

static int load_tags(struct db *d, int64_t run, int64_t dataset, struct arena *a, struct run_dataset *s,
		     struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_run_dataset_tags, err, "ii", run, dataset);

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		s->tags = list_room(a, s->tags, s->tag_count, sizeof *s->tags);
		if (!s->tags) {
			db_stop(q);
			return no_memory(err);
		}
		s->tags[s->tag_count++] = (struct query_kv){ db_text(a, q, COL_run_dataset_tags_name),
							     db_text(a, q, COL_run_dataset_tags_value) };
		rc = 0;
	}
	return rc;
}

static int load_datasets(struct db *d, int64_t run, struct arena *a, struct run_links *l, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_run_datasets, err, "i", run);

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		struct run_dataset *s;

		l->datasets = list_room(a, l->datasets, l->dataset_count, sizeof *l->datasets);
		if (!l->datasets) {
			db_stop(q);
			return no_memory(err);
		}
		s = &l->datasets[l->dataset_count++];
		*s = (struct run_dataset){ .name = db_text(a, q, COL_run_datasets_name),
					   .digest = db_text(a, q, COL_run_datasets_digest),
					   .source_type = db_text(a, q, COL_run_datasets_source_type),
					   .source = db_text(a, q, COL_run_datasets_source),
					   .schema = or_null(a, q, COL_run_datasets_schema),
					   .profile = or_null(a, q, COL_run_datasets_profile) };
		rc = load_tags(d, run, db_i64(q, COL_run_datasets_id), a, s, err);
		if (rc)
			db_stop(q);
	}
	return rc;
}

static int load_models(struct db *d, int64_t run, struct arena *a, struct run_links *l, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_run_models, err, "i", run);

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		l->models = list_room(a, l->models, l->model_count, sizeof *l->models);
		if (!l->models) {
			db_stop(q);
			return no_memory(err);
		}
		l->models[l->model_count++] = (struct run_model){ db_text(a, q, COL_run_models_model),
								  db_i64(q, COL_run_models_step),
								  db_i32(q, COL_run_models_direction) };
		rc = 0;
	}
	return rc;
}

static int load_links(struct db *d, int64_t run, struct arena *a, struct run_links *l, struct err *err)
{
	int rc = load_datasets(d, run, a, l, err);

	return rc ? rc : load_models(d, run, a, l, err);
}

static int load_each(struct db *d, const struct runs_linked *r, struct arena *a, struct err *err)
{
	int64_t id;
	size_t i;
	int rc = 0;

	for (i = 0; i < r->count && !rc; i++) {
		rc = db_int(d, &id, DB_run_id_of, err, "t", r->runs[i]);
		if (rc > 0)
			rc = load_links(d, id, a, &r->links[i], err);
	}
	return rc;
}

/* One query says which runs have any: few do. */
static int load_linked(struct db *d, const struct runs_linked *r, struct arena *a, struct err *err)
{
	struct db_rows *q;
	struct buf ids;
	size_t i;
	int rc;

	array_begin(&ids);
	for (i = 0; i < r->count; i++)
		array_text(&ids, r->runs[i]);
	rc = array_end(&ids) ? db_start(d, &q, DB_runs_linked, err, "t", ids.data) : no_memory(err);
	buf_done(&ids);
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		i = (size_t)db_i64(q, COL_runs_linked_place) - 1;
		rc = load_links(d, db_i64(q, COL_runs_linked_id), a, &r->links[i], err);
		if (rc)
			db_stop(q);
	}
	return rc;
}

int runs_links(struct store *s, const struct runs_linked *r, struct arena *a, struct err *err)
{
	struct db *d;
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	memset(r->links, 0, r->count * sizeof *r->links);
	rc = db_shared(d) ? load_linked(d, r, a, err) : load_each(d, r, a, err);
	readers_give(s, d);
	return rc;
}

int run_links(struct store *s, const char *run, struct arena *a, struct run_links *ret, struct err *err)
{
	return runs_links(s, &(struct runs_linked){ &run, 1, ret }, a, err);
}

static struct dataset_summary summary_of(struct arena *a, struct db_rows *q)
{
	return (struct dataset_summary){ db_text(a, q, COL_dataset_summaries_experiment_id),
					 db_text(a, q, COL_dataset_summaries_name),
					 db_text(a, q, COL_dataset_summaries_digest),
					 or_null(a, q, COL_dataset_summaries_context) };
}

int dataset_summaries(struct store *s, const int64_t *experiments, size_t n, struct arena *a,
		      struct dataset_summary **ret, size_t *ret_count, struct err *err)
{
	struct dataset_summary *list = NULL;
	size_t count = 0, i;
	struct db_rows *q = NULL;
	struct db *d;
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	for (i = 0; i < n && !rc; i++) {
		rc = db_start(d, &q, DB_dataset_summaries, err, "i", experiments[i]);
		while (!rc && count < SUMMARIES_MAX && (rc = db_next(d, q, err)) > 0) {
			list = list_room(a, list, count, sizeof *list);
			rc = list ? 0 : no_memory(err);
			if (!rc)
				list[count++] = summary_of(a, q);
		}
		db_stop(q);
	}
	readers_give(s, d);
	if (rc)
		return rc;
	*ret = list;
	*ret_count = count;
	return 0;
}
