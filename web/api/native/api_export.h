/* SPDX-License-Identifier: Apache-2.0 */
/* api_export.h: shared by the exports: a row in three formats, and the entity tag of a stream. */
#ifndef DPT_API_API_EXPORT_H
#define DPT_API_API_EXPORT_H

#include "web/api/api.h"

enum export_format { EXPORT_CSV, EXPORT_JSON, EXPORT_JSONL };

const char *export_type(enum export_format format); /* media type */

/* Sets the entity tag of a stream before it is made: a hash of the request and of the state of the runs. The stream may
 * contain newer data than its tag says, never older. */
void export_tag(struct call *c, const struct query_run *runs, size_t count, uint64_t rev);

/* One row while it is written. CSV writes every column, JSON omits absent values. Set out and format, zero the rest. */
struct export_row {
	struct buf *out;
	struct js js;
	enum export_format format;
	bool begun;
};

void export_csv_text(struct buf *out, const char *text);
void export_row_open(struct export_row *r);
void export_row_close(struct export_row *r);
void export_row_none(struct export_row *r);
void export_row_text(struct export_row *r, const char *name, const char *text); /* NULL: absent */
void export_row_int(struct export_row *r, const char *name, int64_t v);
void export_row_double(struct export_row *r, const char *name, double v);
void export_row_time(struct export_row *r, const char *name, int64_t ms); /* INT64_MIN: absent */

#endif
