/* SPDX-License-Identifier: Apache-2.0 */
/* sink.h: uploads to a server: journals while they grow, files of a run, and one journal at a time. */
#ifndef DPT_SINK_SINK_H
#define DPT_SINK_SINK_H

#include "tracker/sink/http_client.h"

/* ---- journal_uploader.c ----
 * Sends journals of a run to a server while they grow, from a background thread. The journal file is the spool: the
 * thread reads whole records from it, starting at the offset that the server has acknowledged. An outage of any length
 * costs no memory and loses nothing. */

struct journal_uploader;

struct journal_uploader_opts {
	const char *url;   /* http://host:port or https://…, with an optional path prefix */
	const char *token; /* NULL or "": none */
	const char *run_id;
	/* Reports the first failure and the recovery, as one line; from the uploader's thread, so it must not call the
	 * uploader. */
	void (*notice)(void *user, const char *text);
	void *user;
};

/* Starts the thread and loads libcurl. */
int journal_uploader_start(struct journal_uploader **ret, const struct journal_uploader_opts *opts, struct err *err);

/* Reports that this writer's journal has `bytes` bytes of whole records; a new path or writer id adds a journal. */
void journal_uploader_advance(struct journal_uploader *u, const char *path, const char *writer_id, uint64_t bytes);

/* Adds a journal of the run that another process wrote: the bytes that the server lacks are sent, except an incomplete
 * record at the end. */
void journal_uploader_adopt(struct journal_uploader *u, const char *path, const char *writer_id, uint64_t bytes);

/* Sends the rest for at most wait_s seconds, then frees u. Returns how many bytes the server has not acknowledged. */
uint64_t journal_uploader_stop(struct journal_uploader *u, double wait_s);

/* ---- file_uploader.c ----
 * Uploads files of a run to a server, where they become its artifacts, from a background thread. Files that the server
 * does not accept yet are retried after the others. They stay on disk and must not change until then. Independent of
 * journals. */

struct file_uploader;

struct file_uploader_opts {
	const char *url;   /* http://host:port or https://…, with an optional path prefix */
	const char *token; /* NULL or "": none */
	const char *run_id;
	/* Reports the first failure, or a file that is refused for good, as one line; from the uploader's thread. */
	void (*notice)(void *user, const char *text);
	void *user;
};

/* Starts the thread and loads libcurl. */
int file_uploader_start(struct file_uploader **ret, const struct file_uploader_opts *opts, struct err *err);

/* Queues the file at path, to become the artifact name. Texts are copied. 0 or ERR_NOMEM. */
int file_uploader_send(struct file_uploader *c, const char *path, const char *name);

/* Uploads the rest for at most wait_s seconds, then frees c (NULL is fine). Returns how many files the server lacks. */
size_t file_uploader_stop(struct file_uploader *c, double wait_s);

/* ---- sender.c ----
 * Sends one journal file to a server: POST /api/v1/runs/{run}/journal?writer=W&offset=N with a range of whole records,
 * from the server's durable offset on. Repeats are harmless. One thread. */

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
	SENDER_SENT,	/* the server's offset advanced, or it returned where to continue */
	SENDER_RETRY,	/* no answer, or a temporary refusal; err has the reason */
	SENDER_REFUSED, /* a refusal that a retry will not change soon (401, 404, …) */
	SENDER_LOCAL,	/* the file is unreadable, or has no whole record at the offset */
};

/* Makes one request. retry_after_s (may be NULL) receives the server's Retry-After, else 0. */
enum sender_step sender_step(struct sender *s, struct http *h, double deadline_s, double *retry_after_s,
			     struct err *err);

#endif
