/* SPDX-License-Identifier: Apache-2.0 */
/* source.h: the data source of a command: a server by URL, the server that has the folder's store open, or the store
 * itself. The three answer the same requests. One thread. */
#ifndef DPT_CLI_SOURCE_H
#define DPT_CLI_SOURCE_H

#include "web/server/local.h"

struct source;

struct source_opts {
	const char *logdir;
	const char *url; /* NULL: use the folder */
	const char *db;	 /* NULL: DPTRACK_DB, or the folder's store; an address needs no logdir */
};

/* Sets *io_db from DPTRACK_DB unless --db has set it. ERR_USAGE: an invalid address, or an address with a password on
 * the command line, which every user of the machine can read. */
int source_place(const char **io_db, struct err *err);

/* ERR_USAGE: the folder does not exist. */
int source_folder(const char *logdir, struct err *err);

/* Opens a source; opens, scans and locks the store if no other process has it. ERR_USAGE: no such folder, or both url
 * and logdir are given. */
int source_open(struct source **ret, const struct source_opts *o, struct err *err);
void source_close(struct source *s); /* NULL is fine */

/* Sends a request and passes the body to the sink. A status other than 2xx becomes an error with the server's
 * message. */
int source_send(struct source *s, const struct local_opts *request, const struct local_sink *sink, struct err *err);

/* source_send with the reply parsed; the caller owns *ret (json_decref). */
int source_json(struct source *s, const struct local_opts *request, json_t **ret, struct err *err);

/* Appends "name=value" (value percent-encoded) to a target, with a leading ? or &; nothing for a value of NULL. */
void source_arg(struct buf *target, const char *name, const char *value);
void source_escape(struct buf *target, const char *text); /* appends one percent-encoded segment or value */

#endif
