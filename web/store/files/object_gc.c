/* object_gc.c: removes objects that no file uses: unfinished uploads, deleted or replaced files. Each is marked
 * first, so that no upload can give it to a file, then deleted, then its row. */
#include <stdio.h>

#include "web/store/base/parts.h"
#include "web/store/base/background_job.h"
#include "web/store/db/readers.h"
#include "web/store/files/objects.h"

/* 1: the next object after *at; 0: none. */
static int next_garbage_object(struct store *s, int64_t before_ms, char at[OBJECT_NAME_BYTES], struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_object_next, err, "it", before_ms, at);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		snprintf(at, OBJECT_NAME_BYTES, "%s", db_str(q, COL_object_next_name));
		db_stop(q);
	}
	readers_give(s, d);
	return rc;
}

static int submit_object_change(struct store *s, const struct change_ops *kind, const char *name, struct err *err)
{
	struct ingest_result res = { 0 };

	return ingest_submit(s, &(struct ingest_op){ .kind = kind, .name = name }, NULL, &res, err);
}

static int remove_garbage_object(struct objects *o, const char *name, struct err *err)
{
	char key[OBJECT_KEY_MAX + 1];
	int rc = submit_object_change(o->store, &object_change_doom, name, err);

	if (rc == ERR_NOENT)
		return 0;
	objects_key(o, name, key);
	if (!rc)
		rc = object_delete(o->client, key, err);
	if (!rc)
		rc = object_upload_abandon(o->client, key, err);
	return rc ? rc : submit_object_change(o->store, &object_change_forget, name, err);
}

int artifact_sweep(struct store *s, int64_t before_ms, bool dry, uint64_t *ret_objects, struct err *err)
{
	struct objects *o = artifacts_objects(s->files);
	char name[OBJECT_NAME_BYTES] = "";
	int rc = o ? objects_ready(o, err) : 0;

	*ret_objects = 0;
	if (rc || !o)
		return rc;
	while ((rc = next_garbage_object(s, before_ms, name, err)) > 0) {
		if (background_job_canceled(s->work))
			return err_set(err, ERR_CANCELED, "the store is closing: the next gc continues");
		rc = dry ? 0 : remove_garbage_object(o, name, err);
		if (rc)
			break;
		++*ret_objects;
	}
	return rc;
}

int artifact_sum(struct store *s, const char *path, uint64_t *io_files, uint64_t *io_bytes, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = artifacts_objects(s->files) ? readers_take(s, &d, err) : 0;

	if (rc || !artifacts_objects(s->files))
		return rc;
	rc = db_start(d, &q, DB_artifact_sum, err, "t", path);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		*io_files += (uint64_t)db_i64(q, COL_artifact_sum_files);
		*io_bytes += (uint64_t)db_i64(q, COL_artifact_sum_bytes);
		db_stop(q);
		rc = 0;
	}
	readers_give(s, d);
	return rc;
}
