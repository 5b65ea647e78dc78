/* SPDX-License-Identifier: Apache-2.0 */
/* webhook.h: posts fired alerts, signed or as messages of a chat, to one address that the administrator sets, and
 * retries until the receiver accepts them. Its thread is outside the sandbox of the threads that answer requests; no
 * other thread of the server connects to that address. */
#ifndef DPT_WEBHOOK_WEBHOOK_H
#define DPT_WEBHOOK_WEBHOOK_H

#include "tracker/base/err.h"

struct store;
struct webhook;

struct webhook_opts {
	const char *url;	 /* http:// or https:// */
	const char *format;	 /* json, slack, discord or teams; NULL: by the host of the URL */
	const char *secret_file; /* its first line is the key for HMAC-SHA256; required for json, else may be NULL */
};

/* ERR_USAGE: an option is invalid, or the key is shorter than 16 characters. */
int webhook_new(struct webhook **ret, struct store *s, const struct webhook_opts *opts, struct err *err);
void webhook_free(struct webhook *w); /* NULL is fine */

/* Posts all alerts that are due. Returns 0 also when the receiver rejects one, which is then due again later. */
int webhook_turn(struct webhook *w, int64_t now_ms, struct err *err);

/* Calls webhook_turn on a thread of its own until webhook_free. */
int webhook_start(struct webhook *w, struct err *err);

#endif
