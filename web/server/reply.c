/* SPDX-License-Identifier: Apache-2.0 */
/* reply.c: turns the result of a handler (struct call) into an HTTP response with its headers, and the error pages of
 * libmicrohttpd into JSON. */
#include "web/server/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config.h"
#include "tracker/base/hash.h"
#include "tracker/mem/mem.h"
#include "web/server/override.h"

#ifdef HAVE_GNUTLS
#include <gnutls/gnutls.h>
#endif

enum { REPLY_GZIP_MIN = 1024, REPLY_FILE_BLOCK_BYTES = 65536 };

static const char page_csp[] = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
			       "media-src 'self'; frame-src 'self'; "
			       "connect-src 'self'; font-src 'self'; worker-src 'self'; manifest-src 'self'; "
			       "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
static const char data_csp[] = "default-src 'none'; frame-ancestors 'none'; sandbox";

static bool is_compressible(const char *type)
{
	return !strncmp(type, "application/json", 16) || !strncmp(type, "text/", 5) ||
	       !strncmp(type, "application/x-ndjson", 20);
}

/* Adds the headers that every reply has, then those that the call asks for. */
static void add_reply_headers(struct exchange *x, struct MHD_Response *r)
{
	struct call *c = &x->call;
	char text[64];

	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	if (x->srv->listen.hsts && c->client.secure)
		MHD_add_response_header(r, "Strict-Transport-Security", "max-age=31536000");
	MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
	MHD_add_response_header(r, "Cross-Origin-Opener-Policy", "same-origin");
	MHD_add_response_header(r, "X-Frame-Options", c->reply.framed ? "SAMEORIGIN" : "DENY");
	MHD_add_response_header(r, "Content-Security-Policy",
				c->reply.csp ? c->reply.csp : c->reply.page ? page_csp : data_csp);
	MHD_add_response_header(r, "Cache-Control", c->reply.cache ? c->reply.cache : "no-cache");
	if (c->status != MHD_HTTP_NO_CONTENT)
		MHD_add_response_header(r, "Content-Type", c->type);
	if (is_compressible(c->type))
		MHD_add_response_header(r, "Vary", "Accept-Encoding");
	if (!strcmp(c->type, "text/event-stream"))
		MHD_add_response_header(r, "X-Accel-Buffering", "no"); /* nginx: each event at once */
	if (c->reply.etag)
		MHD_add_response_header(r, "ETag", c->reply.etag);
	if (c->reply.disposition)
		MHD_add_response_header(r, "Content-Disposition", c->reply.disposition);
	if (c->reply.location)
		MHD_add_response_header(r, "Location", c->reply.location);
	if (c->reply.cookie)
		MHD_add_response_header(r, "Set-Cookie", c->reply.cookie);
	for (size_t i = 0; i < c->reply.more_count; i++)
		MHD_add_response_header(r, c->reply.more[i].name, c->reply.more[i].value);
	if (c->reply.retry_after_s) {
		snprintf(text, sizeof(text), "%d", c->reply.retry_after_s);
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

/* Makes a response of the buffered output and takes it over, compressed if wanted. */
static struct MHD_Response *make_buffered_response(struct exchange *x, bool gzip)
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

static ssize_t read_empty_body(void *cls, uint64_t pos, char *to, size_t max)
{
	(void)cls;
	(void)pos;
	(void)to;
	(void)max;
	return MHD_CONTENT_READER_END_OF_STREAM;
}

struct file_part { /* a range of a file that is being sent */
	int fd;
	uint64_t from;
};

static ssize_t read_file_part(void *cls, uint64_t pos, char *to, size_t max)
{
	const struct file_part *p = cls;
	ssize_t n;

	do
		n = pread(p->fd, to, max, (off_t)(p->from + pos));
	while (n < 0 && errno == EINTR);
	return n > 0 ? n : MHD_CONTENT_READER_END_WITH_ERROR; /* the file was truncated */
}

static void free_file_part(void *cls)
{
	struct file_part *p = cls;

	close(p->fd);
	free(p);
}

/* Sends a file by reading it. The library's sendfile path is not used: a signal that stops the process cuts its
 * sendfile short, which the library takes for a full socket, and the reply never continues. */
static struct MHD_Response *make_file_response(const struct call_file *f)
{
	struct file_part *p = mem_alloc(sizeof(*p));
	struct MHD_Response *r;

	*p = (struct file_part){ fcntl(f->fd, F_DUPFD_CLOEXEC, 0), f->from };
	r = p->fd < 0 ? NULL
		      : MHD_create_response_from_callback(f->bytes, REPLY_FILE_BLOCK_BYTES, read_file_part, p,
							  free_file_part);
	if (!r && p->fd >= 0)
		close(p->fd);
	if (!r)
		free(p);
	return r;
}

/* Chooses the form of the response: stream, file, static bytes or buffer. */
static struct MHD_Response *make_response(struct exchange *x)
{
	struct call *c = &x->call;
	bool gzip = c->client.accepts_gzip && is_compressible(c->type);
	struct MHD_Response *r;

	if (c->stream.fill && x->pass.verb == VERB_HEAD) {
		uint64_t bytes = c->stream.sized ? c->stream.bytes : MHD_SIZE_UNKNOWN;

		c->stream.release(c->stream.state);
		c->stream = (struct call_stream){ 0 };
		return MHD_create_response_from_callback(bytes, REPLY_GZIP_MIN, read_empty_body, NULL, NULL);
	}
	if (c->stream.fill)
		return stream_response(x, gzip && !c->stream.events && !c->stream.sized);
	if (c->file.set)
		return make_file_response(&c->file);
	if (c->fixed.bytes) {
		r = MHD_create_response_from_buffer(c->fixed.len, (void *)(uintptr_t)c->fixed.bytes,
						    MHD_RESPMEM_PERSISTENT);
		if (r && c->fixed.coding)
			MHD_add_response_header(r, "Content-Encoding", c->fixed.coding);
		return r;
	}
	return make_buffered_response(x, gzip && c->out.len >= REPLY_GZIP_MIN);
}

/* The tag is made before compression, so the same bytes get the same tag either way. */
static void set_reply_etag(struct call *c)
{
	uint64_t h = hash_fnv(HASH_FNV_BEGIN, c->out.data, c->out.len);

	c->reply.etag = arena_printf(c->arena, "W/\"%016llx-%zx\"", (unsigned long long)h, c->out.len);
}

static bool is_reply_unchanged(struct exchange *x)
{
	const char *have = x->call.host->header(&x->call, "If-None-Match");
	const char *tag = x->call.reply.etag;

	/* weak comparison (RFC 9110, 13.1.2) */
	return have && tag && (!strcmp(have, "*") || strstr(have, tag + (tag[0] == 'W' ? 2 : 0)));
}

/* Event streams keep their connections for hours: half of the connections are reserved for requests. */
static void limit_streams(struct exchange *x)
{
	if (!x->call.stream.events || x->srv->counters.streams < x->srv->max_connections / 2)
		return;
	x->call.reply.retry_after_s = 5;
	call_fail(&x->call, CALL_busy, NULL, "too many event streams: poll /changes instead");
}

void reply_make(struct exchange *x)
{
	struct call *c = &x->call;

	if (buf_failed(&c->out) && !c->fixed.bytes && !c->stream.fill)
		call_fail(c, CALL_busy, NULL, "the reply does not fit into memory: request less");
	if (x->pass.method == METHOD_GET && c->status == 200 && !c->stream.fill && !c->file.set && !c->reply.etag &&
	    !c->reply.cache && !x->refused && !x->options)
		set_reply_etag(c);
	if (c->status == 200 && !x->refused && x->pass.method == METHOD_GET && is_reply_unchanged(x)) {
		c->status = MHD_HTTP_NOT_MODIFIED;
		c->fixed.bytes = NULL;
		c->fixed.coding = NULL;
		if (c->stream.fill)
			c->stream.release(c->stream.state);
		c->stream = (struct call_stream){ 0 };
		c->file.set = false;
		buf_reset(&c->out);
	}
	limit_streams(x);
	x->response = make_response(x);
	if (x->response)
		add_reply_headers(x, x->response);
}

enum MHD_Result reply_queue(struct exchange *x)
{
	enum MHD_Result ok;

	if (!x->response)
		return MHD_NO;
	atomic_fetch_add(&x->srv->counters.by_class[x->call.status / 100 % 6], 1);
	ok = MHD_queue_response(x->conn, (unsigned)x->call.status, x->response);
	MHD_destroy_response(x->response);
	x->response = NULL;
	return ok;
}

enum MHD_Result reply_send(struct exchange *x)
{
	reply_make(x);
	return reply_queue(x);
}

static enum MHD_Result append_header_line(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
	(void)kind;
	buf_addf(cls, "%s: %s\r\n", name, value);
	return MHD_YES;
}

static struct buf format_reply(struct exchange *x, struct MHD_Response *headers)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	buf_addf(&text, "HTTP/1.1 %d %s\r\n", x->call.status, MHD_get_reason_phrase_for((unsigned)x->call.status));
	MHD_get_response_headers(headers, append_header_line, &text);
	buf_addf(&text, "Content-Length: %zu\r\n\r\n", x->call.out.len);
	if (x->call.out.len)
		buf_add(&text, x->call.out.data, x->call.out.len);
	return text;
}

/* Sends the text around the library, on the thread that serves the connection. The socket buffer of a fresh connection
 * has room for a text this short; if it does not fit, the client sees the connection end. Over TLS the library
 * announces the end when it closes. */
static bool send_around_library(struct exchange *x, const struct buf *text)
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

static bool can_send_early(const struct exchange *x)
{
#ifdef HAVE_GNUTLS
	(void)x;
	return true;
#else
	return !x->srv->listen.cert;
#endif
}

/* The library accepts a response before the body or after it, not in the middle, so this one is sent around it. */
bool reply_cut(struct exchange *x)
{
	struct MHD_Response *r =
		can_send_early(x) ? MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT) : NULL;
	struct buf text;

	if (!r)
		return false;
	x->close = true;
	add_reply_headers(x, r);
	text = format_reply(x, r);
	MHD_destroy_response(r);
	x->cut = send_around_library(x, &text);
	buf_done(&text);
	atomic_fetch_add(&x->srv->counters.by_class[x->call.status / 100 % 6], 1);
	return x->cut;
}

/* Replaces the error pages of libmicrohttpd by JSON errors.
 * The library refuses requests that do not fit into its buffer or that it cannot parse before it calls the program, and
 * has no option for the text. It queues those pages through its public MHD_queue_response, which is overridden
 * here. Only the status is known here, not the request. */

OVERRIDES(MHD_queue_response);
static enum MHD_Result (*queue_next)(struct MHD_Connection *conn, unsigned status, struct MHD_Response *r);

static void find_library_queue(void)
{
	queue_next = OVERRIDDEN(MHD_queue_response);
}

static enum call_error call_error_of_status(unsigned status)
{
	enum call_error code;

	for (code = 0; code < CALL_ERROR_COUNT; code++)
		if (call_error_status(code) == (int)status)
			return code;
	return CALL_internal;
}

static const char *explain_status(unsigned status)
{
	switch (status) {
	case MHD_HTTP_URI_TOO_LONG:
		return "the URL is longer than 48 KiB; use the POST form of the query";
	case MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE:
		return "header fields of more than 32 KiB";
	case MHD_HTTP_BAD_REQUEST:
		return "the request is malformed";
	default:
		return MHD_get_reason_phrase_for(status);
	}
}

static struct MHD_Response *make_error_page(unsigned status)
{
	struct arena *a = arena_new();
	struct call c = { .arena = a, .status = 200 };
	struct MHD_Response *r = NULL;

	buf_init(&c.out, 4096);
	call_fail(&c, call_error_of_status(status), NULL, "%s", explain_status(status));
	if (!buf_failed(&c.out))
		r = MHD_create_response_from_buffer(c.out.len, c.out.data, MHD_RESPMEM_MUST_COPY);
	buf_done(&c.out);
	arena_free(a);
	if (r) {
		MHD_add_response_header(r, "Content-Type", "application/json");
		MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
		MHD_add_response_header(r, "Content-Security-Policy",
					"default-src 'none'; frame-ancestors 'none'; sandbox");
		MHD_add_response_header(r, "Cache-Control", "no-store");
	}
	return r;
}

/* Overrides the function of the library. Responses of reply.c have their headers already and pass unchanged. */
__attribute__((visibility("default"))) enum MHD_Result MHD_queue_response(struct MHD_Connection *conn, unsigned status,
									  struct MHD_Response *r)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	bool ours = MHD_get_response_header(r, "X-Content-Type-Options") != NULL;
	struct MHD_Response *said = ours ? NULL : make_error_page(status);
	enum MHD_Result ok;

	pthread_once(&once, find_library_queue);
	ok = queue_next(conn, status, said ? said : r);
	if (said)
		MHD_destroy_response(said);
	return ok;
}
