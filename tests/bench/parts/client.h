/* client.h: what the benchmarks in C share about a server: one started on a fresh folder and removed again, and clients
 * that cost it little. What fails ends the program: a benchmark that goes on would measure something else. */
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
	char build[PATH_MAX], folder[PATH_MAX]; /* where dptrack was built; the runs */
	pid_t pid;
	int port, out;
};

/* self: argv[0], unless $builddir says where the build is. */
void client_find_build(struct client_server *s, const char *self);

/* A server of the folder. slow: 10 ms more in every fdatasync (tests/tracker/failio.la). */
void client_make_folder(struct client_server *s, const char *dir); /* a new one below dir */
void client_launch(struct client_server *s, bool slow);
void client_wait_line(struct client_server *s); /* which names the port */
void client_serve(struct client_server *s, bool slow); /* both */
void client_end(struct client_server *s);
void client_remove_folder(struct client_server *s);

void client_start(struct client_server *s, const char *dir, bool slow); /* the folder, then it */
void client_stop(struct client_server *s);                              /* it, then the folder */
double client_resident_mb(const struct client_server *s, bool highest);

struct client {
	const struct client_server *server;
	int fd, number;
	char run[40], reply[CLIENT_REPLY_MAX];
};

void client_connect(struct client *c, const struct client_server *s, int number);
void client_close(struct client *c);

/* The body of the reply, in c->reply; body NULL: none. */
const char *client_request(struct client *c, const char *method, const char *path, const struct buf *body,
			   const char *type);

void client_make_run(struct client *c);          /* c->run */
uint64_t client_stored(struct client *c);        /* points of the run-level series of c->run */
uint64_t client_metric(struct client *c, const char *name); /* of /metrics; 0 when it is not there */

struct event_text client_text(const char *s);

/* Runs fn with each of n clients of so many bytes in a thread of its own; how many seconds it took. */
double client_run_all(void *clients, size_t bytes, int n, void *(*fn)(void *arg));

int client_by_size(const void *x, const void *y); /* of doubles, for qsort */

#endif
