/* SPDX-License-Identifier: Apache-2.0 */
/* request.h: arguments that several routes of v1 share, and the error of a refused query. */
#ifndef DPT_NATIVE_REQUEST_H
#define DPT_NATIVE_REQUEST_H

#include "web/api/api.h"
#include "web/api/json.h"

/* Fails the call with an error of the query layer; a bad filter has its own error code. */
enum call_next request_refused(struct call *c, const struct err *err);

/* Text of a scalar JSON value in the arena; NULL for an object, an array or null. */
const char *request_scalar(struct call *c, json_t *value);

/* Reads {"k": "v", …} into pairs in the call's arena; numbers and booleans become text. Returns false after failing the
 * call. */
bool request_pairs(struct call *c, const char *field, json_t *object, struct ingest_kv **ret, size_t *ret_count);

/* Parse arguments that select series; text NULL: absent. Return false after failing the call. */
bool request_rank(struct call *c, const char *text, int *rank);         /* "-1", "3", "all" */
bool request_segments(struct call *c, const char *text, bool *ret_all); /* "visible", "all" */

/* Checks ids of runs; where some are prefixes, *io_ids becomes a copy in the call's arena that has the whole ids.
 * Returns false after failing the call: nothing given, not an id, or a prefix of no run or of several. */
bool request_run_ids(struct call *c, const char *field, const char *const **io_ids, size_t n);

#endif
