/* SPDX-License-Identifier: Apache-2.0 */
/* asset.h: the files that are embedded in the program (the page, openapi.json). web/assets/embed_assets.c generates the
 * table during the build. */
#ifndef DPT_API_ASSET_H
#define DPT_API_ASSET_H

#include <stdbool.h>
#include <stddef.h>

struct asset {
	const char *path; /* as in the URL, with the leading slash */
	const char *mime;
	const char *etag;          /* quoted */
	const unsigned char *raw;
	size_t raw_len;
	const unsigned char *gz;   /* NULL when compression saves too little */
	size_t gz_len;
	bool immutable;            /* the name contains a hash of the content */
};

extern const struct asset asset_table[];
extern const size_t asset_count;

/* Returns NULL if no file has that path. */
const struct asset *asset_find(const char *path);

#endif
