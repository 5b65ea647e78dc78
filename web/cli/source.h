/* source.h: where a command gets its answers: a server by URL, the server that holds the folder's store, or the
 * store itself. The three answer the same requests. One thread. */
#ifndef DPT_CLI_SOURCE_H
#define DPT_CLI_SOURCE_H

#include <jansson.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"
#include "web/server/local.h"

struct source;

struct source_opts {
	const char *logdir;
	const char *url; /* NULL: the folder */
	const char *db;  /* NULL: DPTRACK_DB, or where the folder's store is; an address needs no logdir */
};

/* Fills *io_db from DPTRACK_DB unless --db filled it. ERR_USAGE: it is an address that cannot be understood, or one on
 * the command line that holds a password, which every user of the machine can read there. */
int source_place(const char **io_db, struct err *err);

/* ERR_USAGE: there is no such folder. */
int source_folder(const char *logdir, struct err *err);

/* ERR_USAGE: no such folder; both named. Opens, scans and holds the store when nobody else does. */
int source_open(struct source **ret, const struct source_opts *o, struct err *err);
void source_close(struct source *s); /* NULL is fine */

/* Sends a request and hands the body on; a status other than 2xx becomes an error with the server's own message. */
int source_send(struct source *s, const struct local_opts *request, const struct local_sink *sink, struct err *err);

/* The same, parsed; the caller's (json_decref). */
int source_json(struct source *s, const struct local_opts *request, json_t **ret, struct err *err);

/* Appends "name=value" (value percent-encoded) to a target, with ? or & before it. */
void source_arg(struct buf *target, const char *name, const char *value);
void source_escape(struct buf *target, const char *text); /* appends one percent-encoded segment or value */

#endif
