/* sender.h: brings one journal file to a server: POST /api/v1/runs/{run}/journal?writer=W&offset=N with a range of
 * whole records, on from where the server says that it is durable. A repeat is harmless. One thread. */
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

/* How long the file is known to be; bytes beyond are left for later. */
void sender_limit(struct sender *s, uint64_t bytes);

uint64_t sender_durable(const struct sender *s); /* bytes that are acknowledged */

/* How long the server asked to wait before the next request; SENDER_INTERVAL_S before it said so. */
#define SENDER_INTERVAL_S 0.5
double sender_interval_s(const struct sender *s);

enum sender_step {
	SENDER_SENT,    /* the server's offset moved, or told where to go on */
	SENDER_RETRY,   /* no answer, or one that asks for patience; err says which */
	SENDER_REFUSED, /* an answer that a repeat will not change soon (401, 404, …) */
	SENDER_LOCAL,   /* the file cannot be read, or holds no whole record there */
};

/* One request. retry_after_s (may be NULL) gets what the server asked for, else 0. */
enum sender_step sender_step(struct sender *s, struct http *h, double deadline_s, double *retry_after_s,
			     struct err *err);

#endif
