/* SPDX-License-Identifier: Apache-2.0 */
/* upload.c: multipart uploads: begin, parts with their ETags, completion by the list of parts. Also aborts unfinished
 * uploads of other processes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/array.h"
#include "tracker/object/client.h"
#include "tracker/object/sign.h"

#define ID_BYTES 1024
#define PARTS_MAX 10000
#define LIST_MAX ((size_t)8 << 20)

struct object_upload {
	struct object_client *c;
	char key[OBJECT_KEY_MAX + 1], id[ID_BYTES];
	bool open;			/* the upload must be aborted */
	pthread_mutex_t lock;		/* protects the members below */
	char (*tag)[OBJECT_ETAG_BYTES]; /* etag of part number + 1; "": missing */
	int tags, room;
};

static int read_upload_id(void *user, const char *path, const char *text)
{
	struct object_upload *u = user;
	const char *name = strrchr(path, '/');

	if (name && !strcmp(name, "/UploadId"))
		snprintf(u->id, sizeof(u->id), "%s", text);
	return 0;
}

static int begin_upload(struct object_upload *u, const char *type, struct err *err)
{
	struct uri_pair query = { "uploads", "" };
	struct object_call call = { .ask = { .method = "POST", .key = u->key, .query = &query, .n_query = 1 },
				    .bytes = "",
				    .type = type };
	int rc = client_read(u->c, &call, &(struct answer_reader){ read_upload_id, u }, err);

	if (!rc && !u->id[0])
		rc = err_set(err, ERR_CORRUPT, "%s…/%.300s: the server returned no upload id", client_scheme(u->c),
			     u->key);
	u->open = !rc;
	return rc;
}

int object_upload_begin(struct object_upload **ret, struct object_client *c, const char *key, const char *type,
			struct err *err)
{
	struct object_upload *u = calloc(1, sizeof(*u));
	int rc;

	if (!u)
		return client_nomem(c, key, err);
	u->c = c;
	snprintf(u->key, sizeof(u->key), "%s", key);
	pthread_mutex_init(&u->lock, NULL);
	rc = begin_upload(u, type, err);
	if (rc) {
		object_upload_free(u);
		return rc;
	}
	*ret = u;
	return 0;
}

/* The caller holds the lock. */
static bool reserve_etags(struct object_upload *u, int number)
{
	return array_reserve(&u->tag, &u->room, number);
}

static int store_etag(struct object_upload *u, int number, const char *tag, struct err *err)
{
	bool kept;

	pthread_mutex_lock(&u->lock);
	kept = reserve_etags(u, number);
	if (kept) {
		for (; u->tags < number; u->tags++)
			u->tag[u->tags][0] = '\0';
		snprintf(u->tag[number - 1], sizeof(u->tag[0]), "%s", tag);
	}
	pthread_mutex_unlock(&u->lock);
	return kept ? 0 : client_nomem(u->c, u->key, err);
}

int object_upload_numbered(struct object_upload *u, const struct object_part *p, struct err *err)
{
	char text[16];
	struct uri_pair query[2] = { { "partNumber", text }, { "uploadId", u->id } };
	struct object_call call = { .ask = { .method = "PUT", .key = u->key, .query = query, .n_query = 2,
				      .payload = p->sha256 },
			     .bytes = p->n ? p->bytes : "",
			     .n = p->n };
	int rc;

	if (p->number < 1 || p->number > PARTS_MAX)
		return err_set(err, ERR_LIMIT, "%s…/%.300s: an upload has at most %d parts", client_scheme(u->c),
			       u->key, PARTS_MAX);
	snprintf(text, sizeof(text), "%d", p->number);
	rc = client_call(u->c, &call, err);
	if (!rc)
		rc = store_etag(u, p->number, call.etag, err);
	client_call_done(&call);
	return rc;
}

int object_upload_part(struct object_upload *u, const void *bytes, size_t n, struct err *err)
{
	const struct object_part p = { .number = u->tags + 1, .bytes = bytes, .n = n }; /* no other thread adds parts */

	return object_upload_numbered(u, &p, err);
}

/* Appends the XML list of the parts. */
static void add_part_list(const struct object_upload *u, struct buf *to)
{
	buf_adds(to, "<CompleteMultipartUpload>");
	for (int i = 0; i < u->tags; i++) {
		buf_addf(to, "<Part><PartNumber>%d</PartNumber><ETag>", i + 1);
		client_add_xml(to, u->tag[i]);
		buf_adds(to, "</ETag></Part>");
	}
	buf_adds(to, "</CompleteMultipartUpload>");
}

int object_upload_end(struct object_upload *u, struct err *err)
{
	struct uri_pair query = { "uploadId", u->id };
	struct object_call call = { .ask = { .method = "POST", .key = u->key, .query = &query, .n_query = 1 },
				    .type = "application/xml" };
	char code[OBJECT_CODE_BYTES];
	struct buf list;
	int rc;

	buf_init(&list, LIST_MAX);
	add_part_list(u, &list);
	call.bytes = list.data;
	call.n = list.len;
	rc = buf_failed(&list) ? client_nomem(u->c, u->key, err) : client_call(u->c, &call, err);
	buf_done(&list);
	object_code(call.text.data ? call.text.data : "", call.text.len, code);
	if (!rc && code[0]) /* the server failed after it had sent the status */
		rc = err_set(err, ERR_IO, "%s…/%.300s: the server did not assemble the parts: %.100s",
			     client_scheme(u->c), u->key, code);
	client_call_done(&call);
	u->open = rc != 0;
	return rc;
}

static int abort_upload(struct object_client *c, const char *key, const char *id, struct err *err)
{
	struct uri_pair query = { "uploadId", id };
	struct object_call call = { .ask = { .method = "DELETE", .key = key, .query = &query, .n_query = 1 } };
	int rc = client_call(c, &call, err);

	client_call_done(&call);
	return rc;
}

void object_upload_free(struct object_upload *u)
{
	if (!u)
		return;
	if (u->open)
		abort_upload(u->c, u->key, u->id, NULL);
	pthread_mutex_destroy(&u->lock);
	free(u->tag);
	free(u);
}

/* Uploads of wanted keys in a list of all whose keys begin with a prefix, page by page. */
struct unfinished_uploads {
	struct object_client *c;
	const char *const *keys; /* wanted */
	size_t n;
	char key[4 * OBJECT_KEY_MAX], id[ID_BYTES]; /* of the current entry */
	char next_key[4 * OBJECT_KEY_MAX], next_id[ID_BYTES];
	bool more;
	struct err *err;
};

/* Aborts the upload of the current entry if its key is wanted. */
static int abandon_entry(const struct unfinished_uploads *l)
{
	int rc = 0;

	for (size_t i = 0; i < l->n && !rc; i++)
		if (!strcmp(l->keys[i], l->key))
			rc = abort_upload(l->c, l->key, l->id, l->err);
	return rc == ERR_NOENT ? 0 : rc; /* another process aborted it first */
}

static int read_unfinished(void *user, const char *path, const char *text)
{
	struct unfinished_uploads *l = user;
	const char *below = strchr(path, '/');

	below = below ? below + 1 : "";
	if (!strcmp(below, "Upload/Key"))
		snprintf(l->key, sizeof(l->key), "%s", text);
	else if (!strcmp(below, "Upload/UploadId"))
		snprintf(l->id, sizeof(l->id), "%s", text);
	else if (!strcmp(below, "NextKeyMarker"))
		snprintf(l->next_key, sizeof(l->next_key), "%s", text);
	else if (!strcmp(below, "NextUploadIdMarker"))
		snprintf(l->next_id, sizeof(l->next_id), "%s", text);
	else if (!strcmp(below, "IsTruncated"))
		l->more = !strcmp(text, "true");
	else if (!strcmp(below, "Upload"))
		return abandon_entry(l);
	return 0;
}

/* Reads a page of the list. */
static int abandon_page(struct unfinished_uploads *l, const char *prefix)
{
	struct uri_pair query[4] = { { "uploads", "" }, { "prefix", prefix } };
	struct object_call call = { .ask = { .method = "GET", .key = "", .query = query, .n_query = 2 } };
	char key[sizeof(l->next_key)], id[sizeof(l->next_id)];
	int rc;

	memcpy(key, l->next_key, sizeof(key));
	memcpy(id, l->next_id, sizeof(id));
	if (l->more) {
		query[call.ask.n_query++] = (struct uri_pair){ "key-marker", key };
		query[call.ask.n_query++] = (struct uri_pair){ "upload-id-marker", id };
	}
	l->more = false;
	rc = client_read(l->c, &call, &(struct answer_reader){ read_unfinished, l }, l->err);
	l->more = l->more && (strcmp(key, l->next_key) != 0 || strcmp(id, l->next_id) != 0);
	return rc;
}

int object_upload_abandon(struct object_client *c, const char *prefix, const char *const *keys, size_t n,
			  struct err *err)
{
	struct unfinished_uploads *l = calloc(1, sizeof(*l));
	int rc = l ? 0 : client_nomem(c, prefix, err);

	if (rc)
		return rc;
	*l = (struct unfinished_uploads){ .c = c, .keys = keys, .n = n, .err = err };
	do
		rc = abandon_page(l, prefix);
	while (!rc && l->more);
	free(l);
	return rc;
}
