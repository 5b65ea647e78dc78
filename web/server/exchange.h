/* exchange.h: one request on its connection, from its first line to the end of its reply, and what all of a server's
 * requests share. Private to web/server; exchange.c, reply.c and stream.c work on it for libmicrohttpd, which http.c
 * starts. */
#ifndef DPT_SERVER_EXCHANGE_H
#define DPT_SERVER_EXCHANGE_H

#include <limits.h>
#include <microhttpd.h>
#include <pthread.h>
#include <semaphore.h>

#include "web/server/access.h"
#include "web/server/conns.h"
#include "web/server/gate.h"
#include "web/server/gzip.h"
#include "web/server/listen.h"

#define EXCHANGE_OUT_MAX ((size_t)1 << 30) /* of a reply in memory */

struct server {
	struct listen listen;
	char logdir[PATH_MAX];   /* the followed folder; "": none */
	char files[4][PATH_MAX]; /* the store's file, its two companions, the artifacts; "": not to be confined */
	struct access access;
	size_t max_connections;
	struct api api;
	struct api_counters counters;
	struct conns *conns;
	struct MHD_Daemon *daemon;
	pthread_t ticker;
	bool ticking;
	int watch;
	atomic_size_t bodies; /* bytes of request bodies held now */
	atomic_int in_flight; /* requests between their head and their end */
	atomic_bool changed, stopping, drained;
	sem_t news; /* something changed */
	pthread_mutex_t lock; /* streams and what they say of themselves */
	struct stream *streams;
};

enum wait_state { WAIT_RUNNING, WAIT_SUSPENDED, WAIT_WOKEN };

/* One request, from its first line to the end of its reply. */
struct exchange {
	struct call call;
	struct server *srv;
	struct MHD_Connection *conn;
	struct conn *slot;
	char *target;
	const char *target_at; /* in the library's buffer; see gate.h */
	struct gate_request req;
	struct gate_pass pass;
	struct gunzip *gunzip;
	struct buf body;
	size_t wire_bytes, held_bytes, discarded;
	unsigned allow; /* methods of the address, for Allow */
	unsigned tokens; /* generation when access was checked */
	bool begun, refused, close, waiting, options, streamed;
	bool stuck; /* body holds an inflated piece that its handler has no room for */
	bool cut; /* the reply went out while the body was still coming: nothing more may be sent */
	atomic_int wait;
};

/* The library's callbacks: the first line is there; the head, a piece of the body or its end is there (or a handler
 * that waited was woken); the request is over. */
void *exchange_open(void *server, const char *uri, struct MHD_Connection *conn);
enum MHD_Result exchange_go(void *server, struct MHD_Connection *conn, const char *url, const char *method,
			    const char *version, const char *data, size_t *size, void **con_cls);
void exchange_end(void *server, struct MHD_Connection *conn, void **con_cls, enum MHD_RequestTerminationCode why);

#endif
