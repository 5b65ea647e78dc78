/* asset.h: the files that the program carries in itself (the page, openapi.json); the table is made by
 * web/assets/embed_assets.c while building. */
#ifndef DPT_API_ASSET_H
#define DPT_API_ASSET_H

#include <stdbool.h>
#include <stddef.h>

struct asset {
	const char *path; /* as in the address, leading slash included */
	const char *mime;
	const char *etag;          /* quoted */
	const unsigned char *raw;
	size_t raw_len;
	const unsigned char *gz;   /* NULL when compressing gains nothing */
	size_t gz_len;
	bool immutable;            /* the name carries a hash of the content */
};

extern const struct asset asset_table[];
extern const size_t asset_count;

/* NULL when there is none. */
const struct asset *asset_find(const char *path);

#endif
