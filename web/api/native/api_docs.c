/* SPDX-License-Identifier: Apache-2.0 */
/* api_docs.c: serves the static site of the documents at /docs, to everybody. Arguments are ignored: the site's search
 * adds some to its links. */
#include "web/api/api.h"

#include "web/assets/asset.h"

/* The pages are in /docs/, so their relative links need an address below it. */
enum call_next on_docs_root_get(struct call *c)
{
	if (!c->api->docs)
		return call_fail(c, CALL_not_found, NULL,
				 "the documents are not installed: run make docs before make install, or serve "
				 "with --docs DIR");
	c->status = 302;
	c->type = "text/plain; charset=utf-8";
	c->reply.location = "docs/index.html";
	buf_adds(&c->out, "see docs/index.html\n");
	return CALL_DONE;
}

enum call_next on_docs_get(struct call *c)
{
	const char *name = *c->address.rest ? c->address.rest : "index.html";
	const struct docs_file *f = c->api->docs ? docs_site_find(c->api->docs, name) : NULL;

	if (!c->api->docs)
		return on_docs_root_get(c);
	if (!f)
		return call_fail(c, CALL_not_found, NULL, "the documents have no such page: see /docs/index.html");
	c->type = f->mime;
	c->reply.etag = f->etag;
	c->reply.page = true;
	if (!f->gzip || c->client.accepts_gzip) {
		c->fixed.bytes = f->bytes;
		c->fixed.len = f->n;
		c->fixed.coding = f->gzip ? "gzip" : NULL;
		return CALL_DONE;
	}
	if (docs_site_unpack(f, &c->out))
		return call_fail(c, CALL_internal, NULL, "this file of the documents cannot be unpacked: install "
				 "them again");
	return CALL_DONE;
}
