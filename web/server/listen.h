/* listen.h: the listening socket and the certificate: all that can be refused before the folder is scanned. */
#ifndef DPT_SERVER_LISTEN_H
#define DPT_SERVER_LISTEN_H

#include <stdbool.h>

#include "tracker/base/err.h"
#include "web/server/server.h"

struct listen {
	int fd;            /* -1: none */
	char address[300]; /* http://HOST:PORT or https:// */
	bool public;       /* other machines can reach it */
	bool wildcard;     /* every address of this machine: which names it has cannot be known */
	char *cert, *key;  /* PEM texts; NULL: no TLS */
};

/* ERR_USAGE: the host is unknown, or is public and nobody has a token, or the certificate cannot be read. ERR_BUSY:
 * the port is taken. */
int listen_open(struct listen *ret, const struct server_opts *o, struct err *err);
void listen_close(struct listen *l);

#endif
