/* SPDX-License-Identifier: Apache-2.0 */
/* docs_site.h: the static site of the documents (`make docs`), read into memory once. Afterwards a request only
 * looks up a path among those that were there, so no byte from a client names a file. Read-only after docs_site_load:
 * any thread. */
#ifndef DPT_ASSETS_DOCS_SITE_H
#define DPT_ASSETS_DOCS_SITE_H

#include <stdbool.h>
#include <stddef.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

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

#endif
