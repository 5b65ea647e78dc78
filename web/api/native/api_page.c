/* SPDX-License-Identifier: Apache-2.0 */
/* api_page.c: serves the files of the page. With index.html it sends preload links for the first requests of the page.
 */
#include "web/api/api.h"

#include "web/assets/asset.h"

/* The first requests of the page (getRuns, FIRST and firstPage in web/ui/src), encoded as URLSearchParams does; for the
 * list of experiments (?all) that list. */
#define PRELOAD_EXPERIMENTS "api/v1/experiments"
#define PRELOAD_RUNS                                                                                                   \
	"api/v1/runs?limit=200&include=keys&metrics_max=48&params_max=32&params=model&params=arch&params=strategy"     \
	"&params=world_size&params=precision&params=batch_size&params=global_batch_size&params=opt&params=optimizer"   \
	"&params=lr&params=learning_rate&params=lr_scheduler&params=wd&params=weight_decay&params=epochs&params=seed"
#define PRELOAD_METRICS                                                                                                \
	"&metrics=train%2Floss&metrics=loss&metrics=val%2Floss&metrics=val_loss&metrics=eval%2Floss"                   \
	"&metrics=epoch%2Fval_loss&metrics=epoch%2Ftop1&metrics=val%2Ftop1"

/* Encodes a text as URLSearchParams does. */
static const char *encode_form_value(struct call *c, const char *text)
{
	static const char hex[] = "0123456789ABCDEF";
	char *out = arena_array(c->arena, strlen(text) * 3 + 1, 1);
	size_t n = 0;

	for (; *text; text++) {
		unsigned char b = (unsigned char)*text;

		if ((b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || strchr("*-._", b)) {
			out[n++] = (char)b;
		} else if (b == ' ') {
			out[n++] = '+';
		} else {
			out[n++] = '%';
			out[n++] = hex[b >> 4];
			out[n++] = hex[b & 15];
		}
	}
	out[n] = '\0';
	return out;
}

/* A filter changes the first request in ways that only the page knows, so there is no link then. */
static void add_preload_link(struct call *c)
{
	const char *const *experiments, *named = "";
	size_t n = call_arg_all(c, "e", &experiments);

	if (call_arg(c, "q"))
		return;
	if (call_arg(c, "all")) {
		call_header(c, "Link", "<" PRELOAD_EXPERIMENTS ">; rel=preload; as=fetch; crossorigin");
		return;
	}
	for (size_t i = 0; i < n; i++)
		named = arena_printf(c->arena, "%s&experiment=%s", named, encode_form_value(c, experiments[i]));
	call_header(c, "Link",
		    arena_printf(c->arena, "<" PRELOAD_RUNS "%s%s>; rel=preload; as=fetch; crossorigin", named,
				 PRELOAD_METRICS));
}

/* brotli is a tenth smaller than gzip; browsers take it over HTTPS, and over HTTP from this machine. */
static void set_page_bytes(struct call *c, const struct asset *a)
{
	const bool brotli = a->brotli.bytes && c->client.accepts_brotli, gzip = a->gzip.bytes && c->client.accepts_gzip;
	const struct asset_form *form = brotli ? &a->brotli : gzip ? &a->gzip : &a->raw;

	c->fixed = (struct call_fixed){ form->bytes, form->n, brotli ? "br" : gzip ? "gzip" : NULL };
}

enum call_next on_page_get(struct call *c)
{
	const char *path = c->address.rest[0] ? arena_printf(c->arena, "/%s", c->address.rest) : "/index.html";
	const struct asset *a = path ? asset_find(path) : NULL;

	/* openapi.json has a route of its own */
	if (!a || !strncmp(path, "/api/", 5))
		return call_fail(c, CALL_not_found, NULL, "no such address");
	if (!strcmp(path, "/index.html"))
		add_preload_link(c);
	c->type = a->mime;
	c->reply.etag = a->etag;
	c->reply.page = true;
	c->reply.cache = a->immutable ? "public, max-age=31536000, immutable" : "no-cache";
	set_page_bytes(c, a);
	return CALL_DONE;
}
