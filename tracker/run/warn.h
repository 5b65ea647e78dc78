/* SPDX-License-Identifier: Apache-2.0 */
/* warn.h: warnings to the user of the library. Any thread posts; the writer thread delivers, each kind at most once a
 * minute, so that no logging thread runs the user's callback. */
#ifndef DPT_RUN_WARN_H
#define DPT_RUN_WARN_H

#include <stdbool.h>

enum warn_kind { WARN_QUEUE, WARN_KEY, WARN_PARAM, WARN_CUT, WARN_MEDIA, WARN_FILE, WARN_DISK, WARN_SYNC, WARN_SERVER,
		 WARN_SYSTEM, WARN_UNSENT, WARN_LACKING, WARN_KINDS };

struct warn;

struct warn *warn_new(void (*callback)(void *user, const char *text), void *user); /* NULL: out of memory */
void warn_free(struct warn *w);                                                    /* NULL is fine */

/* Stores the newest text of each kind until it is delivered. */
void warn_post(struct warn *w, enum warn_kind kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Delivers pending warnings. One thread at a time; all: independent of the time since the last one. */
void warn_deliver(struct warn *w, bool all);

void warn_mute(struct warn *w); /* stops all deliveries */

#endif
