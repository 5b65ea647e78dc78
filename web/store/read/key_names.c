/* key_names.c: one query per key where the database is in this process, else one for all. */
#include "web/store/read/key_names.h"

#include "web/store/base/no_memory.h"
#include "web/store/db/array.h"

static int read_key_name(struct db *d, int64_t id, size_t at, key_names_fn *fn, void *arg, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_key_name, err, "i", id);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	rc = fn(arg, at, db_str(q, COL_key_name_name));
	db_stop(q);
	return rc;
}

static int read_name_rows(struct db *d, struct db_rows *q, key_names_fn *fn, void *arg, struct err *err)
{
	int rc;

	while ((rc = db_next(d, q, err)) > 0) {
		rc = fn(arg, (size_t)db_i64(q, COL_key_names_place) - 1, db_str(q, COL_key_names_name));
		if (rc) {
			db_stop(q);
			break;
		}
	}
	return rc;
}

int key_names_read(struct db *d, const int64_t *ids, size_t n, key_names_fn *fn, void *arg, struct err *err)
{
	struct db_rows *q;
	struct buf list;
	size_t i;
	int rc = 0;

	for (i = 0; i < n && !rc && !db_shared(d); i++)
		rc = read_key_name(d, ids[i], i, fn, arg, err);
	if (!n || !db_shared(d))
		return rc;
	rc = array_of(&list, ids, n) ? db_start(d, &q, DB_key_names, err, "t", list.data) : no_memory(err);
	buf_done(&list);
	return rc ? rc : read_name_rows(d, q, fn, arg, err);
}
