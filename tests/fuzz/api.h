/* SPDX-License-Identifier: Apache-2.0 */
/* api.h: requests without a network for the targets that need a store: handlers and store run in the target's process,
 * on a separate folder that is recreated from time to time. */
#ifndef DPT_FUZZ_API_H
#define DPT_FUZZ_API_H

#include "tracker/base/buf.h"
#include "web/api/call.h"

/* Answers one request; returns the status. body may be NULL. reply: the response; NULL when it is not needed. */
int api_ask(enum call_method method, const char *target, const char *body, struct buf *reply);

struct store *api_store(void); /* valid until the next request */
void api_renew(void);          /* replaces the store by a new one with one run */

#endif
