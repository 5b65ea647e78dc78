/* content.h: what other trackers write as JSON, as numbers, texts and the contents of media. */
#ifndef DPT_CLI_BRING_CONTENT_H
#define DPT_CLI_BRING_CONTENT_H

#include <jansson.h>
#include <stdbool.h>

#include "tracker/base/buf.h"

/* "NaN", "Infinity" and "-Infinity" are numbers, true is 1. */
bool content_is_number(json_t *value);
double content_number(json_t *value); /* NaN for what is none */

char *content_text(json_t *value); /* the text itself, anything else printed; NULL: no memory. The caller frees it */

/* {"values": counts, "bins": edges}, one more edge than counts; false: it is none (older ones of W&B are packed). */
bool content_add_histogram(struct buf *to, json_t *histogram);

/* {"columns": [...], "data": [[...], ...]}: the names are the first row; false: it has no columns. */
bool content_add_table(struct buf *to, json_t *table);

#endif
