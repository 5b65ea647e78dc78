/* SPDX-License-Identifier: Apache-2.0 */
/* object.c: operations on one object, and listings. */
#include "tracker/object/object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/md5.h"
#include "tracker/base/text.h"
#include "tracker/object/client.h"
#include "tracker/object/sign.h"

#define PAGES_MAX 10000000

static void copy_facts(const struct object_call *call, struct object_facts *ret)
{
	ret->bytes = call->curl.answer.total;
	memcpy(ret->etag, call->etag, sizeof(ret->etag));
	memcpy(ret->generation, call->curl.answer.generation, sizeof(ret->generation));
}

int object_head(struct object_client *c, const char *key, struct object_facts *ret, struct err *err)
{
	struct object_call call = { .ask = { .method = "HEAD", .key = key } };
	int rc = client_call(c, &call, err);

	if (!rc)
		copy_facts(&call, ret);
	client_call_done(&call);
	return rc;
}

int object_get(struct object_client *c, const struct object_get *g, struct object_facts *ret, struct err *err)
{
	struct object_call call = { .ask = { .method = "GET", .key = g->key },
				    .begin = g->begin,
				    .end = g->n ? g->begin + g->n : 0,
				    .match = g->etag,
				    .piece = g->piece,
				    .user = g->user };
	int rc = client_call(c, &call, err);

	if (!rc && g->n && call.got != g->n)
		rc = err_set(err, ERR_IO, "%s…/%.300s: the object has %llu of %llu bytes", client_scheme(c), g->key,
			     (unsigned long long)call.got, (unsigned long long)g->n);
	if (!rc)
		copy_facts(&call, ret);
	client_call_done(&call);
	return rc;
}

int object_put(struct object_client *c, const struct object_put *p, struct err *err)
{
	const bool google = !strcmp(client_scheme(c), OBJECT_GS);
	struct object_call call = { .ask = { .method = "PUT", .key = p->key, .payload = p->sha256 },
				    .bytes = p->n ? p->bytes : "",
				    .n = p->n,
				    .type = p->type };
	int rc;

	if (p->fresh)
		call.header = google ? "x-goog-if-generation-match: 0" : "If-None-Match: *";
	rc = client_call(c, &call, err);
	client_call_done(&call);
	return rc;
}

/* ---- deletion ---- */

#define DELETE_MOST ((size_t)1000) /* keys in a request */

static int delete_one(struct object_client *c, const char *key, struct err *err)
{
	struct object_call call = { .ask = { .method = "DELETE", .key = key } };
	int rc = client_call(c, &call, err);

	client_call_done(&call);
	return rc == ERR_NOENT ? 0 : rc;
}

static void add_delete_key(struct buf *to, const char *key)
{
	buf_adds(to, "<Object><Key>");
	client_add_xml(to, key);
	buf_adds(to, "</Key></Object>");
}

/* The first object that the server did not delete. */
struct delete_failure {
	char key[OBJECT_KEY_MAX + 1], code[OBJECT_CODE_BYTES];
	bool is;
};

static int read_delete_failure(void *user, const char *path, const char *text)
{
	struct delete_failure *f = user;

	if (f->is)
		return 0;
	if (!strcmp(path, "DeleteResult/Error/Key"))
		snprintf(f->key, sizeof(f->key), "%s", text);
	else if (!strcmp(path, "DeleteResult/Error/Code"))
		snprintf(f->code, sizeof(f->code), "%s", text);
	else if (!strcmp(path, "DeleteResult/Error"))
		f->is = strcmp(f->code, "NoSuchKey") != 0;
	return 0;
}

/* Deletes several in one request. *ret_none: the server does not know such requests. */
static int request_deletion(struct object_client *c, const struct buf *body, bool *ret_none, struct err *err)
{
	struct uri_pair query = { "delete", "" };
	struct object_call call = { .ask = { .method = "POST", .key = "", .query = &query, .n_query = 1 },
				    .bytes = body->data,
				    .n = body->len,
				    .type = "application/xml" };
	struct delete_failure f = { .is = false };
	unsigned char digest[16];
	struct md5 md5;
	struct buf sum;
	int rc;

	md5_init(&md5);
	md5_add(&md5, body->data, body->len);
	md5_end(&md5, digest);
	buf_init(&sum, 64);
	buf_adds(&sum, "Content-MD5: ");
	text_add_base64(&sum, digest, sizeof(digest), false);
	call.header = sum.data;
	rc = buf_failed(&sum) ? client_nomem(c, "", err)
			      : client_read(c, &call, &(struct answer_reader){ read_delete_failure, &f }, err);
	*ret_none = rc == ERR_USAGE || (rc && call.curl.answer.status == 501);
	if (!rc && f.is)
		rc = err_set(err, ERR_USAGE, "%s…/%.150s: the server did not delete it: %s", client_scheme(c), f.key,
			     f.code);
	buf_done(&sum);
	return rc;
}

static int delete_each(struct object_client *c, const char *const *keys, size_t n, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++)
		rc = delete_one(c, keys[i], err);
	return rc;
}

/* At most DELETE_MOST keys. */
static int delete_some(struct object_client *c, const char *const *keys, size_t n, struct err *err)
{
	bool none = n == 1 || !strcmp(client_scheme(c), OBJECT_GS);
	struct buf body;
	int rc;

	if (none)
		return delete_each(c, keys, n, err);
	buf_init(&body, DELETE_MOST * (5 * OBJECT_KEY_MAX + 64));
	buf_adds(&body, "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>");
	for (size_t i = 0; i < n; i++)
		add_delete_key(&body, keys[i]);
	buf_adds(&body, "</Delete>");
	rc = buf_failed(&body) ? client_nomem(c, *keys, err) : request_deletion(c, &body, &none, err);
	buf_done(&body);
	return none ? delete_each(c, keys, n, err) : rc;
}

int object_delete(struct object_client *c, const char *const *keys, size_t n, struct err *err)
{
	int rc = 0;

	for (size_t at = 0; at < n && !rc; at += DELETE_MOST)
		rc = delete_some(c, keys + at, n - at < DELETE_MOST ? n - at : DELETE_MOST, err);
	return rc;
}

/* ---- listings: pages of at most 1000 entries ---- */

struct list_page {
	const struct object_list *list;
	char key[4 * OBJECT_KEY_MAX];
	struct object_facts facts;
	char next[4 * OBJECT_KEY_MAX]; /* token of the next page */
	bool more;
	struct err *err;
};

static int emit_entry(struct list_page *p, bool shared)
{
	int rc = p->list->each(p->list->user,
			       &(struct object_entry){ .key = p->key, .shared = shared, .facts = p->facts }, p->err);

	p->key[0] = '\0';
	p->facts = (struct object_facts){ .bytes = 0 };
	return rc;
}

static int read_list_element(void *user, const char *path, const char *text)
{
	struct list_page *p = user;
	const char *below = strchr(path, '/');

	below = below ? below + 1 : "";
	if (!strcmp(below, "Contents/Key") || !strcmp(below, "CommonPrefixes/Prefix"))
		snprintf(p->key, sizeof(p->key), "%s", text);
	else if (!strcmp(below, "Contents/Size"))
		p->facts.bytes = strtoull(text, NULL, 10);
	else if (!strcmp(below, "Contents/ETag"))
		snprintf(p->facts.etag, sizeof(p->facts.etag), "%.*s", OBJECT_ETAG_BYTES - 1, text);
	else if (!strcmp(below, "Contents/Generation"))
		snprintf(p->facts.generation, sizeof(p->facts.generation), "%.*s", OBJECT_GENERATION_BYTES - 1, text);
	else if (!strcmp(below, "NextContinuationToken"))
		snprintf(p->next, sizeof(p->next), "%s", text);
	else if (!strcmp(below, "IsTruncated"))
		p->more = !strcmp(text, "true");
	else if (!strcmp(below, "Contents") || !strcmp(below, "CommonPrefixes"))
		return emit_entry(p, below[2] == 'm');
	return 0;
}

/* Requests the next page of a listing and passes its entries on. */
static int request_list_page(struct object_client *c, struct list_page *p, struct err *err)
{
	struct uri_pair query[4] = { { "list-type", "2" } };
	struct object_call call = { .ask = { .method = "GET", .key = "", .query = query, .n_query = 1 } };
	char token[sizeof(p->next)];

	memcpy(token, p->next, sizeof(token));
	if (*p->list->prefix)
		query[call.ask.n_query++] = (struct uri_pair){ "prefix", p->list->prefix };
	if (p->list->delimiter)
		query[call.ask.n_query++] = (struct uri_pair){ "delimiter", p->list->delimiter };
	if (token[0])
		query[call.ask.n_query++] = (struct uri_pair){ "continuation-token", token };
	p->next[0] = '\0';
	p->more = false;
	return client_read(c, &call, &(struct answer_reader){ read_list_element, p }, err);
}

int object_list(struct object_client *c, const struct object_list *l, struct err *err)
{
	struct list_page *p = calloc(1, sizeof(*p));
	int rc = p ? 0 : client_nomem(c, l->prefix, err);

	if (rc)
		return rc;
	p->list = l;
	p->err = err;
	for (int i = 0; !rc && i < PAGES_MAX && (!i || (p->more && p->next[0])); i++)
		rc = request_list_page(c, p, err);
	free(p);
	return rc;
}
