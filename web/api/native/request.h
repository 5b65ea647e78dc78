/* request.h: what several routes of v1 read from a request, alike, and how a refused query is told. */
#ifndef DPT_NATIVE_REQUEST_H
#define DPT_NATIVE_REQUEST_H

#include "web/api/api.h"
#include "web/api/json.h"

/* Fails the call for what the query layer said; a bad filter has a code of its own. */
enum call_next request_refused(struct call *c, const struct err *err);

/* {"k": "v", …} to pairs in the call's arena; numbers and booleans become their text. False after failing the call. */
bool request_pairs(struct call *c, const char *field, json_t *object, struct ingest_kv **ret, size_t *ret_count);

/* Words of a request that picks series; text NULL: not given. False after failing the call. */
bool request_rank(struct call *c, const char *text, int *rank);         /* "-1", "3", "all" */
bool request_segments(struct call *c, const char *text, bool *ret_all); /* "visible", "all" */
bool request_run_ids(struct call *c, const char *field, const char *const *ids, size_t n);

#endif
