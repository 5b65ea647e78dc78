/* SPDX-License-Identifier: Apache-2.0 */
/* asset.h: the files of the page and of the documents, and their media types. web/assets/embed_assets.c generates a
 * table of those that are embedded in the program (the page, openapi.json) during the build. */
#ifndef DPT_API_ASSET_H
#define DPT_API_ASSET_H

#include <string.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

struct asset_form {
	const unsigned char *bytes;
	size_t n;
};

struct asset {
	const char *path; /* as in the URL, with the leading slash */
	const char *mime;
	const char *etag; /* quoted */
	struct asset_form raw;
	struct asset_form gzip, brotli; /* no bytes: compression saves too little, or the bundler wrote none */
	bool immutable; /* the name contains a hash of the content */
};

extern const struct asset asset_table[];
extern const size_t asset_count;

/* Returns NULL if no file has that path. */
const struct asset *asset_find(const char *path);

/* ---- docs_site.c ----
 * The static site of the documents (`make docs`), read into memory once. Afterwards a request only looks up a path
 * among those that were there, so no byte from a client names a file. Read-only after docs_site_load: any thread. */

struct docs_site;

struct docs_file {
	const char *path; /* below the site, such as guides/ddp.html */
	const char *mime;
	const char *etag; /* quoted */
	const void *bytes;
	size_t n;
	bool gzip; /* the bytes are gzip: the site has NAME.gz */
};

/* Reads the files below folder; of NAME and NAME.gz only the latter. Hidden files and symbolic links are left out.
 * ERR_USAGE: the folder has no index.html or is no site. ERR_NOMEM. */
int docs_site_load(struct docs_site **ret, const char *folder, struct err *err);
void docs_site_free(struct docs_site *s); /* NULL is fine */

/* NULL if the site has no such file. The result is valid as long as s. */
const struct docs_file *docs_site_find(const struct docs_site *s, const char *path);

/* Appends the bytes of a file without compression. Returns 0, ERR_CORRUPT or ERR_NOMEM. */
int docs_site_unpack(const struct docs_file *f, struct buf *to);

/* Writes to ret (n bytes) the folder of the site that belongs to this program: `site` next to a program in its build
 * folder, share/dptrack/docs next to its bin folder, else the folder of installation. Returns false if none has an
 * index.html. */
bool docs_site_locate(char *ret, size_t n);

/* Media types of the files that a browser gets. In the header, because the build tool uses it, too. */

/* The type by the name's ending; application/octet-stream for others. */
static inline const char *mime_type_of(const char *path)
{
	static const char *const types[][2] = {
		{ ".html", "text/html; charset=utf-8" }, { ".js", "text/javascript; charset=utf-8" },
		{ ".css", "text/css; charset=utf-8" },   { ".svg", "image/svg+xml" },
		{ ".json", "application/json" },         { ".png", "image/png" },
		{ ".ico", "image/x-icon" },              { ".woff2", "font/woff2" },
		{ ".txt", "text/plain; charset=utf-8" }, { ".webmanifest", "application/manifest+json" },
	};
	const char *dot = strrchr(path, '.');
	size_t i;

	for (i = 0; dot && i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(dot, types[i][0]))
			return types[i][1];
	return "application/octet-stream";
}

#endif
