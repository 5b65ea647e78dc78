/* SPDX-License-Identifier: Apache-2.0 */
/* layer_series.h: tables and CSV leave out the series of each layer (query_layer_group) unless --all is given. */
#ifndef DPT_CLI_LAYER_SERIES_H
#define DPT_CLI_LAYER_SERIES_H

#include "web/server/local.h"
#include "web/store/read/query.h"

/* A sink that passes CSV on to another one without per-layer series: columns metrics.KEY.… of the table of runs, or
 * rows whose column "key" has such a KEY. One thread. */
struct layer_filter;
struct layer_filter *layer_filter_new(const struct local_sink *to); /* borrows to */
void layer_filter_free(struct layer_filter *f);			    /* NULL is fine */
struct local_sink layer_filter_sink(struct layer_filter *f);

/* Columns and rows that were left out so far. */
size_t layer_filter_left_out(const struct layer_filter *f);

#endif
