/* file_uploader.h: brings files that are kept with a run to a server, where they are its artifacts, from a thread of its own.
 * What the server does not take yet is tried again, the others first; the files lie on disk meanwhile and must stay as
 * they are. Knows nothing of journals. */
#ifndef DPT_SINK_FILE_UPLOADER_H
#define DPT_SINK_FILE_UPLOADER_H

#include <stddef.h>

#include "tracker/base/err.h"

struct file_uploader;

struct file_uploader_opts {
	const char *url;   /* http://host:port or https://…, a path prefix allowed */
	const char *token; /* NULL or "": none */
	const char *run_id;
	/* Trouble begins, or a file is refused for good: one line; from the courier's thread. */
	void (*notice)(void *user, const char *text);
	void *user;
};

/* Starts the thread; libcurl is loaded here. */
int file_uploader_start(struct file_uploader **ret, const struct file_uploader_opts *opts, struct err *err);

/* The file at path becomes the artifact name. Texts are copied. 0 or ERR_NOMEM. */
int file_uploader_send(struct file_uploader *c, const char *path, const char *name);

/* Sends the rest for at most wait_s seconds, then frees c (NULL is fine). How many files the server lacks. */
size_t file_uploader_stop(struct file_uploader *c, double wait_s);

#endif
