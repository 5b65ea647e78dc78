/* SPDX-License-Identifier: Apache-2.0 */
/* server.h: the HTTP server of a store. server_bind comes before the folder is scanned, so that a port that is in use
 * is reported at once; server_run starts answering. */
#ifndef DPT_SERVER_SERVER_H
#define DPT_SERVER_SERVER_H

#include "web/api/api.h"

struct server;

struct server_opts {
	const char *host;		      /* name or address */
	int port;			      /* 0: any free one */
	int max_connections;		      /* 0: 500 */
	const char *db_path, *artifacts_path; /* the sandbox limits the answering threads to these paths, if the kernel
					       * supports it */
	const char *logdir;		      /* a folder in which they may see file names; NULL: none */
	const char *tls_cert, *tls_key;	      /* PEM files; NULL: plain HTTP */
	bool behind_proxy;		      /* trust X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto */
	bool hsts;			      /* Strict-Transport-Security in replies over TLS */
	bool has_token;			      /* a token exists: addresses beyond loopback may be served */
};

/* ERR_USAGE: the host is unknown, or is reachable from other machines and no token exists, or the certificate is
 * invalid. ERR_BUSY: the port is in use. */
int server_bind(struct server **ret, const struct server_opts *o, struct err *err);

const char *server_address(const struct server *s); /* http://HOST:PORT or https:// */
bool server_public(const struct server *s);	    /* reachable from other machines */
struct api_counters *server_counters(struct server *s);

/* Starts answering. api must outlive the server. */
int server_run(struct server *s, const struct api *api, struct err *err);

/* Reads the certificate's files of o again, for connections that begin later. On failure the last one stays in use. */
int server_reload(const struct server_opts *o, struct err *err);

/* Writes one line if a certificate in use has expired or is not valid yet; "" otherwise. */
void server_tls_note(char *ret, size_t n);

/* Refuses new requests, lets running ones end (at most 10 s), ends event streams, then stops. NULL is fine. */
void server_stop(struct server *s);

#endif
