/* content.h: converts JSON of other trackers to numbers, texts and the content of media. */
#ifndef DPT_CLI_BRING_CONTENT_H
#define DPT_CLI_BRING_CONTENT_H

#include <jansson.h>
#include <stdbool.h>

#include "tracker/base/buf.h"

/* "NaN", "Infinity" and "-Infinity" are numbers, true is 1. */
bool content_is_number(json_t *value);
double content_number(json_t *value); /* NaN for other values */

char *content_text(json_t *value); /* a string itself, any other value printed; NULL: out of memory. The caller frees
				    * it */

/* Converts {"values": counts, "bins": edges}, one more edge than counts. Returns false for other forms (older ones of
 * W&B are packed). */
bool content_add_histogram(struct buf *to, json_t *histogram);

/* Converts {"columns": [...], "data": [[...], ...]}; the column names are the first row. Returns false without
 * columns. */
bool content_add_table(struct buf *to, json_t *table);

#endif
