/* SPDX-License-Identifier: Apache-2.0 */
/* event_media.h: pictures, histograms, texts, tables and sounds in TensorBoard's messages (summary.proto, tensor.proto,
 * the plugins' tensors). The content is a Summary.Value without its tag and rank; its bytes are stored and returned
 * unchanged. Pure: results of reading point into the content. */
#ifndef DPT_EVENT_EVENT_MEDIA_H
#define DPT_EVENT_EVENT_MEDIA_H

#include "tracker/base/buf.h"
#include "tracker/event/event.h"

enum media_kind { MEDIA_NONE, MEDIA_IMAGE, MEDIA_HISTOGRAM, MEDIA_TEXT, MEDIA_TABLE, MEDIA_AUDIO, MEDIA_KINDS };

const char *media_kind_name(enum media_kind kind); /* "image", …; NULL if out of range */

/* Returns the kind of a Summary.Value (event_item.raw); appends its content to *to (may be NULL). */
enum media_kind media_content(struct event_span value, struct buf *to);

struct media {
	enum media_kind kind;
	struct event_span bytes;	  /* image, audio: the encoded file */
	uint64_t width, height;		  /* image: pixels; table: columns, rows */
	struct event_span strings;	  /* text, table: for media_string */
	struct event_span bins;		  /* histogram: rows of three little-endian doubles: left, right, count; or */
	struct event_span limits, counts; /* the older form: right edges and counts, */
	double min, max;		  /* include the outer edges */
};

/* 0 or ERR_CORRUPT. */
int media_read(struct event_span content, struct media *ret);

/* Returns the media type of a picture or sound, from its first bytes: the type that its writer named is ignored.
 * Histograms and tables: application/json, texts: text/plain. */
const char *media_type(const struct media *m);

bool media_string(struct event_span *strings, struct event_text *ret); /* reads the next one; false at the end */

struct media_bin {
	double left, right, count;
};

size_t media_bins(const struct media *m);
struct media_bin media_bin(const struct media *m, size_t i);

/* Append a content. Widths and heights are in pixels; cells go row by row. */
void media_add_image(struct buf *to, struct event_span file, unsigned width, unsigned height);
void media_add_audio(struct buf *to, struct event_span file, struct event_text type);
void media_add_histogram(struct buf *to, const double *edges, const double *counts, size_t bins);
void media_add_text(struct buf *to, struct event_text text);
void media_add_table(struct buf *to, const struct event_text *cells, size_t rows, size_t columns);

struct media_place {
	struct event_text key;
	int64_t step;
	double wall_time;
	int rank, journal_rank; /* rank of the series; rank in the journal's header */
};

/* Appends a record with the content under a key. */
void media_encode(struct buf *b, const struct media_place *place, struct event_span content);

#endif
