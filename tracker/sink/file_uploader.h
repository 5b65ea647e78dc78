/* SPDX-License-Identifier: Apache-2.0 */
/* file_uploader.h: uploads files of a run to a server, where they become its artifacts, from a background thread. Files
 * that the server does not accept yet are retried after the others. They stay on disk and must not change until then.
 * Independent of journals. */
#ifndef DPT_SINK_FILE_UPLOADER_H
#define DPT_SINK_FILE_UPLOADER_H

#include <stddef.h>

#include "tracker/base/err.h"

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

#endif
