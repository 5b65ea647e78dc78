/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h: one request on its connection, from its first line to the end of its reply, and the state that all
 * requests of a server share. Private to web/server. exchange.c, reply.c and stream.c implement the callbacks of
 * libmicrohttpd, which http.c starts. */
#ifndef DPT_SERVER_EXCHANGE_H
#define DPT_SERVER_EXCHANGE_H

#include <microhttpd.h>
#include <pthread.h>

#include "web/server/access.h"
#include "web/server/gzip.h"
#include "web/server/server.h"
#include "web/store/base/background_job.h"

/* ---- conns.c ----
 * The open connections and their deadlines. libmicrohttpd has an inactivity timer only, so a client that sends one byte
 * a second would keep its connection for ever. Here each connection must send its request head within 10 s, and send
 * its body and read its reply at 1 KiB/s or more; a refused body is read for 5 s. When few places are left, refused
 * bodies are closed first, then the worst connection of the client with the most that wait for it: a client is a token,
 * or an address without one. The last eighth of the places is for /health and /ready. Closing is shutdown(2): the
 * library then sees the end and cleans up. Any thread. */

struct conns;
struct conn;

enum conn_phase {
	CONN_FRESH, /* open, no complete head yet */
	CONN_IDLE,  /* between two requests */
	CONN_HEAD,  /* a later request has begun */
	CONN_BODY,
	CONN_REFUSED, /* a body is read and dropped */
	CONN_BUSY, /* the request is complete and the server answers it */
};

struct conns *conns_new(size_t limit);
void conns_free(struct conns *t);      /* NULL is fine */

struct conn *conns_add(struct conns *t, int fd, uint64_t client);
void conns_client(struct conns *t, struct conn *c, uint64_t client); /* whose request it is */
/* Turns a reserved place into an ordinary one, if need be that of a request that is not complete. Returns false if the
 * others are all of use. */
bool conns_claim(struct conns *t, struct conn *c);
void conns_remove(struct conns *t, struct conn *c); /* call before its fd is closed */
void conns_phase(struct conns *t, struct conn *c, enum conn_phase phase);
void conns_body(struct conns *t, struct conn *c, size_t bytes);

/* Closes connections that missed their deadline; call it every quarter of a second. */
void conns_tick(struct conns *t);
void conns_shutdown(struct conns *t, bool busy_too); /* those without a complete request head, or all */

/* ---- framing.c ----
 * The framing of bodies in chunks, of which the library accepts more than it should. Called on the connection's worker
 * for a connection's begin and end and for each request that begins. */

void framing_begin(int fd, bool tls);
void framing_end(int fd); /* call before fd is closed */
void framing_open(int fd);

/* Returns true if all that the library has read of the connection is well framed; complete: and the request that was
 * opened last has ended. */
bool framing_good(int fd, bool complete);

/* ---- listen.c ----
 * The listening socket and the certificate: everything that can fail before the folder is scanned. */

struct listen {
	int fd;		   /* -1: closed */
	char address[300]; /* http://HOST:PORT or https:// */
	bool hsts;	   /* replies over TLS bind browsers to it */
	bool public;	   /* reachable from other machines */
	bool wildcard;	   /* bound to every address of this machine, whose names are unknown */
	char *cert, *key;  /* in PEM format, owned; NULL: no TLS */
};

/* Binds and reads the certificate. ERR_USAGE: the host is unknown, or is public and no token exists, or the certificate
 * cannot be read. ERR_BUSY: the port is in use. */
int listen_open(struct listen *ret, const struct server_opts *o, struct err *err);
/* Reads the files of the certificate and uses them for new connections. */
int listen_read_certificate(const struct server_opts *o, struct err *err);
void listen_close(struct listen *l);

/* ---- tls.c: the certificate while the server runs, which can be read again for later connections ---- */

/* Uses a certificate chain and its key, PEM texts, for new connections; those before keep theirs. On failure the last
 * pair stays. ERR_USAGE: they cannot be read or do not match; ERR_UNSUPPORTED: built without GnuTLS. One thread. */
int tls_use(const char *cert, const char *key, struct err *err);

/* Writes one line if a certificate in use has expired or is not valid yet; "" otherwise. */
void tls_note(char *ret, size_t n);

/* The library's callback (MHD_OPTION_HTTPS_CERT_CALLBACK) after a successful tls_use; NULL: built without GnuTLS. */
void *tls_callback(void);

void tls_done(void); /* after the server stopped */

/* ---- exchange.c ---- */

#define EXCHANGE_OUT_MAX ((size_t)1 << 30) /* maximum of a reply in memory */

struct server {
	struct listen listen;
	char logdir[PATH_MAX];	 /* the followed folder; "": none */
	char files[4][PATH_MAX]; /* the database file, its two companions, the artifacts; "": no sandbox */
	struct access access;
	size_t max_connections;
	struct api api;
	struct api_counters counters;
	struct conns *conns;
	struct MHD_Daemon *daemon;
	pthread_t ticker;
	bool ticking;
	int watch;
	struct thread_pool *pool; /* runs the handlers, so that no request delays another one of its worker */
	atomic_size_t bodies;	  /* bytes of request bodies in memory */
	atomic_size_t replies;	  /* of replies */
	atomic_int in_flight; /* requests that have begun and not ended */
	atomic_bool changed, stopping, drained;
	atomic_bool hurry; /* stopping: calls that have not begun are refused */
	pthread_mutex_t news_lock;
	pthread_cond_t news;  /* signalled when the store changed */
	pthread_mutex_t lock; /* protects streams and their state */
	struct reply_stream *streams;
};

enum wait_state { WAIT_RUNNING, WAIT_SUSPENDED, WAIT_WOKEN };

struct exchange {
	struct call call;
	struct server *srv;
	struct MHD_Connection *conn;
	struct conn *slot;
	int fd;
	char *target;
	const char *target_at; /* the same text in the library's buffer; see gate.h */
	struct gate_request req;
	struct gate_pass pass;
	struct gunzip *gunzip;
	struct buf body;
	size_t wire_bytes, held_bytes, reply_bytes, discarded;
	unsigned allow;	 /* bit for each method of the address, for the Allow header */
	unsigned tokens; /* token generation when access was checked */
	bool begun, refused, close, waiting, options, streamed;
	bool stuck; /* body holds an inflated piece that the handler has no room for yet */
	bool cut;   /* the reply was sent while the body was still arriving: nothing more may be sent */
	bool pooled; /* the handler runs on the pool; then the reply is in `response` (NULL: no memory) */
	atomic_int wait;
	struct thread_pool_task task;
	struct MHD_Response *response; /* made, not queued */
};

/* Callbacks of libmicrohttpd. exchange_open: the first line arrived. exchange_go: the head, a piece of the body or its
 * end arrived, or a suspended handler was woken. exchange_end: the request is over. */
void *exchange_open(void *server, const char *uri, struct MHD_Connection *conn);
enum MHD_Result exchange_go(void *server, struct MHD_Connection *conn, const char *url, const char *method,
			    const char *version, const char *data, size_t *size, void **con_cls);
void exchange_end(void *server, struct MHD_Connection *conn, void **con_cls, enum MHD_RequestTerminationCode why);

/* ---- reply.c: sends the reply of a call on its connection ---- */

/* Makes the reply: x->response, NULL when the library has no memory. Any thread. */
void reply_make(struct exchange *x);

/* Queues the reply that was made, on the connection's thread. MHD_NO, which closes the connection: none was made. */
enum MHD_Result reply_queue(struct exchange *x);

enum MHD_Result reply_send(struct exchange *x); /* both */

/* Sends the reply of a failed call while its body is still arriving, so that a client that sends for hours learns of
 * the failure at once. Afterwards the connection may only be read, and is then closed. Returns false if this is not
 * possible (TLS without GnuTLS, socket buffer full). */
bool reply_cut(struct exchange *x);

/* ---- stream.c: replies that are produced piece by piece, on the pool ---- */

/* Makes a response of the call's stream and takes the stream over in every case. NULL: the library has no memory. */
struct MHD_Response *stream_response(struct exchange *x, bool gzip);

enum { STREAM_NUDGE_ALL = 1, STREAM_NUDGE_PROBE = 2 };

/* Wakes event streams: all of them after a change (ALL), else those whose heartbeat is due or (PROBE) whose client has
 * left. Any thread. */
void stream_nudge(struct server *s, int how);

#endif
