/* SPDX-License-Identifier: Apache-2.0 */
/* journal_uploader.h: sends journals of a run to a server while they grow, from a background thread. The journal file
 * is the spool: the thread reads whole records from it, starting at the offset that the server has acknowledged. An
 * outage of any length costs no memory and loses nothing. */
#ifndef DPT_SINK_JOURNAL_UPLOADER_H
#define DPT_SINK_JOURNAL_UPLOADER_H

#include <stdint.h>

#include "tracker/base/err.h"

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

#endif
