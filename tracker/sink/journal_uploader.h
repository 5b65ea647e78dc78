/* journal_uploader.h: sends journals of a run to a server while they grow, from a thread of its own. The journal file is the
 * spool: the thread reads whole records back from it, behind the offset that the server has acknowledged, so that an
 * outage of any length costs no memory and loses nothing. */
#ifndef DPT_SINK_JOURNAL_UPLOADER_H
#define DPT_SINK_JOURNAL_UPLOADER_H

#include <stdint.h>

#include "tracker/base/err.h"

struct journal_uploader;

struct journal_uploader_opts {
	const char *url;   /* http://host:port or https://…, a path prefix allowed */
	const char *token; /* NULL or "": none */
	const char *run_id;
	/* Trouble begins, or ends: one line; from the uplink's thread, which must not be called from there. */
	void (*notice)(void *user, const char *text);
	void *user;
};

/* Starts the thread; libcurl is loaded here. */
int journal_uploader_start(struct journal_uploader **ret, const struct journal_uploader_opts *opts, struct err *err);

/* The journal of this writer id has so many bytes of whole records now; a new path or writer id is one more journal. */
void journal_uploader_advance(struct journal_uploader *u, const char *path, const char *writer_id, uint64_t bytes);

/* One more journal of the run, which another process wrote: what the server lacks of it is sent too, a torn tail left
 * out. */
void journal_uploader_adopt(struct journal_uploader *u, const char *path, const char *writer_id, uint64_t bytes);

/* Sends the rest for at most wait_s seconds, then frees u. Returns how many bytes the server has not acknowledged. */
uint64_t journal_uploader_stop(struct journal_uploader *u, double wait_s);

#endif
