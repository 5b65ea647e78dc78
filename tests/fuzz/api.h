/* api.h: requests without a network for the targets that need a store: handlers and store run in the target's process,
 * on a folder of its own that is made anew from time to time. */
#ifndef DPT_FUZZ_API_H
#define DPT_FUZZ_API_H

#include "tracker/base/buf.h"
#include "web/api/call.h"

/* Answers one request; returns the status. body NULL: none. reply: what was answered; NULL: not wanted. */
int api_ask(enum call_method method, const char *target, const char *body, struct buf *reply);

struct store *api_store(void); /* until the next request */
void api_renew(void);          /* from now on a fresh one, with one run */

#endif
