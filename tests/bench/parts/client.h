/* SPDX-License-Identifier: Apache-2.0 */
/* client.h: shared by the benchmarks in C: a server on a fresh folder that is deleted afterwards, and cheap clients.
 * Any failure ends the program: a benchmark that continued would measure something else. */
#ifndef DPT_BENCH_CLIENT_H
#define DPT_BENCH_CLIENT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tracker/base/buf.h"
#include "tracker/event/event.h"

#define CLIENT_REPLY_MAX ((size_t)1 << 20)

void client_die(const char *what, const char *more) __attribute__((noreturn));

struct client_server {
	char build[PATH_MAX], folder[PATH_MAX]; /* the build folder; the runs folder */
	pid_t pid;
	int port, out;
};

/* self: argv[0], used if $builddir is not set. */
void client_find_build(struct client_server *s, const char *self);

/* A server of the folder. slow: 10 ms more in every fdatasync (tests/tracker/failio.la). */
void client_make_folder(struct client_server *s, const char *dir); /* a new one below dir */
void client_launch(struct client_server *s, bool slow);
void client_wait_line(struct client_server *s); /* the line with the port */
void client_serve(struct client_server *s, bool slow); /* both */
void client_end(struct client_server *s);
void client_remove_folder(struct client_server *s);

void client_start(struct client_server *s, const char *dir, bool slow); /* creates the folder, then starts the server */
void client_stop(struct client_server *s);                              /* stops the server, then deletes the folder */
double client_resident_mb(const struct client_server *s, bool highest);

struct client {
	const struct client_server *server;
	int fd, number;
	char run[40], reply[CLIENT_REPLY_MAX];
};

void client_connect(struct client *c, const struct client_server *s, int number);
void client_close(struct client *c);

/* Returns the body of the reply, in c->reply; body NULL: no request body. */
const char *client_request(struct client *c, const char *method, const char *path, const struct buf *body,
			   const char *type);

void client_make_run(struct client *c);          /* c->run */
uint64_t client_stored(struct client *c);        /* points of the run-level series of c->run */
uint64_t client_metric(struct client *c, const char *name); /* of /metrics; 0 if missing */

struct event_text client_text(const char *s);

/* Runs fn for each of n clients of this size in its own thread; returns the seconds that it took. */
double client_run_all(void *clients, size_t bytes, int n, void *(*fn)(void *arg));

int client_by_size(const void *x, const void *y); /* of doubles, for qsort */

#endif
