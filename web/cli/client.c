/* client.c: a small HTTP/1.1 client. Knows nothing of the API. */
#include "web/cli/client.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tracker/base/buf.h"

enum { CLIENT_HEAD_MAX = 65536, CLIENT_TIMEOUT_S = 120 };

struct client {
	int fd;
	const char *url;
	struct buf in; /* received, not used yet */
	bool ended;
};

struct client_url {
	char host[256];
	char port[8];
	char prefix[512];
};

static int url_split(struct client_url *ret, const char *url, struct err *err)
{
	const char *at = url + 7, *end;
	size_t n;

	if (strncasecmp(url, "http://", 7))
		return err_set(err, ERR_USAGE, "--url %s: want http://HOST:PORT", url);
	n = strcspn(at, "/");
	end = at[0] == '[' ? memchr(at, ']', n) : NULL;
	if (at[0] == '[' && !end)
		return err_set(err, ERR_USAGE, "--url %s: ] is missing", url);
	if (end) {
		snprintf(ret->host, sizeof(ret->host), "%.*s", (int)(end - at - 1), at + 1);
		end++;
	} else {
		end = at + strcspn(at, ":/");
		snprintf(ret->host, sizeof(ret->host), "%.*s", (int)(end - at), at);
	}
	snprintf(ret->port, sizeof(ret->port), "80");
	if (*end == ':')
		snprintf(ret->port, sizeof(ret->port), "%.*s", (int)(at + n - end - 1), end + 1);
	snprintf(ret->prefix, sizeof(ret->prefix), "%s", at + n);
	n = strlen(ret->prefix);
	if (n && ret->prefix[n - 1] == '/')
		ret->prefix[n - 1] = '\0';
	return 0;
}

static int client_connect(struct client *c, const struct client_url *u, struct err *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found, *ai;
	struct timeval limit = { .tv_sec = CLIENT_TIMEOUT_S };
	int rc = getaddrinfo(u->host, u->port, &hints, &found), saved = 0;

	if (rc)
		return err_set(err, ERR_USAGE, "%s: %s", c->url, gai_strerror(rc));
	for (ai = found; ai && c->fd < 0; ai = ai->ai_next) {
		c->fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (c->fd < 0 || !connect(c->fd, ai->ai_addr, ai->ai_addrlen))
			continue;
		saved = errno;
		close(c->fd);
		c->fd = -1;
	}
	freeaddrinfo(found);
	if (c->fd < 0)
		return err_set(err, ERR_PEER, "no server answers at %s: %s", c->url, strerror(saved));
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	return 0;
}

static int client_send(struct client *c, const struct client_opts *o, const struct client_url *u, struct err *err)
{
	const char *body = o->request.body;
	struct buf out;
	size_t sent = 0;
	ssize_t n = 0;

	buf_init(&out, (size_t)64 << 20);
	buf_addf(&out, strchr(u->host, ':') ? "%s %s%s HTTP/1.1\r\nHost: [%s]:%s\r\n" : "%s %s%s HTTP/1.1\r\nHost: %s:%s\r\n",
		 o->request.method, u->prefix, o->request.target, u->host, u->port);
	if (o->token)
		buf_addf(&out, "Authorization: Bearer %s\r\n", o->token);
	if (body)
		buf_addf(&out, "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(body));
	buf_addf(&out, "User-Agent: dptrack\r\nConnection: close\r\n\r\n%s", body ? body : "");
	while (!buf_failed(&out) && sent < out.len) {
		n = send(c->fd, out.data + sent, out.len - sent, MSG_NOSIGNAL);
		if (n < 0)
			break;
		sent += (size_t)n;
	}
	buf_done(&out);
	return n < 0 ? err_set_errno(err, errno, "%s", c->url) : 0;
}

/* Reads more into c->in; ended is set at the end of the connection. */
static int client_more(struct client *c, struct err *err)
{
	char *at = buf_reserve(&c->in, 65536);
	ssize_t n = at ? recv(c->fd, at, 65536, 0) : -1;

	if (!at)
		return err_set(err, ERR_NOMEM, "out of memory");
	if (n < 0)
		return err_set(err, ERR_PEER, "%s: %s", c->url, errno == EAGAIN ? "no answer for 120 s" : strerror(errno));
	c->in.len += (size_t)n;
	c->in.data[c->in.len] = '\0';
	c->ended = n == 0;
	return 0;
}

static int broken(struct client *c, struct err *err)
{
	return err_set(err, ERR_PEER, "%s: the reply breaks off or is no HTTP", c->url);
}

/* Hands on n bytes as they come. */
static int client_pass(struct client *c, size_t n, const struct local_sink *sink, struct err *err)
{
	size_t k;
	int rc;

	while (n) {
		k = c->in.len < n ? c->in.len : n;
		if (k) {
			rc = sink->take(sink->arg, c->in.data, k, err);
			if (rc)
				return rc;
			buf_consume(&c->in, k);
			n -= k;
			continue;
		}
		rc = c->ended ? broken(c, err) : client_more(c, err);
		if (rc)
			return rc;
	}
	return 0;
}

static int client_chunks(struct client *c, const struct local_sink *sink, struct err *err)
{
	unsigned long n;
	char *end, *eol;
	int rc;

	for (;;) {
		eol = c->in.data ? memmem(c->in.data, c->in.len, "\r\n", 2) : NULL;
		if (!eol) {
			rc = c->ended ? broken(c, err) : client_more(c, err);
			if (rc)
				return rc;
			continue;
		}
		n = strtoul(c->in.data, &end, 16);
		if (end == c->in.data)
			return broken(c, err);
		buf_consume(&c->in, (size_t)(eol - c->in.data) + 2);
		if (!n)
			return 0;
		rc = client_pass(c, n, sink, err);
		while (!rc && c->in.len < 2)
			rc = c->ended ? broken(c, err) : client_more(c, err);
		if (rc)
			return rc;
		buf_consume(&c->in, 2);
	}
}

static int client_rest(struct client *c, const struct local_sink *sink, struct err *err)
{
	int rc = 0;

	while (!rc) {
		if (c->in.len) {
			rc = sink->take(sink->arg, c->in.data, c->in.len, err);
			buf_reset(&c->in);
		} else if (c->ended) {
			break;
		} else {
			rc = client_more(c, err);
		}
	}
	return rc;
}

static int client_reply(struct client *c, int *ret_status, const struct local_sink *sink, struct err *err)
{
	char *end = NULL, *length, *chunked;
	int rc;

	while (!end) {
		if (c->ended || c->in.len > CLIENT_HEAD_MAX)
			return broken(c, err);
		rc = client_more(c, err);
		if (rc)
			return rc;
		end = memmem(c->in.data, c->in.len, "\r\n\r\n", 4);
	}
	if (strncmp(c->in.data, "HTTP/1.", 7) || c->in.len < 13)
		return broken(c, err);
	*end = '\0';
	*ret_status = (int)strtol(c->in.data + 9, NULL, 10);
	length = strcasestr(c->in.data, "\r\nContent-Length:");
	chunked = strcasestr(c->in.data, "\r\nTransfer-Encoding: chunked");
	if (chunked) {
		buf_consume(&c->in, (size_t)(end - c->in.data) + 4);
		return client_chunks(c, sink, err);
	}
	if (length) {
		size_t n = strtoul(length + 17, NULL, 10);

		buf_consume(&c->in, (size_t)(end - c->in.data) + 4);
		return client_pass(c, n, sink, err);
	}
	buf_consume(&c->in, (size_t)(end - c->in.data) + 4);
	return client_rest(c, sink, err);
}

int client_request(const struct client_opts *o, int *ret_status, const struct local_sink *sink, struct err *err)
{
	struct client c = { .fd = -1, .url = o->url };
	struct client_url u;
	int rc;

	buf_init(&c.in, (size_t)256 << 20);
	rc = url_split(&u, o->url, err);
	if (!rc)
		rc = client_connect(&c, &u, err);
	if (!rc)
		rc = client_send(&c, o, &u, err);
	if (!rc)
		rc = client_reply(&c, ret_status, sink, err);
	if (c.fd >= 0)
		close(c.fd);
	buf_done(&c.in);
	return rc;
}
