/* SPDX-License-Identifier: Apache-2.0 */
/* sender.h: sends one journal file to a server: POST /api/v1/runs/{run}/journal?writer=W&offset=N with a range of whole
 * records, from the server's durable offset on. Repeats are harmless. One thread. */
#ifndef DPT_SINK_SENDER_H
#define DPT_SINK_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/err.h"
#include "tracker/sink/http_client.h"

struct sender;

/* Texts are copied. The file is opened at each step, so that thousands of senders hold no descriptors. */
int sender_new(struct sender **ret, const char *path, const char *run_id, const char *writer_id, struct err *err);
void sender_free(struct sender *s); /* NULL is fine */

/* Sets the length of the file that may be sent; later bytes wait. */
void sender_limit(struct sender *s, uint64_t bytes);

uint64_t sender_durable(const struct sender *s); /* acknowledged bytes */

/* Returns how long the server asked to wait before the next request; SENDER_INTERVAL_S until it has. */
#define SENDER_INTERVAL_S 0.5
double sender_interval_s(const struct sender *s);

enum sender_step {
	SENDER_SENT,    /* the server's offset advanced, or it returned where to continue */
	SENDER_RETRY,   /* no answer, or a temporary refusal; err has the reason */
	SENDER_REFUSED, /* a refusal that a retry will not change soon (401, 404, …) */
	SENDER_LOCAL,   /* the file is unreadable, or has no whole record at the offset */
};

/* Makes one request. retry_after_s (may be NULL) receives the server's Retry-After, else 0. */
enum sender_step sender_step(struct sender *s, struct http *h, double deadline_s, double *retry_after_s,
			     struct err *err);

#endif
