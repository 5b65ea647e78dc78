/* webhook.h: posts what alerts found to one address that whoever starts the server names, signed, again and again until
 * it is taken. Its thread stands outside the walls of those that answer requests; without it nobody is connected to. */
#ifndef DPT_WEBHOOK_WEBHOOK_H
#define DPT_WEBHOOK_WEBHOOK_H

#include <stdint.h>

#include "tracker/base/err.h"

struct store;
struct webhook;

/* url: http:// or https://. secret_file: its first line is the key of HMAC-SHA256 (16 characters or more).
 * ERR_USAGE: either is of no use. */
int webhook_new(struct webhook **ret, struct store *s, const char *url, const char *secret_file, struct err *err);
void webhook_free(struct webhook *w); /* NULL is fine */

/* Posts what is due now; 0 also when the receiver does not take it, then it is due again later. */
int webhook_turn(struct webhook *w, int64_t now_ms, struct err *err);

/* Takes turns on a thread of its own until webhook_free. */
int webhook_start(struct webhook *w, struct err *err);

#endif
