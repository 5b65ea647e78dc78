/* SPDX-License-Identifier: Apache-2.0 */
/* blob.h: files of runs, for the routes of v1 and MLflow: stores a streamed body as a file, and replies with a file and
 * its ranges. Knows no route. */
#ifndef DPT_API_BLOB_H
#define DPT_API_BLOB_H

#include "web/api/api.h"
#include "web/store/files/artifacts.h"

/* Stores the streamed body of a route as the file at path (below the root of artifacts, already checked), durably, then
 * calls then. fail writes the error. */
struct blob_put {
	const char *path;
	enum call_next (*fail)(struct call *c, const struct err *err);
	enum call_next (*then)(struct call *c, const struct artifact_file *file);
};

enum call_next blob_put(struct call *c, const struct blob_put *put);

/* Removes the path and everything below it, then calls then. */
struct blob_remove {
	const char *path;
	enum call_next (*fail)(struct call *c, const struct err *err);
	enum call_next (*then)(struct call *c);
};

enum call_next blob_remove(struct call *c, const struct blob_remove *remove);

/* Replies with the file: ranges, entity tag and digest, and never a type that a browser executes. fail writes the error
 * if the file cannot be opened. */
struct blob_reply {
	const char *path;
	bool download; /* always as an attachment */
	bool frame;    /* HTML runs, in a sandbox without origin and network; for frames of the server's page */
	enum call_next (*fail)(struct call *c, const struct err *err);
};

enum call_next blob_reply(struct call *c, const struct blob_reply *reply);

/* Lets a page of this server show the reply, an HTML document, in a frame: its scripts run, in a sandbox without origin
 * and network. */
void blob_allow_frame(struct call *c);

/* Parses a Range header with one range. BLOB_PART: from and count are set (at least one byte, inside the file).
 * BLOB_BAD: the range is outside the file. BLOB_WHOLE: ignore the header; it has several ranges, another unit or a
 * syntax error. */
enum blob_range { BLOB_WHOLE, BLOB_PART, BLOB_BAD };
enum blob_range blob_range(const char *text, uint64_t bytes, uint64_t *from, uint64_t *count);

/* Cuts the entries of a folder, sorted by name, to one page of at most limit after the token. The token is the last
 * name of the previous page (NULL or "": the first page). next: the token of the next page, NULL on the last one. */
#define BLOB_PAGE_MAX 50000
struct blob_page {
	const char *token;
	int64_t limit;
	const char *next;
};

void blob_page(struct blob_page *page, struct artifact_entry **entries, size_t *count);

/* Reads a stored file whole, waiting for it, so on a thread of its own. buf_failed(to): it is larger than to may be. */
int blob_load(struct call *c, const char *place, struct buf *to, struct err *err);

#endif
