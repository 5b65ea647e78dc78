/* SPDX-License-Identifier: Apache-2.0 */
/* listen.h: the listening socket and the certificate: everything that can fail before the folder is scanned. */
#ifndef DPT_SERVER_LISTEN_H
#define DPT_SERVER_LISTEN_H

#include <stdbool.h>

#include "tracker/base/err.h"
#include "web/server/server.h"

struct listen {
	int fd;            /* -1: closed */
	char address[300]; /* http://HOST:PORT or https:// */
	bool public;       /* reachable from other machines */
	bool wildcard;     /* bound to every address of this machine, whose names are unknown */
	char *cert, *key;  /* in PEM format, owned; NULL: no TLS */
};

/* Binds and reads the certificate. ERR_USAGE: the host is unknown, or is public and no token exists, or the certificate
 * cannot be read. ERR_BUSY: the port is in use. */
int listen_open(struct listen *ret, const struct server_opts *o, struct err *err);
/* Reads the files of the certificate and uses them for new connections. */
int listen_read_certificate(const struct server_opts *o, struct err *err);
void listen_close(struct listen *l);

#endif
