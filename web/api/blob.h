/* blob.h: files of runs in and out, for v1's routes and MLflow's: a body streamed to a file, a file as a reply with
 * ranges. Knows no route. */
#ifndef DPT_API_BLOB_H
#define DPT_API_BLOB_H

#include "web/api/api.h"
#include "web/store/files/artifacts.h"

/* For a route whose body is streamed: takes it as the file at path (below the root of artifacts; already checked),
 * durably, then calls then. fail words what went wrong. */
struct blob_put {
	const char *path;
	enum call_next (*fail)(struct call *c, const struct err *err);
	enum call_next (*then)(struct call *c, const struct artifact_file *file);
};

enum call_next blob_put(struct call *c, const struct blob_put *put);

/* Removes the path and what lies below it, then calls then. */
struct blob_remove {
	const char *path;
	enum call_next (*fail)(struct call *c, const struct err *err);
	enum call_next (*then)(struct call *c);
};

enum call_next blob_remove(struct call *c, const struct blob_remove *remove);

/* Replies with the file: ranges, entity tag and digest, never as something that a browser runs. fail words why it could
 * not be opened. */
struct blob_reply {
	const char *path;
	bool download; /* always as an attachment */
	bool frame;    /* HTML runs, in a sandbox without an origin that reaches nothing; for frames of our page */
	enum call_next (*fail)(struct call *c, const struct err *err);
};

enum call_next blob_reply(struct call *c, const struct blob_reply *reply);

/* A Range header's one range of a file: BLOB_PART fills from and count (at least one byte, inside the file); BLOB_BAD:
 * it lies outside. Several ranges, other units and what cannot be read are BLOB_WHOLE, as if the header were not there.
 */
enum blob_range { BLOB_WHOLE, BLOB_PART, BLOB_BAD };
enum blob_range blob_range(const char *text, uint64_t bytes, uint64_t *from, uint64_t *count);

/* Cuts a folder's entries, which stand by name, to one page of at most limit behind the token, the name that ended the
 * page before (NULL or "": the first page). next: the token of the next one, NULL where none follows. */
#define BLOB_PAGE_MAX 50000
struct blob_page {
	const char *token;
	int64_t limit;
	const char *next;
};

void blob_page(struct blob_page *page, struct artifact_entry **entries, size_t *count);

/* text/plain and the like by the name's end; MLflow's choice. */
const char *blob_type(const char *path);

#endif
