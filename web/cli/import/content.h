/* SPDX-License-Identifier: Apache-2.0 */
/* content.h: reads JSON of other trackers as numbers, texts, histograms and tables. */
#ifndef DPT_CLI_CONTENT_H
#define DPT_CLI_CONTENT_H

#include <jansson.h>
#include <stdbool.h>

#include "tracker/base/buf.h"

/* "NaN", "Infinity" and "-Infinity" are numbers, true is 1. */
bool content_is_number(json_t *value);
double content_number(json_t *value); /* NaN for other values */

/* A string itself, any other value printed; NULL: out of memory. The caller frees it. */
char *content_text(json_t *value);

/* Converts {"values": counts, "bins": edges}, one more edge than counts. Returns false for other forms (older ones of
 * W&B are packed). */
bool content_add_histogram(struct buf *to, json_t *histogram);

/* Converts {"columns": [...], "data": [[...], ...]}; the column names are the first row. Returns false without
 * columns. */
bool content_add_table(struct buf *to, json_t *table);

#endif
