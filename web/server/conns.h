/* SPDX-License-Identifier: Apache-2.0 */
/* conns.h: the open connections and their deadlines. libmicrohttpd has an inactivity timer only, so a client that sends
 * one byte a second would keep its connection for ever. Here each connection must send its request head within 10 s,
 * and send its body and read its reply at 1 KiB/s or more. When few connections are left, the oldest without a complete
 * head are closed first. Closing is shutdown(2): the library then sees the end and cleans up. Any thread. */
#ifndef DPT_SERVER_CONNS_H
#define DPT_SERVER_CONNS_H

#include <stdbool.h>
#include <stddef.h>

struct conns;
struct conn;

enum conn_phase {
	CONN_FRESH, /* open, no complete head yet */
	CONN_IDLE,  /* between two requests */
	CONN_HEAD,  /* a later request has begun */
	CONN_BODY,
	CONN_BUSY,  /* the request is complete and the server answers it */
};

struct conns *conns_new(size_t limit); /* NULL: out of memory */
void conns_free(struct conns *t);      /* NULL is fine */

struct conn *conns_add(struct conns *t, int fd); /* NULL: out of memory */
void conns_remove(struct conns *t, struct conn *c); /* call before its fd is closed */
void conns_phase(struct conns *t, struct conn *c, enum conn_phase phase);
void conns_body(struct conns *t, struct conn *c, size_t bytes);

/* Closes connections that missed their deadline; call it every quarter of a second. */
void conns_tick(struct conns *t);
void conns_shutdown(struct conns *t, bool busy_too); /* those without a complete request head, or all */

#endif
