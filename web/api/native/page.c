/* page.c: the files of the page. The table is sorted by path. */
#include "web/api/api.h"

#include <string.h>

#include "web/assets/asset.h"
#include "web/api/handlers.h"

const struct asset *asset_find(const char *path)
{
	size_t low = 0, high = asset_count, mid;
	int order;

	while (low < high) {
		mid = low + (high - low) / 2;
		order = strcmp(path, asset_table[mid].path);
		if (!order)
			return &asset_table[mid];
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

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
