/* media.h: reads the media of a run (images, histograms, texts, tables, sounds), without those that a restart hides.
 * All results live in the caller's arena. ERR_NOENT, ERR_GONE: no such run. */
#ifndef DPT_STORE_READ_MEDIA_H
#define DPT_STORE_READ_MEDIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"
#include "tracker/event/event_media.h"

struct store;

struct stored_media {
	int64_t id; /* ascending in order of arrival */
	const char *key, *digest; /* SHA-256 of the content */
	enum media_kind kind;
	int rank, segment;
	int64_t step;
	double wall_time;
	const char *type;       /* media type of the returned file, */
	int64_t bytes;          /* and its size */
	int64_t width, height;  /* pixels; columns and rows of a table; else 0 */
	struct event_span content; /* media_of_part only */
};

struct media_key { /* what is visible of a key */
	const char *key;
	enum media_kind kind;
	int64_t count, first_step, last_step;
};

struct media_opts {
	const char *run;
	const char *key;      /* NULL: all */
	enum media_kind kind; /* MEDIA_NONE: all */
	int64_t from, to;     /* steps */
	bool hidden;          /* include hidden ones */
	size_t limit;
};

struct media_list {
	struct media_key *keys;
	size_t key_count;
	struct stored_media *items; /* by step, key, rank */
	size_t count;
};

int media_of_run(struct store *s, const struct media_opts *o, struct arena *a, struct media_list *ret, struct err *err);

/* The content with this digest. ERR_NOENT: the run has none. */
struct media_ref {
	const char *run, *digest;
};
int media_get(struct store *s, const struct media_ref *of, struct arena *a, struct event_span *ret, struct err *err);

/* The items of one rank in one segment of a run. */
struct media_part {
	const char *run;
	int rank, segment;
	int64_t after; /* only items with a higher id */
};

/* The next items of a part, in order, with contents; 0 items: the end. */
int media_of_part(struct store *s, const struct media_part *part, struct arena *a, struct media_list *ret,
		  struct err *err);

#endif
