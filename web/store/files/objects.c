/* SPDX-License-Identifier: Apache-2.0 */
/* objects.c: address, client and threads of the object store; lookups of files in rows. */
#include "tracker/mem/mem.h"
#include "web/store/files/objects.h"

#include <stdio.h>
#include <stdlib.h>

#include "web/store/base/parts.h"
#include "web/store/db/db.h"
#include "web/store/files/files.h"

#define THREADS 8
#define TIMEOUT_S 4.0 /* longest wait without any byte, of a request and of a server that stops */
#define SKIP_MOST 32  /* rows of one folder that are read before jumping to its end */

/* address: s3://BUCKET or s3://BUCKET/PREFIX. Makes no request. */
static int objects_new(struct objects **ret, struct store *s, const char *address, struct err *err)
{
	struct objects *o = mem_zalloc(sizeof(*o));
	bool cut;
	int rc;

	o->store = s;
	pthread_mutex_init(&o->lock, NULL);
	cut = snprintf(o->address, sizeof(o->address), "%s", address) >= (int)sizeof(o->address);
	rc = object_split(o->address, o->bucket, &o->prefix, err);
	if (!rc && (cut || strlen(o->prefix) + OBJECT_NAME_BYTES > OBJECT_KEY_MAX))
		rc = err_set(err, ERR_USAGE, "%.200s…: the prefix is too long", address);
	if (!rc && *o->prefix && o->prefix[strlen(o->prefix) - 1] == '/')
		o->address[strlen(o->address) - 1] = '\0';
	if (rc)
		objects_free(o);
	else
		*ret = o;
	return rc;
}

void objects_free(struct objects *o)
{
	if (!o)
		return;
	atomic_store(&o->stop, true);
	thread_pool_free(o->crew);
	object_close(o->client);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

int objects_ready(struct objects *o, struct err *err)
{
	const struct object_opts opts = { .scheme = object_scheme(o->address), .timeout_s = TIMEOUT_S,
					  .stop = &o->stop };
	int rc = 0;

	pthread_mutex_lock(&o->lock);
	if (!o->client)
		rc = object_open(&o->client, o->bucket, &opts, err);
	if (!rc && !o->crew)
		rc = thread_pool_new(&o->crew, THREADS, err);
	pthread_mutex_unlock(&o->lock);
	return rc;
}

static int stop_at_first_object(void *user, const struct object_entry *e, struct err *err)
{
	(void)user;
	(void)e;
	(void)err;
	return 1;
}

int objects_check(struct objects *o, struct err *err)
{
	int rc = objects_ready(o, err);

	if (!rc)
		rc = object_list(o->client, &(struct object_list){ .prefix = o->prefix, .each = stop_at_first_object },
				 err);
	return rc > 0 ? 0 : rc;
}

void objects_key(const struct objects *o, const char *name, char ret[OBJECT_KEY_MAX + 1])
{
	snprintf(ret, OBJECT_KEY_MAX + 1, "%s%s%s", o->prefix, *o->prefix ? "/" : "", name);
}

int objects_failed(const char *doing, int rc, struct err *err)
{
	char text[sizeof(err->text)];

	snprintf(text, sizeof(text), "%.300s", err->text);
	if (rc == ERR_NOMEM || rc == ERR_CANCELED)
		return rc;
	/* a refusal (expired keys, a full quota) may be temporary */
	return err_set(err, ERR_BUSY, "%s: %s", doing, text);
}

bool objects_hold(struct objects *o, size_t bytes)
{
	if (atomic_fetch_add(&o->held, bytes) + bytes <= OBJECTS_HELD)
		return true;
	objects_give(o, bytes);
	return false;
}

void objects_give(struct objects *o, size_t bytes)
{
	atomic_fetch_sub(&o->held, bytes);
}

/* --- rows --------------------------------------------------------------------------------------------------- */

/* 1: the query finds a row for the path. */
static int has_artifact_row(struct db *d, enum db_query q, const char *path, struct err *err)
{
	int64_t one;

	return db_int(d, &one, q, err, "t", path);
}

int objects_find(struct objects *o, const char *path, struct artifact_file *ret, struct err *err)
{
	struct artifact_file f = { .fd = -1 };
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(o->store, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_artifact_get, err, "t", path);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		f.bytes = (uint64_t)db_i64(q, COL_artifact_get_bytes);
		f.time_ns = db_i64(q, COL_artifact_get_time_ns);
		snprintf(f.sha256, sizeof(f.sha256), "%s", db_str(q, COL_artifact_get_sha256));
		if (!db_null(q, COL_artifact_get_object))
			snprintf(f.object, sizeof(f.object), "%s", db_str(q, COL_artifact_get_object));
		db_stop(q);
		rc = 0;
	}
	if (!rc && !f.object[0]) {
		rc = has_artifact_row(d, DB_artifact_in_way, path, err);
		if (rc > 0)
			rc = err_set(err, ERR_USAGE, "Artifact path refers to a directory, not a file: '%.300s'", path);
		else if (!rc)
			rc = err_set(err, ERR_NOENT, "No such artifact: '%.300s'", path);
	}
	readers_give(o->store, d);
	if (!rc)
		*ret = f;
	return rc;
}

int objects_sum(struct objects *o, const char *path, struct files_sum *io, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(o->store, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_artifact_sum, err, "t", path);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		io->files += (uint64_t)db_i64(q, COL_artifact_sum_files);
		io->bytes += (uint64_t)db_i64(q, COL_artifact_sum_bytes);
		db_stop(q);
		rc = 0;
	}
	readers_give(o->store, d);
	return rc;
}

/* One level of a folder, read from rows in the order of their paths. */
struct object_level {
	struct entries *to;
	size_t skip; /* length of the prefix before names */
	size_t skipped;
	char after[4200]; /* start of the next query */
};

static void add_object_entry(struct object_level *l, const char *path, uint64_t bytes)
{
	const char *name = path + l->skip, *slash = strchr(name, '/');
	size_t len = slash ? (size_t)(slash - name) : strlen(name);
	const struct artifact_entry *last = l->to->n ? &l->to->list[l->to->n - 1] : NULL;

	l->skipped++;
	snprintf(l->after, sizeof(l->after), "%s", path);
	if (slash && last && last->folder && !strncmp(last->name, name, len) && !last->name[len]) {
		if (l->skipped > SKIP_MOST) /* '0' follows '/' */
			snprintf(l->after, sizeof(l->after), "%.*s0", (int)(slash - path), path);
		return;
	}
	l->skipped = 0;
	entries_add(l->to, (struct artifact_entry){ arena_printf(l->to->arena, "%.*s", (int)len, name), slash != NULL,
						    slash ? 0 : bytes, NULL });
}

/* Reads some rows of the level: 1 there may be more after l->after, 0 at the end. */
static int add_object_rows(struct object_level *l, struct db *d, const char *end, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_artifact_below, err, "tt", l->after, end), rows = 0;

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0) {
		rows++;
		add_object_entry(l, db_str(q, COL_artifact_below_path), (uint64_t)db_i64(q, COL_artifact_below_bytes));
		if (l->skipped <= SKIP_MOST)
			continue;
		db_stop(q);
		l->skipped = 0;
		return 1;
	}
	return rc < 0 ? rc : rows > 0;
}

int objects_entries(struct objects *o, const char *path, struct entries *list, struct err *err)
{
	struct object_level l = { .to = list, .skip = *path ? strlen(path) + 1 : 0 };
	char end[4200];
	struct db *d;
	int rc;

	snprintf(l.after, sizeof(l.after), "%s%s", path, l.skip ? "/" : "");
	snprintf(end, sizeof(end), "%s%s", l.skip ? path : "\xf5", l.skip ? "0" : ""); /* no UTF-8 text begins with
											* this byte */
	rc = readers_take(o->store, &d, err);
	if (rc)
		return rc;
	while ((rc = add_object_rows(&l, d, end, err)) > 0)
		;
	readers_give(o->store, d);
	return rc;
}

/* --- the place of objects ------------------------------------------------------------------------------------- */

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
	int rc = read_place(s, known, sizeof(known), err);

	*ret = NULL;
	if (*known && opts->by_default)
		root = known;
	if (!rc && object_is_address(root))
		rc = objects_new(ret, s, root, err);
	if (*ret)
		root = (*ret)->address;
	return rc || !strcmp(root, known) ? rc : keep_place(s, root, known, err);
}
