/* key_names.c: one query per key where the database is in this process, else one for all. */
#include "web/store/read/key_names.h"

#include "web/store/base/no_memory.h"
#include "web/store/db/array.h"

static int read_key_name(struct db *d, const struct key_names *k, size_t at, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_key_name, err, "i", k->ids[at]);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	rc = k->fn(k->arg, at, db_str(q, COL_key_name_name));
	db_stop(q);
	return rc;
}

static int read_name_rows(struct db *d, struct db_rows *q, const struct key_names *k, struct err *err)
{
	int rc;

	while ((rc = db_next(d, q, err)) > 0) {
		rc = k->fn(k->arg, (size_t)db_i64(q, COL_key_names_place) - 1, db_str(q, COL_key_names_name));
		if (rc) {
			db_stop(q);
			break;
		}
	}
	return rc;
}

int key_names_read(struct db *d, const struct key_names *k, struct err *err)
{
	struct db_rows *q;
	struct buf list;
	size_t i;
	int rc = 0;

	for (i = 0; i < k->n && !rc && !db_shared(d); i++)
		rc = read_key_name(d, k, i, err);
	if (!k->n || !db_shared(d))
		return rc;
	rc = array_of(&list, k->ids, k->n) ? db_start(d, &q, DB_key_names, err, "t", list.data) : no_memory(err);
	buf_done(&list);
	return rc ? rc : read_name_rows(d, q, k, err);
}
