/* params.c: params one by one where the database is in this process, else all together in two round trips. */
#include "web/store/write/params.h"

#include "tracker/event/event.h"
#include "web/store/base/no_memory.h"
#include "web/store/db/array.h"
#include "web/store/db/batch.h"
#include "web/store/write/apply.h"

static int find_one_param(struct db *d, const struct params_lookup *l, size_t at, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_param_by_name, err, "it", l->run->id, l->kv[at].key);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	l->values[at] = db_text(l->arena, q, COL_param_by_name_value);
	db_stop(q);
	return l->values[at] ? 0 : no_memory(err);
}

static int find_each_param(struct db *d, const struct params_lookup *l, struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < l->count && !rc; i++)
		rc = find_one_param(d, l, i, err);
	return rc;
}

/* Reads the values of all keys with one query, where the store is shared. */
static int find_params_together(struct db *d, const struct params_lookup *l, struct err *err)
{
	struct db_rows *q;
	struct buf names;
	size_t i;
	int rc;

	array_begin(&names);
	for (i = 0; i < l->count; i++)
		array_text(&names, l->kv[i].key);
	rc = array_end(&names) ? db_start(d, &q, DB_params_by_names, err, "it", l->run->id, names.data)
			       : no_memory(err);
	buf_done(&names);
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		const char *value = db_text(l->arena, q, COL_params_by_names_value);

		if (!value)
			return db_no_memory(q, err);
		l->values[db_i64(q, COL_params_by_names_place) - 1] = value;
		rc = 0;
	}
	return rc;
}

int params_find(struct state *st, struct params_lookup *l, struct err *err)
{
	struct db *d = state_db(st);
	size_t i;

	l->values = arena_array(l->arena, l->count + 1, sizeof *l->values);
	if (!l->values)
		return no_memory(err);
	for (i = 0; i < l->count; i++)
		l->values[i] = NULL;
	if (!l->count || !l->run->params)
		return 0;
	return db_shared(d) ? find_params_together(d, l, err) : find_each_param(d, l, err);
}

static int insert_param(struct state *st, struct state_run *r, int64_t key, const char *value, struct err *err)
{
	int rc = db_run(state_db(st), DB_param_add, err, "iit", r->id, key, value);

	if (!rc)
		r->params += db_changed(state_db(st));
	return rc;
}

static int insert_params_together(struct state *st, struct state_run *r, struct db_batch *b, struct err *err)
{
	int rc;

	if (!b->rows)
		return 0;
	rc = db_batch_run(b, state_db(st), DB_params_add, err);
	if (!rc)
		r->params += db_changed(state_db(st));
	return rc;
}

int params_add(struct state *st, struct state_run *r, const struct ingest_kv *kv, size_t n, struct err *err)
{
	struct db_batch b;
	size_t i;
	int rc = n ? state_count_params(st, r, err) : 0;

	if (!rc)
		rc = apply_expect_keys(st, kv, n, err);
	db_batch_init(&b, "iit");
	for (i = 0; i < n && !rc; i++) {
		int64_t key;

		rc = state_key(st, kv[i].key, &key, err);
		if (!rc && db_shared(state_db(st)))
			db_batch_add(&b, r->id, key, kv[i].value);
		else if (!rc)
			rc = insert_param(st, r, key, kv[i].value, err);
	}
	if (!rc)
		rc = insert_params_together(st, r, &b, err);
	db_batch_drop(&b);
	if (!rc && r->params > LIMIT_params_per_run)
		rc = err_set(err, ERR_LIMIT, "run %s would have more than %d params", r->uuid,
			     (int)LIMIT_params_per_run);
	if (n)
		state_mark(st, r, true);
	return rc;
}
