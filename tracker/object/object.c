/* SPDX-License-Identifier: Apache-2.0 */
/* object.c: operations on one object, and listings. */
#include "tracker/object/object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int object_delete(struct object_client *c, const char *key, struct err *err)
{
	struct object_call call = { .ask = { .method = "DELETE", .key = key } };
	int rc = client_call(c, &call, err);

	client_call_done(&call);
	return rc == ERR_NOENT ? 0 : rc;
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
	int rc;

	memcpy(token, p->next, sizeof(token));
	if (*p->list->prefix)
		query[call.ask.n_query++] = (struct uri_pair){ "prefix", p->list->prefix };
	if (p->list->delimiter)
		query[call.ask.n_query++] = (struct uri_pair){ "delimiter", p->list->delimiter };
	if (token[0])
		query[call.ask.n_query++] = (struct uri_pair){ "continuation-token", token };
	p->next[0] = '\0';
	p->more = false;
	rc = client_call(c, &call, err);
	if (!rc)
		rc = answer_read(call.text.data ? call.text.data : "", call.text.len,
				 &(struct answer_reader){ read_list_element, p }, err);
	client_call_done(&call);
	return rc;
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
