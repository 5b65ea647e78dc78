/* SPDX-License-Identifier: Apache-2.0 */
/* http_client.h: an HTTP client for one server: persistent connection, bearer token, gzip'd bodies, deadlines. Follows
 * no redirects. Independent of journals. One thread at a time, except for http_cancel. */
#ifndef DPT_SINK_HTTP_CLIENT_H
#define DPT_SINK_HTTP_CLIENT_H

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

struct http;

struct http_request {
	const char *method; /* "GET", "POST", … */
	const char *path;   /* appended to the server's URL; begins with '/', already escaped */
	const void *body;   /* NULL: none */
	size_t body_bytes;
	const char *content_type;   /* of the body; NULL: application/octet-stream */
	const char *const *headers; /* whole lines, terminated by NULL; NULL: none */
	bool gzip;		    /* compress the body */
	double deadline_s;	    /* on clock_mono_s's clock; 0: only the limit for a stalled connection (30 s) */
	/* NULL: the reply's body is collected in reply.body (64 MiB at most). Otherwise called for each piece of a 2xx
	 * reply; a nonzero return ends the transfer. */
	int (*piece)(void *user, const void *bytes, size_t n);
	void *user;
};

struct http_reply {
	long status;
	struct buf body;
	double retry_after_s; /* 0: not sent by the server */
	int64_t date_s;	      /* the server's clock, seconds since 1970; 0: not sent */
};

/* url: http://host[:port][/prefix] or https://…; token NULL or "": none. The file in DPTRACK_CA (PEM) replaces the
 * system's certificates. */
int http_open(struct http **ret, const char *url, const char *token, struct err *err);

#define HTTP_TOKEN_BYTES 256

/* The token for a server: that of DPTRACK_TOKEN, else the one that `dptrack login` has stored for this url. Returns
 * "" if there is no token; ret has room for a stored one. */
const char *http_token(const char *url, char ret[HTTP_TOKEN_BYTES]);

/* The file of stored tokens, lines of "TOKEN URL" without a slash at the end. Returns false without a home folder. */
bool http_token_file(char *path, size_t n);

/* Accepts any certificate, for a server that is known to be this user's own. */
void http_trust(struct http *h);

/* Omits the path from messages, for an address whose path is a password. */
void http_hide_path(struct http *h);
void http_close(struct http *h);	    /* NULL is fine */
const char *http_url(const struct http *h); /* for messages: without user and password */

/* Returns 0 for any reply, whatever its status: *ret is filled, http_reply_done frees it. ERR_PEER: no reply, err has
 * the reason; ERR_CANCELED: http_cancel or the deadline. */
int http_send(struct http *h, const struct http_request *req, struct http_reply *ret, struct err *err);
void http_reply_done(struct http_reply *reply);

/* Ends the current request and refuses later ones. Any thread. */
void http_cancel(struct http *h);

/* Appends text to a request's path; escapes special characters except slashes. */
void http_add_path(struct buf *path, const char *text);

/* Extracts one line of text from a reply that is not 2xx: its error.message if the body has one, else the status. */
void http_reply_reason(const struct http_reply *reply, char *to, size_t cap);

#endif
