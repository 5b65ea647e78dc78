/* server.h: the HTTP server over a store. Binding comes first, so that a taken port is told before the folder is
 * scanned; requests are answered from server_run on. */
#ifndef DPT_SERVER_SERVER_H
#define DPT_SERVER_SERVER_H

#include <stdbool.h>

#include "tracker/base/err.h"
#include "web/api/api.h"

struct server;

struct server_opts {
	const char *host;        /* name or address */
	int port;                /* 0: any free one */
	int max_connections;     /* 0: 500 */
	const char *db_path, *artifacts_path; /* all that answering threads may open, where the kernel can see to it */
	const char *logdir;      /* whose names they may see; NULL: none */
	const char *tls_cert, *tls_key; /* PEM files; NULL: plain HTTP */
	bool behind_proxy;       /* X-Forwarded-Host and X-Forwarded-Proto are believed */
	bool has_token;          /* somebody has one: addresses beyond loopback may be served */
};

/* ERR_USAGE: the host is unknown, or other machines can reach it and nobody has a token, or the certificate is no good.
 * ERR_BUSY: the port is taken. */
int server_bind(struct server **ret, const struct server_opts *o, struct err *err);

const char *server_address(const struct server *s); /* http://HOST:PORT or https:// */
bool server_public(const struct server *s);         /* other machines can reach it */
struct api_counters *server_counters(struct server *s);

/* Starts answering. api outlives the server. */
int server_run(struct server *s, const struct api *api, struct err *err);

/* Refuses what is new, lets what was begun end (at most 10 s), ends event streams, stops. NULL is fine. */
void server_stop(struct server *s);

#endif
