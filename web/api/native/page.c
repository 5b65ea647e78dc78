/* page.c: the files of the page. */
#include "web/api/api.h"

#include <string.h>

#include "web/assets/asset.h"
#include "web/api/handlers.h"

enum call_next on_page_get(struct call *c)
{
	const char *path = c->rest[0] ? arena_printf(c->arena, "/%s", c->rest) : "/index.html";
	const struct asset *a = path ? asset_find(path) : NULL;

	/* openapi.json has a route of its own */
	if (!a || !strncmp(path, "/api/", 5))
		return call_fail(c, CALL_not_found, NULL, "no such address");
	c->type = a->mime;
	c->etag = a->etag;
	c->page = true;
	c->cache = a->immutable ? "public, max-age=31536000, immutable" : "no-cache";
	c->fixed_gzip = a->gz && c->accepts_gzip;
	c->fixed = c->fixed_gzip ? a->gz : a->raw;
	c->fixed_len = c->fixed_gzip ? a->gz_len : a->raw_len;
	return CALL_DONE;
}
