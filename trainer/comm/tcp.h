/* SPDX-License-Identifier: Apache-2.0 */
/* tcp.h: TCP connections between the machines of a job: listening, connecting, and complete transfers with a deadline.
 * Sockets are non-blocking and close-on-exec. Does not know the peers or the contents. */
#ifndef DPT_COMM_TCP_H
#define DPT_COMM_TCP_H

#include <stddef.h>

#include "tracker/base/err.h"

#define TCP_NAME_BYTES 64

/* Listens at an address of this machine; port 0: any free one. ERR_NOENT: host is not this machine's, ERR_EXISTS: the
 * port is in use, ERR_USAGE: host is unknown. */
int tcp_listen(const char *host, int port, int *ret_fd, struct err *err);
int tcp_port(int fd); /* of a listener; 0: unknown */

/* Tries once to connect. ERR_USAGE: host is unknown; ERR_PEER: no answer. */
int tcp_connect(const char *host, int port, double until_s, int *ret_fd, struct err *err);
int tcp_accept(int listener); /* negative: no connection is waiting */

/* Transfers all n bytes, or ERR_PEER: the other end has gone (errno text or "closed"), or until_s (clock_mono_s) has
 * passed. */
int tcp_send(int fd, const void *bytes, size_t n, double until_s, struct err *err);
int tcp_recv(int fd, void *bytes, size_t n, double until_s, struct err *err);

/* The numeric address of this end, and of the other one; "": unknown. */
void tcp_own_name(int fd, char ret[TCP_NAME_BYTES]);
void tcp_peer_name(int fd, char ret[TCP_NAME_BYTES]);

/* The network interface with this numeric address; "": unknown. */
void tcp_interface(const char *address, char *ret, size_t n);

#endif
