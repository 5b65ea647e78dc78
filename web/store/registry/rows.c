/* rows.c: reads rows of the registry. */
#include "web/store/registry/rows.h"

#include "web/store/base/list.h"
#include "web/store/base/no_memory.h"

struct registered_model rows_model(struct arena *a, struct db_rows *q)
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

struct registered_version rows_version(struct arena *a, struct db_rows *q)
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

/* Reads a started query with the columns of registered_tags. */
static int read_registry_tags(struct db *d, struct db_rows *q, struct arena *a, struct query_kvs *ret, struct err *err)
{
	int rc = 0;

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		ret->items = list_room(a, ret->items, ret->count, sizeof *ret->items);
		rc = ret->items ? 0 : db_no_memory(q, err);
		if (ret->items)
			ret->items[ret->count++] = (struct query_kv){ db_text(a, q, COL_registered_tags_name),
								      db_text(a, q, COL_registered_tags_value) };
	}
	return rc;
}

int rows_model_tags(struct db *d, int64_t id, struct arena *a, struct registered_model *m, struct err *err)
{
	struct query_kvs tags = { 0 };
	struct db_rows *q;
	int rc = db_start(d, &q, DB_registered_tags, err, "i", id);

	rc = rc ? rc : read_registry_tags(d, q, a, &tags, err);
	m->tags = tags.items;
	m->tag_count = tags.count;
	return rc;
}

int rows_version_tags(struct db *d, int64_t id, struct arena *a, struct registered_version *v, struct err *err)
{
	struct query_kvs tags = { 0 };
	struct db_rows *q;
	int rc = db_start(d, &q, DB_version_tags, err, "ii", id, v->version);

	rc = rc ? rc : read_registry_tags(d, q, a, &tags, err);
	v->tags = tags.items;
	v->tag_count = tags.count;
	return rc;
}

int rows_model_aliases(struct db *d, int64_t id, struct arena *a, struct registered_model *m, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_registered_aliases, err, "i", id);

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		m->aliases = list_room(a, m->aliases, m->alias_count, sizeof *m->aliases);
		if (!m->aliases) {
			db_stop(q);
			return no_memory(err);
		}
		m->aliases[m->alias_count++] =
			(struct registered_alias){ db_text(a, q, COL_registered_aliases_alias),
						   db_i64(q, COL_registered_aliases_version) };
		rc = 0;
	}
	return rc;
}

int rows_model_latest(struct db *d, int64_t id, struct arena *a, struct registered_model *m, struct err *err)
{
	struct db_rows *q;
	size_t i;
	int rc = db_start(d, &q, DB_version_latest, err, "i", id);

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		m->latest = list_room(a, m->latest, m->latest_count, sizeof *m->latest);
		if (!m->latest) {
			db_stop(q);
			return no_memory(err);
		}
		m->latest[m->latest_count++] = rows_version(a, q);
		rc = 0;
	}
	for (i = 0; i < m->latest_count && !rc; i++)
		rc = rows_version_tags(d, id, a, &m->latest[i], err);
	return rc;
}
