/* SPDX-License-Identifier: Apache-2.0 */
/* cells.c: reads one value at a time, so a search reads only what it needs and keeps only the values of candidate
 * runs. */
#include "web/store/read/read_inside.h"

#include <stdlib.h>

#include "tracker/base/clock.h"

static int compare_experiment_ids(const void *x, const void *y)
{
	const struct cells_experiment *a = x, *b = y;

	return (a->id > b->id) - (a->id < b->id);
}

static int read_cell_experiments(struct cells *c, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(c->d, &q, DB_experiment_list, err, "t", permitted_ids(c->d));

	while (rc >= 0 && (rc = db_next(c->d, q, err)) > 0)
		list_push(c->a, &c->experiments, &c->experiment_count,
			  (struct cells_experiment){ db_i64(q, COL_experiment_list_id),
						     db_text(c->a, q, COL_experiment_list_name) });
	if (c->experiment_count)
		qsort(c->experiments, c->experiment_count, sizeof(*c->experiments), compare_experiment_ids);
	return rc;
}

static bool is_column(const struct filter_field *ff)
{
	return ff->entity == FILTER_PARAM || ff->entity == FILTER_TAG || ff->entity == FILTER_METRIC ||
	       ff->entity == FILTER_NOTE;
}

static int find_cell_column(struct cells *c, struct columns *columns, size_t field, struct err *err)
{
	const struct filter_field *ff = filter_field(c->f, field);
	int rc;

	if (columns)
		return columns_get(columns, c->d, ff, &c->columns[field], err);
	rc = db_int(c->d, &c->key[field], DB_key_by_name, err, "t", ff->key);
	return rc < 0 ? rc : 0;
}

/* Tests whether any run that the caller may see has a field of the plan. A search of named runs knows only whether the
 * key exists. */
static bool is_known_field(const struct cells *c, size_t field, size_t rows)
{
	int64_t one;
	size_t i;

	if (!c->base && permitted_ids(c->d))
		return db_int(c->d, &one, DB_key_permitted, NULL, "tt", filter_field(c->f, field)->key,
			      permitted_ids(c->d)) > 0;
	if (!c->base)
		return c->key[field] != 0;
	for (i = 0; c->columns[field] && i < rows; i++)
		if (c->columns[field][i].present && permitted(c->d, c->base[i].experiment_id))
			return true;
	return false;
}

/* Returns " (but epoch/top1)" for top1, " (but batch_size)" for batch, or "" without such a key. */
static const char *name_longer_key(const struct cells *c, const char *name)
{
	const char *found = "";
	struct db_rows *q;

	if (db_start(c->d, &q, DB_key_by_part, NULL, "tt", name, permitted_ids(c->d)))
		return "";
	if (db_next(c->d, q, NULL) > 0) {
		found = arena_printf(c->a, " (but %s)", db_text(c->a, q, COL_key_by_part_name));
		db_stop(q);
	}
	return found ? found : "";
}

/* Rejects a name without a prefix that is neither an attribute, nor a param or metric of any run. */
static int check_bare_names(const struct cells *c, size_t rows, struct err *err)
{
	size_t field;

	for (field = 0; field < filter_field_count(c->f); field++) {
		const struct filter_field *ff = filter_field(c->f, field);

		if (!ff->bare || is_known_field(c, field, rows) || (ff->twin && is_known_field(c, ff->twin - 1, rows)))
			continue;
		err_set(err, ERR_USAGE, "filter: no run has a param%s '%.60s'%.70s, and there is no such attribute ("
			FILTER_ATTRIBUTES "); tags need their prefix", ff->twin ? " or metric" : "", ff->key,
			name_longer_key(c, ff->key));
		return err_field(err, "%s", "filter");
	}
	return 0;
}

int cells_begin(struct cells *c, struct columns *columns, struct err *err)
{
	size_t field, count = 0;
	int rc = 0;

	c->base = columns ? columns_rows(columns, &count) : NULL;
	c->now_ms = clock_wall_ms();
	for (field = 0; field < filter_field_count(c->f) && !rc; field++) {
		const struct filter_field *ff = filter_field(c->f, field);

		if (is_column(ff))
			rc = find_cell_column(c, columns, field, err);
		else if (ff->entity == FILTER_ATTRIBUTE && ff->attribute == FILTER_EXPERIMENT && !c->experiments)
			rc = read_cell_experiments(c, err);
	}
	return rc ? rc : check_bare_names(c, count, err);
}

static void fill_experiment(const struct cells *c, const struct columns_row *r, struct filter_value *v)
{
	size_t at = list_find(c->experiments, c->experiment_count, sizeof(*c->experiments), r->experiment_id);

	if (at < c->experiment_count && c->experiments[at].id == r->experiment_id)
		*v = (struct filter_value){ .present = true, .text = c->experiments[at].name };
}

static const char *artifact_uri(struct cells *c, const struct columns_row *r)
{
	const char *location = "";
	struct db_rows *q;

	if (!db_start(c->d, &q, DB_experiment_location, NULL, "i", r->experiment_id) && db_next(c->d, q, NULL) > 0) {
		location = db_text(c->a, q, COL_experiment_location_location);
		db_stop(q);
	}
	return location_of(c->a, location ? location : "", r->experiment_id,
			   arena_printf(c->a, "%s/artifacts", r->uuid));
}

static const char *attribute_text(struct cells *c, const struct columns_row *r, enum filter_attribute which)
{
	switch (which) {
	case FILTER_RUN_ID:
		return r->uuid;
	case FILTER_NAME:
		return r->name;
	case FILTER_STATUS:
		return c->mlflow ? query_mlflow_status(r->status) : r->status;
	case FILTER_USER:
		return r->user;
	case FILTER_ARTIFACT_URI:
		return artifact_uri(c, r);
	default:
		return NULL;
	}
}

static void fill_number(struct filter_value *v, bool present, double number)
{
	*v = (struct filter_value){ .present = present, .is_number = true, .number = number };
}

/* Fills an attribute's value, from the run's row. */
static void fill_attribute(struct cells *c, const struct columns_row *r, enum filter_attribute which,
			   struct filter_value *v)
{
	switch (which) {
	case FILTER_EXPERIMENT:
		fill_experiment(c, r, v);
		break;
	case FILTER_START_TIME:
		fill_number(v, r->start_ms != INT64_MIN, (double)r->start_ms);
		break;
	case FILTER_END_TIME:
		fill_number(v, r->end_ms != INT64_MIN, (double)r->end_ms);
		break;
	case FILTER_DURATION:
		fill_number(v, r->start_ms != INT64_MIN,
			    (double)((r->end_ms == INT64_MIN ? c->now_ms : r->end_ms) - r->start_ms) / 1e3);
		break;
	case FILTER_LAST_STEP:
		fill_number(v, r->last_step >= 0, (double)r->last_step);
		break;
	default:
		v->text = attribute_text(c, r, which);
		v->present = v->text;
	}
}

/* Each data set of the run is one value. */
static int fill_datasets(struct cells *c, const struct columns_row *r, const char *key, struct filter_value *v,
			 struct err *err)
{
	enum db_column column = !strcmp(key, "name") ? COL_dataset_cells_name :
				!strcmp(key, "digest") ? COL_dataset_cells_digest : COL_dataset_cells_context;
	struct db_rows *q;
	int rc = db_start(c->d, &q, DB_dataset_cells, err, "i", r->id);

	while (rc >= 0 && (rc = db_next(c->d, q, err)) > 0) {
		struct filter_value *more = v->present ? arena_alloc(c->a, sizeof(*more)) : NULL;

		if (db_null(q, column))
			continue;
		if (more)
			*more = *v;
		*v = (struct filter_value){ .present = true, .text = db_text(c->a, q, column), .more = more };
	}
	return rc;
}

static void put_cell_row(struct cells *c, const struct filter_field *ff, struct db_rows *q, struct filter_value *v)
{
	v->present = true;
	if (ff->entity == FILTER_METRIC) {
		v->is_number = true;
		v->number = columns_number(q, ff->aggregate);
		return;
	}
	v->text = db_text(c->a, q, COL_param_column_value);
	v->is_number = !c->mlflow && ff->entity == FILTER_PARAM && filter_number(v->text, &v->number);
}

static int fill_read_cells(struct cells *c, const struct columns_row *r, size_t field, struct filter_value *v,
			   struct err *err)
{
	static const enum db_query cells[] = {
		[FILTER_PARAM] = DB_param_cell, [FILTER_TAG] = DB_tag_cell, [FILTER_METRIC] = DB_metric_cell,
		[FILTER_NOTE] = DB_note_cell,
	};
	const struct filter_field *ff = filter_field(c->f, field);
	struct db_rows *q;
	int rc;

	if (!c->key[field] && ff->entity != FILTER_NOTE)
		return 0;
	rc = db_start(c->d, &q, cells[ff->entity], err, "ii", c->key[field], r->id);
	if (rc || (rc = db_next(c->d, q, err)) <= 0)
		return rc;
	put_cell_row(c, ff, q, v);
	db_stop(q);
	return 0;
}

static void fill_column(const struct cells *c, const struct columns_row *r, size_t field, struct filter_value *v)
{
	const struct filter_field *ff = filter_field(c->f, field);
	const struct columns_cell *cell = c->columns[field] ? &c->columns[field][r - c->base] : NULL;

	if (!cell || !cell->present)
		return;
	v->present = true;
	v->text = cell->text;
	v->is_number = cell->is_number && (ff->entity == FILTER_METRIC || !c->mlflow);
	v->number = cell->number[ff->entity == FILTER_METRIC ? ff->aggregate : 0];
}

int cells_get(struct cells *c, const struct columns_row *r, size_t field, struct filter_value *ret, struct err *err)
{
	const struct filter_field *ff = filter_field(c->f, field);

	*ret = (struct filter_value){ 0 };
	if (ff->entity == FILTER_DATASET)
		return fill_datasets(c, r, ff->key, ret, err);
	if (ff->entity != FILTER_ATTRIBUTE && !c->base)
		return fill_read_cells(c, r, field, ret, err);
	if (ff->entity == FILTER_ATTRIBUTE)
		fill_attribute(c, r, ff->attribute, ret);
	else
		fill_column(c, r, field, ret);
	return 0;
}
