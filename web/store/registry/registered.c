/* registered.c: reads one registered model or version. */
#include "web/store/registry/registered.h"

#include "web/store/base/no_memory.h"
#include "web/store/db/readers.h"
#include "web/store/registry/rows.h"

/* Keeps the aliases of the version. */
static int keep_aliases(const struct registered_model *m, struct arena *a, struct registered_version *v,
			struct err *err)
{
	size_t i;

	v->aliases = arena_array(a, m->alias_count + 1, sizeof *v->aliases);
	if (!v->aliases)
		return no_memory(err);
	for (i = 0; i < m->alias_count; i++)
		if (m->aliases[i].version == v->version)
			v->aliases[v->alias_count++] = m->aliases[i].alias;
	return 0;
}

static int find_registered_model(struct db *d, const char *name, struct arena *a, struct registered_model *m,
				 struct err *err)
{
	struct db_rows *q;
	int64_t id = 0;
	size_t i;
	int rc = db_start(d, &q, DB_registered_row, err, "t", name);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc ? rc : ERR_NOENT;
	id = db_i64(q, COL_registered_rows_id);
	*m = rows_model(a, q);
	db_stop(q);
	rc = rows_model_tags(d, id, a, m, err);
	if (!rc)
		rc = rows_model_aliases(d, id, a, m, err);
	if (!rc)
		rc = rows_model_latest(d, id, a, m, err);
	for (i = 0; i < m->latest_count && !rc; i++)
		rc = keep_aliases(m, a, &m->latest[i], err);
	return rc;
}

int registered_get(struct store *s, const char *name, struct arena *a, struct registered_model *ret, struct err *err)
{
	struct registered_model m = { 0 };
	struct db *d;
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	rc = find_registered_model(d, name, a, &m, err);
	readers_give(s, d);
	if (!rc)
		*ret = m;
	return rc;
}

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
	db_stop(q);
	rc = rows_version_tags(d, id, a, v, err);
	if (!rc)
		rc = rows_model_aliases(d, id, a, &m, err);
	return rc ? rc : keep_aliases(&m, a, v, err);
}

int registered_version_get(struct store *s, const struct registered_version_name *of, struct arena *a,
			   struct registered_version *ret, struct err *err)
{
	struct registered_version v = { 0 };
	struct db *d;
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	rc = find_version(d, of, a, &v, err);
	readers_give(s, d);
	if (!rc)
		*ret = v;
	return rc;
}
