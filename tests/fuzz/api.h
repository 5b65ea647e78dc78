/* api.h: requests without a network for the targets that need a store: handlers and store run in the target's process, on
 * a folder of its own that is made anew from time to time. */
#ifndef DPT_FUZZ_API_H
#define DPT_FUZZ_API_H

#include "web/api/call.h"

/* Answers one request; returns the status. body NULL: none. */
int api_ask(enum call_method method, const char *target, const char *body);

/* The id of the one run that is always there. */
extern const char api_run_id[33];

#endif
