/* conns.h: the open connections and their deadlines. The HTTP library has an inactivity timer only, so a client that
 * drips one byte a second would keep its place for ever; here each connection must finish its request head within
 * 10 s, send its body and take its reply at 1 KiB/s, and when places grow scarce the oldest without a whole head go
 * first. Closing is shutdown(2): the library then sees the end and cleans up. Any thread. */
#ifndef DPT_SERVER_CONNS_H
#define DPT_SERVER_CONNS_H

#include <stdbool.h>
#include <stddef.h>

struct conns;
struct conn;

enum conn_phase {
	CONN_FRESH, /* open, nothing complete yet */
	CONN_IDLE,  /* between two requests */
	CONN_HEAD,  /* a later request has begun */
	CONN_BODY,
	CONN_BUSY,  /* the request is complete: ours to answer */
};

struct conns *conns_new(size_t limit); /* NULL: out of memory */
void conns_free(struct conns *t);      /* NULL is fine */

struct conn *conns_add(struct conns *t, int fd); /* NULL: out of memory */
void conns_remove(struct conns *t, struct conn *c); /* before its fd is closed */
void conns_phase(struct conns *t, struct conn *c, enum conn_phase phase);
void conns_body(struct conns *t, struct conn *c, size_t bytes);

/* Closes what has overstayed; call it every quarter of a second. */
void conns_tick(struct conns *t);
void conns_shutdown(struct conns *t, bool busy_too); /* those without a whole request head, or all */

#endif
