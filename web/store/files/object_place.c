/* object_place.c: chooses the object store: the configured one, or the one that the store's rows name. */
#include <stdio.h>
#include <string.h>

#include "web/store/db/readers.h"
#include "web/store/files/objects.h"

/* Reads the place of objects from the store's rows; "": none. */
static int read_place(struct store *s, char ret[], size_t room, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(s, &d, err);

	ret[0] = '\0';
	if (rc)
		return rc;
	rc = db_start(d, &q, DB_artifacts_place, err, "");
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		snprintf(ret, room, "%s", db_str(q, COL_artifacts_place_value));
		db_stop(q);
		rc = 0;
	}
	readers_give(s, d);
	return rc;
}

static int any_object(struct store *s, struct err *err)
{
	struct db *d;
	int64_t one;
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	rc = db_int(d, &one, DB_artifact_any_object, err, "");
	readers_give(s, d);
	return rc;
}

/* Records the place, unless files exist in another object store. */
static int keep_place(struct store *s, const char *root, const char *known, struct err *err)
{
	const struct ingest_op op = { .kind = &object_change_place, .name = root };
	struct ingest_result res = { 0 };
	int rc = *known ? any_object(s, err) : 0;

	if (rc > 0)
		return err_set(err, ERR_USAGE, "--artifacts %.300s: the files of this store are in %.300s", root,
			       known);
	return rc || !object_is_address(root) ? rc : ingest_submit(s, &op, NULL, &res, err);
}

int objects_place(struct objects **ret, struct store *s, const struct artifacts_opts *opts, struct err *err)
{
	char known[OBJECT_BUCKET_BYTES + OBJECT_KEY_MAX + 16];
	const char *root = opts->root;
	int rc = read_place(s, known, sizeof known, err);

	*ret = NULL;
	if (*known && opts->by_default)
		root = known;
	if (!rc && object_is_address(root))
		rc = objects_new(ret, s, root, err);
	if (*ret)
		root = (*ret)->address;
	return rc || !strcmp(root, known) ? rc : keep_place(s, root, known, err);
}
