/* SPDX-License-Identifier: Apache-2.0 */
/* intake_item.h: copies the items of records into a batch. Private to web/store/write/intake.c. */
#ifndef DPT_STORE_INTAKE_ITEM_H
#define DPT_STORE_INTAKE_ITEM_H

#include "web/store/write/intake.h"

/* Counts a rejected record; equal problems share one entry. */
void intake_item_problem(struct intake *in, const char *text);

/* A copy of the key; NULL, with a problem, when it is not allowed. what: "metric", "param", … */
const char *intake_item_key(struct intake *in, struct event_text key, const char *what);

/* Adds an item of a record that is not a point. ERR_USAGE, ERR_UNSUPPORTED: the header is not of this run. */
int intake_item_add(struct intake *in, const struct ingest_op *op, const struct event *ev,
		    const struct event_item *item, struct err *err);

#endif
