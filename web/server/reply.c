/* reply.c: from what a handler left in its call to a response with its headers. */
#include "web/server/reply.h"

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#ifdef HAVE_GNUTLS
#include <gnutls/gnutls.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "web/server/stream.h"
#include "web/server/router.h"

enum { REPLY_GZIP_MIN = 1024, REPLY_FILE_BLOCK_BYTES = 65536 };

static const char page_csp[] = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
			       "media-src 'self'; frame-src 'self'; "
			       "connect-src 'self'; font-src 'self'; worker-src 'self'; manifest-src 'self'; "
			       "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
static const char data_csp[] = "default-src 'none'; frame-ancestors 'none'; sandbox";

static bool compressible(const char *type)
{
	return !strncmp(type, "application/json", 16) || !strncmp(type, "text/", 5) ||
	       !strncmp(type, "application/x-ndjson", 20);
}

static void reply_headers(struct exchange *x, struct MHD_Response *r)
{
	struct call *c = &x->call;
	char text[64];

	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
	MHD_add_response_header(r, "Cross-Origin-Opener-Policy", "same-origin");
	MHD_add_response_header(r, "X-Frame-Options", c->framed ? "SAMEORIGIN" : "DENY");
	MHD_add_response_header(r, "Content-Security-Policy", c->csp ? c->csp : c->page ? page_csp : data_csp);
	MHD_add_response_header(r, "Cache-Control", c->cache ? c->cache : "no-cache");
	if (c->status != MHD_HTTP_NO_CONTENT)
		MHD_add_response_header(r, "Content-Type", c->type);
	if (compressible(c->type))
		MHD_add_response_header(r, "Vary", "Accept-Encoding");
	if (c->etag)
		MHD_add_response_header(r, "ETag", c->etag);
	if (c->disposition)
		MHD_add_response_header(r, "Content-Disposition", c->disposition);
	if (c->location)
		MHD_add_response_header(r, "Location", c->location);
	if (c->cookie)
		MHD_add_response_header(r, "Set-Cookie", c->cookie);
	for (size_t i = 0; i < c->header_count; i++)
		MHD_add_response_header(r, c->headers[i].name, c->headers[i].value);
	if (c->retry_after_s) {
		snprintf(text, sizeof(text), "%d", c->retry_after_s);
		MHD_add_response_header(r, "Retry-After", text);
	}
	if (x->options || c->status == MHD_HTTP_METHOD_NOT_ALLOWED) {
		router_allow(x->allow, text);
		MHD_add_response_header(r, "Allow", text);
	}
	if (c->status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(r, "WWW-Authenticate", access_browser(&x->req) ? "Bearer realm=\"dptrack\"" :
					"Basic realm=\"dptrack\", charset=\"UTF-8\"");
	if (x->close || atomic_load(&x->srv->stopping) || atomic_load(&x->srv->counters.draining))
		MHD_add_response_header(r, "Connection", "close");
}

static struct MHD_Response *reply_buffered(struct exchange *x, bool gzip)
{
	struct call *c = &x->call;
	struct gzip *z = gzip ? gzip_new(1) : NULL;
	struct MHD_Response *r;
	struct buf packed;
	char *data;
	size_t n;

	buf_init(&packed, EXCHANGE_OUT_MAX);
	if (z && gzip_feed(z, c->out.data, c->out.len, true, &packed)) {
		buf_done(&c->out);
		c->out = packed;
	} else {
		buf_done(&packed);
		gzip = false;
	}
	gzip_free(z);
	data = buf_take(&c->out, &n);
	if (!data)
		return NULL;
	r = MHD_create_response_from_buffer(n, data, MHD_RESPMEM_MUST_FREE);
	if (!r)
		free(data);
	else if (gzip)
		MHD_add_response_header(r, "Content-Encoding", "gzip");
	return r;
}

static ssize_t read_nothing(void *cls, uint64_t pos, char *to, size_t max)
{
	(void)cls;
	(void)pos;
	(void)to;
	(void)max;
	return MHD_CONTENT_READER_END_OF_STREAM;
}

struct part { /* of a file, on its way out */
	int fd;
	uint64_t from;
};

static ssize_t part_read(void *cls, uint64_t pos, char *to, size_t max)
{
	const struct part *p = cls;
	ssize_t n;

	do
		n = pread(p->fd, to, max, (off_t)(p->from + pos));
	while (n < 0 && errno == EINTR);
	return n > 0 ? n : MHD_CONTENT_READER_END_WITH_ERROR; /* it is shorter than it was */
}

static void part_free(void *cls)
{
	struct part *p = cls;

	close(p->fd);
	free(p);
}

/* Not as the library does it, given the file: a signal that stops the process cuts its sendfile short, which it takes
 * for a full socket, and the reply stands still for ever. */
static struct MHD_Response *reply_file(const struct call_file *f)
{
	struct part *p = malloc(sizeof *p);
	struct MHD_Response *r;

	if (!p)
		return NULL;
	*p = (struct part){ fcntl(f->fd, F_DUPFD_CLOEXEC, 0), f->from };
	r = p->fd < 0 ? NULL
		      : MHD_create_response_from_callback(f->bytes, REPLY_FILE_BLOCK_BYTES, part_read, p, part_free);
	if (!r && p->fd >= 0)
		close(p->fd);
	if (!r)
		free(p);
	return r;
}

static struct MHD_Response *reply_body(struct exchange *x)
{
	struct call *c = &x->call;
	bool gzip = c->accepts_gzip && compressible(c->type);
	struct MHD_Response *r;

	if (c->stream.fill && x->pass.verb == VERB_HEAD) {
		uint64_t bytes = c->stream.sized ? c->stream.bytes : MHD_SIZE_UNKNOWN;

		c->stream.release(c->stream.state);
		c->stream = (struct call_stream){ 0 };
		return MHD_create_response_from_callback(bytes, REPLY_GZIP_MIN, read_nothing, NULL, NULL);
	}
	if (c->stream.fill)
		return stream_response(x, gzip && !c->stream.events && !c->stream.sized);
	if (c->file.set)
		return reply_file(&c->file);
	if (c->fixed) {
		r = MHD_create_response_from_buffer(c->fixed_len, (void *)(uintptr_t)c->fixed, MHD_RESPMEM_PERSISTENT);
		if (r && c->fixed_gzip)
			MHD_add_response_header(r, "Content-Encoding", "gzip");
		return r;
	}
	return reply_buffered(x, gzip && c->out.len >= REPLY_GZIP_MIN);
}

/* The same bytes get the same tag, compressed or not. */
static void reply_tag(struct call *c)
{
	uint64_t h = 14695981039346656037u; /* FNV-1a */
	size_t i;

	for (i = 0; i < c->out.len; i++)
		h = (h ^ (unsigned char)c->out.data[i]) * 1099511628211u;
	c->etag = arena_printf(c->arena, "W/\"%016llx-%zx\"", (unsigned long long)h, c->out.len);
}

static bool reply_unchanged(struct exchange *x)
{
	const char *have = x->call.host->header(&x->call, "If-None-Match");
	const char *tag = x->call.etag;

	/* the comparison is the weak one */
	return have && tag && (!strcmp(have, "*") || strstr(have, tag + (tag[0] == 'W' ? 2 : 0)));
}

/* Event streams hold their connections for hours: half of the places stay free for requests. */
static void limit_streams(struct exchange *x)
{
	if (!x->call.stream.events || x->srv->counters.streams < x->srv->max_connections / 2)
		return;
	x->call.retry_after_s = 5;
	call_fail(&x->call, CALL_busy, NULL, "too many event streams; ask /changes instead");
}

enum MHD_Result reply_send(struct exchange *x)
{
	struct call *c = &x->call;
	struct MHD_Response *r;
	enum MHD_Result ok;

	if (buf_failed(&c->out) && !c->fixed && !c->stream.fill)
		call_fail(c, CALL_busy, NULL, "the reply does not fit into memory: ask for less");
	if (x->pass.method == METHOD_GET && c->status == 200 && !c->stream.fill && !c->file.set && !c->etag &&
	    !c->cache && !x->refused && !x->options)
		reply_tag(c);
	if (c->status == 200 && !x->refused && x->pass.method == METHOD_GET && reply_unchanged(x)) {
		c->status = MHD_HTTP_NOT_MODIFIED;
		c->fixed = NULL;
		c->fixed_gzip = false;
		if (c->stream.fill)
			c->stream.release(c->stream.state);
		c->stream = (struct call_stream){ 0 };
		c->file.set = false;
		buf_reset(&c->out);
	}
	limit_streams(x);
	r = reply_body(x);
	if (!r)
		return MHD_NO;
	reply_headers(x, r);
	atomic_fetch_add(&x->srv->counters.by_class[c->status / 100 % 6], 1);
	ok = MHD_queue_response(x->conn, (unsigned)c->status, r);
	MHD_destroy_response(r);
	return ok;
}

static enum MHD_Result add_line(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
	(void)kind;
	buf_addf(cls, "%s: %s\r\n", name, value);
	return MHD_YES;
}

static struct buf reply_text(struct exchange *x, struct MHD_Response *headers)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	buf_addf(&text, "HTTP/1.1 %d %s\r\n", x->call.status, MHD_get_reason_phrase_for((unsigned)x->call.status));
	MHD_get_response_headers(headers, add_line, &text);
	buf_addf(&text, "Content-Length: %zu\r\n\r\n", x->call.out.len);
	if (x->call.out.len)
		buf_add(&text, x->call.out.data, x->call.out.len);
	return text;
}

/* Past the library, on the thread that it uses the connection from. A fresh connection has room for so little; who gets
 * none of it sees the end. Over TLS the library says that nothing more follows, when it closes. */
static bool send_last(struct exchange *x, const struct buf *text)
{
	const enum MHD_ConnectionInfoType what =
		x->srv->listen.cert ? MHD_CONNECTION_INFO_GNUTLS_SESSION : MHD_CONNECTION_INFO_CONNECTION_FD;
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(x->conn, what);

	if (!info || buf_failed(text))
		return false;
#ifdef HAVE_GNUTLS
	if (x->srv->listen.cert)
		return gnutls_record_send(info->tls_session, text->data, text->len) == (ssize_t)text->len;
#endif
	if (send(info->connect_fd, text->data, text->len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)text->len)
		return false;
	shutdown(info->connect_fd, SHUT_WR);
	return true;
}

static bool can_cut(const struct exchange *x)
{
#ifdef HAVE_GNUTLS
	(void)x;
	return true;
#else
	return !x->srv->listen.cert;
#endif
}

/* The library takes a response before the body or behind it, not in the middle: this one goes past it. */
bool reply_cut(struct exchange *x)
{
	struct MHD_Response *r = can_cut(x) ? MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT) : NULL;
	struct buf text;

	if (!r)
		return false;
	x->close = true;
	reply_headers(x, r);
	text = reply_text(x, r);
	MHD_destroy_response(r);
	x->cut = send_last(x, &text);
	buf_done(&text);
	atomic_fetch_add(&x->srv->counters.by_class[x->call.status / 100 % 6], 1);
	return x->cut;
}
