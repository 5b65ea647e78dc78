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

/* ---- tls.c: the certificate while the server runs, which can be read again for later connections ---- */

/* Uses a certificate chain and its key, PEM texts, for new connections; those before keep theirs. On failure the last
 * pair stays. ERR_USAGE: they cannot be read or do not match; ERR_UNSUPPORTED: built without GnuTLS. One thread. */
int tls_use(const char *cert, const char *key, struct err *err);

/* The library's callback (MHD_OPTION_HTTPS_CERT_CALLBACK) after a successful tls_use; NULL: built without GnuTLS. */
void *tls_callback(void);

void tls_done(void); /* after the server stopped */

#endif
