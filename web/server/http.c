/* http.c: the meeting with libmicrohttpd: connections, bodies, replies, suspension. The only file that knows it.
 * What a request may do is decided elsewhere, in this order: gate, router, access, then the body, then its handler. */
#include "web/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "tracker/base/clock.h"
#include "web/server/access.h"
#include "web/server/confine.h"
#include "web/server/conns.h"
#include "web/server/gate.h"
#include "web/server/gzip.h"
#include "web/server/listen.h"
#include "web/server/router.h"
#include "web/store/token.h"

enum {
	HTTP_WORKER_CONNECTIONS = 125, /* epoll stalls when exactly 128 events are ready: stay below, listener included */
	HTTP_WORKERS_MIN = 4,
	HTTP_SWALLOW_MAX = 1 << 20,    /* a refused body of this size is read, so that the reply gets through */
	HTTP_DISCARD_MAX = 64 << 20,   /* the same for one whose end was not known */
	HTTP_GZIP_MIN = 1024,
	HTTP_BLOCK_BYTES = 65536,
	HTTP_IDLE_TIMEOUT_S = 70,
	HTTP_TICK_MS = 250,
	HTTP_PROBE_TICKS = 4,
	HTTP_HEARTBEAT_S = 15,
	HTTP_DRAIN_S = 10,
};

#define HTTP_BODIES_MAX (192u << 20) /* all bodies in memory together */
#define HTTP_OUT_MAX ((size_t)1 << 30)

static const char page_csp[] = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
			       "connect-src 'self'; font-src 'self'; worker-src 'self'; manifest-src 'self'; "
			       "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
static const char data_csp[] = "default-src 'none'; frame-ancestors 'none'; sandbox";

struct server {
	struct listen listen;
	char files[4][PATH_MAX]; /* the store's file, its two companions, the artifacts; "": not to be confined */
	struct access access;
	size_t max_connections;
	struct api api;
	struct api_counters counters;
	struct conns *conns;
	struct MHD_Daemon *daemon;
	pthread_t ticker;
	bool ticking;
	int watch;
	atomic_size_t bodies; /* bytes of request bodies held now */
	atomic_int in_flight; /* requests between their head and their end */
	atomic_bool changed, stopping, drained;
	pthread_mutex_t lock; /* feeds and what they say of themselves */
	struct feed *feeds;
};

enum wait_state { WAIT_RUNNING, WAIT_SUSPENDED, WAIT_WOKEN };

/* One request, from its first line to the end of its reply. */
struct exchange {
	struct call call;
	struct server *srv;
	struct MHD_Connection *conn;
	struct conn *slot;
	char *target;
	const char *target_at; /* in the library's buffer; see gate.h */
	struct gate_request req;
	struct gate_pass pass;
	struct gunzip *gunzip;
	struct buf body;
	size_t wire_bytes, held_bytes;
	unsigned allow; /* methods of the address, for Allow */
	unsigned tokens; /* generation when access was checked */
	bool begun, refused, close, waiting, options, streamed;
	atomic_int wait;
};

/* A reply that comes piece by piece. It outlives the exchange, which may end first. */
struct feed {
	struct feed *next, *prev; /* event streams only */
	struct server *srv;
	struct MHD_Connection *conn;
	struct call_stream src;
	struct gzip *gzip;
	struct buf piece, out;
	size_t sent;
	double tick_at_s;
	int fd;
	unsigned tokens; /* generation that its reader was checked against */
	bool ended, suspended, nudged, tick, gone;
};

static struct exchange *exchange_of(const struct call *c)
{
	return (struct exchange *)((char *)(uintptr_t)c - offsetof(struct exchange, call));
}

/* --- what handlers may ask of us ------------------------------------------------------------------------- */

static const char *http_header(const struct call *c, const char *name)
{
	const struct gate_header *h = gate_find(&exchange_of(c)->req, name);

	return h ? h->value : NULL;
}

/* The thread that wakes and the one that suspends may come in either order; whoever is second resumes. */
static void http_wake(struct call *c)
{
	struct exchange *x = exchange_of(c);

	if (atomic_exchange(&x->wait, WAIT_WOKEN) == WAIT_SUSPENDED)
		MHD_resume_connection(x->conn);
}

static const struct call_host http_host = { .header = http_header, .wake = http_wake };

static void http_suspend(struct exchange *x)
{
	MHD_suspend_connection(x->conn);
	if (atomic_exchange(&x->wait, WAIT_SUSPENDED) == WAIT_WOKEN)
		MHD_resume_connection(x->conn);
}

/* --- replies that come piece by piece -------------------------------------------------------------------- */

static void feed_free(void *cls)
{
	struct feed *f = cls;

	if (f->src.events) {
		pthread_mutex_lock(&f->srv->lock);
		if (f->prev)
			f->prev->next = f->next;
		else
			f->srv->feeds = f->next;
		if (f->next)
			f->next->prev = f->prev;
		pthread_mutex_unlock(&f->srv->lock);
		atomic_fetch_sub(&f->srv->counters.streams, 1);
	}
	f->src.release(f->src.state);
	gzip_free(f->gzip);
	buf_done(&f->piece);
	buf_done(&f->out);
	free(f);
}

/* Suspends an event stream that has nothing to say; false when it was nudged meanwhile. */
static bool feed_sleep(struct feed *f)
{
	bool sleeps;

	pthread_mutex_lock(&f->srv->lock);
	sleeps = !f->nudged && !atomic_load(&f->srv->stopping);
	f->nudged = false;
	if (sleeps) {
		f->suspended = true;
		MHD_suspend_connection(f->conn);
	}
	pthread_mutex_unlock(&f->srv->lock);
	return sleeps;
}

/* Fetches the next piece into f->out; returns an enum stream_next, or a negative code. */
static int feed_fill(struct feed *f)
{
	struct buf *to = f->gzip ? &f->piece : &f->out;
	bool tick = f->tick;
	int rc;

	buf_reset(&f->out);
	buf_reset(&f->piece);
	f->sent = 0;
	f->tick = false;
	rc = f->src.fill(f->src.state, to, tick);
	if (rc < 0 || buf_failed(to))
		return -1;
	if (f->gzip && !gzip_feed(f->gzip, f->piece.data, f->piece.len, rc == STREAM_END, &f->out))
		return -1;
	f->ended = rc == STREAM_END;
	if (f->src.events && f->out.len) {
		pthread_mutex_lock(&f->srv->lock);
		f->tick_at_s = clock_mono_s() + HTTP_HEARTBEAT_S;
		pthread_mutex_unlock(&f->srv->lock);
	}
	return rc;
}

/* Tokens changed: whoever still may read comes again. */
static bool feed_outlived(const struct feed *f)
{
	return f->tokens != token_generation(f->srv->api.store);
}

static ssize_t feed_read(void *cls, uint64_t pos, char *to, size_t max)
{
	struct feed *f = cls;
	size_t n;
	int rc;

	(void)pos;
	while (f->sent == f->out.len) {
		if (f->ended || (f->src.events && (atomic_load(&f->srv->stopping) || feed_outlived(f))))
			return MHD_CONTENT_READER_END_OF_STREAM;
		if (f->gone)
			return MHD_CONTENT_READER_END_WITH_ERROR;
		rc = feed_fill(f);
		if (rc < 0)
			return MHD_CONTENT_READER_END_WITH_ERROR;
		if (rc == STREAM_IDLE && !f->out.len && feed_sleep(f))
			return 0;
	}
	n = f->out.len - f->sent < max ? f->out.len - f->sent : max;
	memcpy(to, f->out.data + f->sent, n);
	f->sent += n;
	return (ssize_t)n;
}

/* A suspended connection is watched by nobody: whether its client left must be asked. */
static bool peer_gone(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

enum { NUDGE_ALL = 1, NUDGE_PROBE = 2 };

/* Wakes event streams: all of them after a change, else those whose heartbeat is due or whose client has left. */
static void feeds_nudge(struct server *s, int how)
{
	double now = clock_mono_s();
	struct feed *f;

	pthread_mutex_lock(&s->lock);
	for (f = s->feeds; f; f = f->next) {
		/* while it is suspended its socket is open, and its worker reads none of this */
		bool due = now >= f->tick_at_s, gone = (how & NUDGE_PROBE) && f->suspended && peer_gone(f->fd);

		if (!(how & NUDGE_ALL) && !due && !gone)
			continue;
		if (due)
			f->tick_at_s = now + HTTP_HEARTBEAT_S;
		if (f->suspended) {
			f->tick = due;
			f->gone = gone;
			f->suspended = false;
			MHD_resume_connection(f->conn);
		} else {
			f->nudged = true;
		}
	}
	pthread_mutex_unlock(&s->lock);
}

/* The call's stream as a response; takes it over in every case. */
static struct MHD_Response *feed_response(struct exchange *x, bool gzip)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(x->conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct feed *f = calloc(1, sizeof(*f));
	struct MHD_Response *r;

	if (!f) {
		x->call.stream.release(x->call.stream.state);
		x->call.stream = (struct call_stream){ 0 };
		return NULL;
	}
	f->srv = x->srv;
	f->conn = x->conn;
	f->fd = info ? info->connect_fd : -1;
	f->src = x->call.stream;
	f->tokens = x->tokens;
	f->tick_at_s = clock_mono_s() + HTTP_HEARTBEAT_S;
	x->call.stream = (struct call_stream){ 0 };
	buf_init(&f->piece, HTTP_OUT_MAX);
	buf_init(&f->out, HTTP_OUT_MAX);
	f->gzip = gzip ? gzip_new(1) : NULL;
	if (f->src.events) {
		pthread_mutex_lock(&x->srv->lock);
		f->next = x->srv->feeds;
		if (f->next)
			f->next->prev = f;
		x->srv->feeds = f;
		pthread_mutex_unlock(&x->srv->lock);
		atomic_fetch_add(&x->srv->counters.streams, 1);
	}
	r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, HTTP_BLOCK_BYTES, feed_read, f, feed_free);
	if (!r)
		feed_free(f);
	else if (f->gzip)
		MHD_add_response_header(r, "Content-Encoding", "gzip");
	return r;
}

/* --- replies ---------------------------------------------------------------------------------------------- */

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
	MHD_add_response_header(r, "X-Frame-Options", "DENY");
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
	if (x->close || atomic_load(&x->srv->stopping))
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

	buf_init(&packed, HTTP_OUT_MAX);
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

static struct MHD_Response *reply_file(const struct call_file *f)
{
	int fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
	struct MHD_Response *r = fd < 0 ? NULL : MHD_create_response_from_fd_at_offset64(f->bytes, fd, f->from);

	if (!r && fd >= 0)
		close(fd);
	return r;
}

static struct MHD_Response *reply_body(struct exchange *x)
{
	struct call *c = &x->call;
	bool gzip = c->accepts_gzip && compressible(c->type);
	struct MHD_Response *r;

	if (c->stream.fill && x->pass.verb == VERB_HEAD) {
		c->stream.release(c->stream.state);
		c->stream = (struct call_stream){ 0 };
		return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, HTTP_GZIP_MIN, read_nothing, NULL, NULL);
	}
	if (c->stream.fill)
		return feed_response(x, gzip && !c->stream.events);
	if (c->file.set)
		return reply_file(&c->file);
	if (c->fixed) {
		r = MHD_create_response_from_buffer(c->fixed_len, (void *)(uintptr_t)c->fixed, MHD_RESPMEM_PERSISTENT);
		if (r && c->fixed_gzip)
			MHD_add_response_header(r, "Content-Encoding", "gzip");
		return r;
	}
	return reply_buffered(x, gzip && c->out.len >= HTTP_GZIP_MIN);
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
	const char *have = http_header(&x->call, "If-None-Match");

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

static enum MHD_Result reply_send(struct exchange *x)
{
	struct call *c = &x->call;
	struct MHD_Response *r;
	enum MHD_Result ok;

	if (buf_failed(&c->out) && !c->fixed && !c->stream.fill)
		call_fail(c, CALL_busy, NULL, "the reply does not fit into memory: ask for less");
	if (x->pass.method == METHOD_GET && c->status == 200 && !c->stream.fill && !c->file.set && !c->etag && !c->cache && !x->refused && !x->options)
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

/* --- requests --------------------------------------------------------------------------------------------- */

static enum MHD_Result collect_header(void *cls, enum MHD_ValueKind kind, const char *name, size_t name_len,
				      const char *value, size_t value_len)
{
	struct exchange *x = cls;
	struct gate_header *h = (struct gate_header *)(uintptr_t)x->req.headers + x->req.header_count;

	(void)kind;
	if (x->req.header_count > GATE_HEADERS_MAX)
		return MHD_NO;
	*h = (struct gate_header){ name, value ? value : "", name_len, value ? value_len : 0 };
	x->req.header_count++;
	return MHD_YES;
}

static void refuse(struct exchange *x, enum call_error code, const char *why)
{
	x->refused = true;
	call_fail(&x->call, code, NULL, "%s", why);
}

static bool begin_gate(struct exchange *x, const char *method, const char *version)
{
	enum call_error code;
	const char *why;

	x->req = (struct gate_request){ .method = method, .version = version, .target = x->target,
					.target_at = x->target_at };
	x->req.headers = arena_array(x->call.arena, GATE_HEADERS_MAX + 2, sizeof(*x->req.headers));
	if (!x->req.headers)
		return false;
	MHD_get_connection_values_n(x->conn, MHD_HEADER_KIND, collect_header, x);
	if (!gate_check(&x->pass, &x->req, &code, &why)) {
		refuse(x, code, why);
		x->close = true;
		x->allow = (1u << METHOD_GET) | (1u << METHOD_POST) | (1u << METHOD_PUT) | (1u << METHOD_PATCH) |
			   (1u << METHOD_DELETE);
		return false;
	}
	return true;
}

static void begin_options(struct exchange *x)
{
	x->options = true;
	x->refused = true; /* no handler: the reply is complete */
	x->call.status = MHD_HTTP_NO_CONTENT;
	buf_reset(&x->call.out);
}

static bool begin_route(struct exchange *x)
{
	bool options = x->pass.verb == VERB_OPTIONS;
	struct router_match m;

	if (options && !strcmp(x->target, "*")) {
		x->allow = ~0u;
		return true;
	}
	if (!router_find(&m, &x->call, x->pass.method, x->target) || (!m.route && !options))
		refuse(x, m.code, m.why);
	x->allow = m.methods;
	x->call.route = m.route;
	return !x->refused;
}

static bool wants_page(const struct exchange *x)
{
	const struct gate_header *accept = gate_find(&x->req, "Accept");

	return x->pass.verb == VERB_METHOD && accept && strstr(accept->value, "text/html");
}

static bool begin_access(struct exchange *x)
{
	/* OPTIONS of an address that cannot be read has no route of its own */
	struct access_query q = {
		.req = &x->req, .pass = &x->pass, .cookie = api_cookie_name(&x->call),
		.scope = x->call.route ? x->call.route->scope : SCOPE_READ
	};
	enum call_error code;
	const char *why;

	x->tokens = token_generation(x->srv->api.store);
	if (access_check(&x->srv->access, &q, &code, &why))
		return true;
	refuse(x, code, why);
	if (code == CALL_unauthorized && x->pass.method == METHOD_GET && wants_page(x))
		api_login_form(&x->call, x->target + strcspn(x->target, "?") + (strchr(x->target, '?') != NULL), NULL);
	return false;
}

static void begin_body(struct exchange *x)
{
	size_t limit = x->call.route->body_max;

	x->streamed = limit > CALL_BUFFERED_MAX;
	buf_init(&x->body, x->streamed ? CALL_BUFFERED_MAX : limit);
	if (x->pass.content_length > (int64_t)limit || (x->pass.chunked && !limit)) {
		refuse(x, CALL_too_large, limit ? "the body is larger than this address takes" : "this address takes no body");
		return;
	}
	if (x->pass.gzip_body && (x->pass.chunked || x->pass.content_length > 0)) {
		x->gunzip = gunzip_new();
		if (!x->gunzip)
			refuse(x, CALL_busy, "out of memory");
	}
	if (x->streamed && !x->refused)
		x->refused = x->call.route->handler(&x->call) != CALL_BODY; /* then its reply is there */
}

/* Everything that can be decided before the body. */
static void begin(struct exchange *x, const char *method, const char *version)
{
	x->begun = true;
	atomic_fetch_add(&x->srv->counters.requests, 1);
	if (begin_gate(x, method, version)) {
		x->call.secure = x->srv->listen.cert || access_forwarded_tls(&x->srv->access, &x->req);
		x->call.accepts_gzip = gzip_accepted(http_header(&x->call, "Accept-Encoding"));
		if (begin_route(x) && begin_access(x)) {
			if (x->pass.verb == VERB_OPTIONS)
				begin_options(x);
			else
				begin_body(x);
		}
	}
	if (atomic_load(&x->srv->stopping) && !x->refused) {
		x->call.retry_after_s = 1;
		refuse(x, CALL_busy, "the server is stopping");
	}
	conns_phase(x->srv->conns, x->slot, x->pass.chunked || x->pass.content_length > 0 ? CONN_BODY : CONN_BUSY);
}

/* A refused request is answered at once unless its body is small enough to be read away, or there is none. */
static bool answer_at_once(struct exchange *x)
{
	bool no_body = !x->pass.chunked && x->pass.content_length <= 0;

	if (!x->refused)
		return false;
	if (x->close)
		return true;
	if (no_body || (!x->pass.chunked && x->pass.content_length <= HTTP_SWALLOW_MAX && !http_header(&x->call, "Expect")))
		return false;
	x->close = true;
	return true;
}

static bool hold(struct exchange *x)
{
	size_t grown = x->body.cap > x->held_bytes ? x->body.cap - x->held_bytes : 0;

	x->held_bytes += grown;
	return atomic_fetch_add(&x->srv->bodies, grown) + grown <= HTTP_BODIES_MAX;
}

/* A piece of a streamed body to its handler. */
static void pass_on(struct exchange *x, const char *data, size_t n)
{
	if (n && x->call.take(&x->call, data, n))
		x->refused = true;
}

/* False: the client goes on sending what was refused long ago; cut it off. */
static bool take_body(struct exchange *x, const char *data, size_t n)
{
	int rc = 0;

	x->wire_bytes += n;
	conns_body(x->srv->conns, x->slot, n);
	atomic_fetch_add(&x->srv->counters.body_bytes, n);
	if (x->refused)
		return x->wire_bytes <= HTTP_DISCARD_MAX;
	if (x->gunzip) {
		rc = gunzip_feed(x->gunzip, data, n, &x->body);
	} else if (x->streamed) {
		pass_on(x, data, n);
	} else {
		buf_add(&x->body, data, n);
		rc = buf_failed(&x->body) ? ERR_LIMIT : 0;
	}
	if (rc == ERR_LIMIT)
		refuse(x, CALL_too_large, "the body is larger than this address takes");
	else if (rc)
		refuse(x, CALL_bad_request, "the body is not the gzip stream that Content-Encoding says");
	if (x->streamed && x->gunzip && !x->refused) {
		pass_on(x, x->body.data, x->body.len);
		buf_reset(&x->body);
	}
	if (!hold(x) && !x->refused) {
		x->call.retry_after_s = 1;
		refuse(x, CALL_busy, "too many large bodies at once");
	}
	return true;
}

static enum MHD_Result advance(struct exchange *x, enum call_next next)
{
	if (next == CALL_DONE) {
		x->waiting = false;
		return reply_send(x);
	}
	x->waiting = true;
	http_suspend(x);
	return MHD_YES;
}

static enum MHD_Result dispatch(struct exchange *x)
{
	struct call *c = &x->call;

	if (!x->refused && x->gunzip && !gunzip_complete(x->gunzip))
		refuse(x, CALL_bad_request, "the gzip body ends too early");
	if (x->refused)
		return reply_send(x);
	if (x->streamed)
		return advance(x, c->resume(c));
	c->body = x->body.data ? x->body.data : "";
	c->body_len = x->body.len;
	return advance(x, c->route->handler(c));
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *conn, const char *url, const char *method,
				  const char *version, const char *data, size_t *size, void **con_cls)
{
	struct exchange *x = *con_cls;

	(void)cls;
	(void)conn;
	(void)url;
	if (!x)
		return MHD_NO;
	if (!x->begun) {
		begin(x, method, version);
		return answer_at_once(x) ? reply_send(x) : MHD_YES;
	}
	if (*size) {
		bool ok = take_body(x, data, *size);

		*size = 0;
		return ok ? MHD_YES : MHD_NO;
	}
	if (x->waiting) {
		atomic_store(&x->wait, WAIT_RUNNING);
		return advance(x, x->call.resume(&x->call));
	}
	conns_phase(x->srv->conns, x->slot, CONN_BUSY);
	return dispatch(x);
}

static void *on_uri(void *cls, const char *uri, struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct exchange *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->srv = cls;
	x->conn = conn;
	x->slot = info ? info->socket_context : NULL;
	x->target = strdup(uri);
	if (MHD_get_version()[0] == '0')
		x->target_at = uri;
	x->pass.content_length = -1;
	x->call = (struct call){
		.api = &x->srv->api, .host = &http_host, .arena = arena_new(), .status = 200, .type = "application/json"
	};
	buf_init(&x->call.out, HTTP_OUT_MAX);
	if (!x->target || !x->call.arena) {
		free(x->target);
		arena_free(x->call.arena);
		free(x);
		return NULL;
	}
	conns_phase(x->srv->conns, x->slot, CONN_HEAD);
	atomic_fetch_add(&x->srv->in_flight, 1);
	return x;
}

static void on_completed(void *cls, struct MHD_Connection *conn, void **con_cls, enum MHD_RequestTerminationCode why)
{
	struct exchange *x = *con_cls;

	(void)cls;
	(void)conn;
	(void)why;
	if (!x)
		return;
	*con_cls = NULL;
	conns_phase(x->srv->conns, x->slot, CONN_IDLE);
	atomic_fetch_sub(&x->srv->bodies, x->held_bytes);
	atomic_fetch_sub(&x->srv->in_flight, 1);
	if (x->call.stream.release)
		x->call.stream.release(x->call.stream.state);
	call_finish(&x->call);
	gunzip_free(x->gunzip);
	buf_done(&x->body);
	buf_done(&x->call.out);
	arena_free(x->call.arena);
	free(x->target);
	free(x);
}

static void on_connection(void *cls, struct MHD_Connection *conn, void **context,
			  enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info;
	struct server *s = cls;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
		*context = info ? conns_add(s->conns, info->connect_fd) : NULL;
		atomic_fetch_add(&s->counters.connections, 1);
	} else {
		conns_remove(s->conns, *context);
		*context = NULL;
		atomic_fetch_sub(&s->counters.connections, 1);
	}
}

/* Percent-encoding is undone by the router, once. */
static size_t keep_escaped(void *cls, struct MHD_Connection *conn, char *text)
{
	(void)cls;
	(void)conn;
	return strlen(text);
}

/* --- start and stop --------------------------------------------------------------------------------------- */

static void *ticker_main(void *arg)
{
	struct server *s = arg;
	struct timespec pause = { .tv_nsec = HTTP_TICK_MS * 1000000l };

	unsigned ticks = 0, tokens = token_generation(s->api.store);

	while (!atomic_load(&s->drained)) {
		unsigned now = token_generation(s->api.store);
		bool all = atomic_exchange(&s->changed, false) || atomic_load(&s->stopping) || now != tokens;

		tokens = now;

		feeds_nudge(s, (all ? NUDGE_ALL : 0) | (++ticks % HTTP_PROBE_TICKS ? 0 : NUDGE_PROBE));
		conns_tick(s->conns);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void on_change(void *arg, uint64_t rev)
{
	struct server *s = arg;

	(void)rev;
	atomic_store(&s->changed, true);
}

int server_bind(struct server **ret, const struct server_opts *o, struct err *err)
{
	struct server *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return err_set(err, ERR_NOMEM, "out of memory");
	s->watch = -1;
	s->max_connections = o->max_connections > 0 ? (size_t)o->max_connections : 500;
	pthread_mutex_init(&s->lock, NULL);
	snprintf(s->access.host, sizeof(s->access.host), "%s", o->host);
	s->listen.fd = -1;
	if (o->db_path && o->artifacts_path) {
		snprintf(s->files[0], PATH_MAX, "%s", o->db_path);
		snprintf(s->files[1], PATH_MAX, "%.*s-wal", PATH_MAX - 5, o->db_path);
		snprintf(s->files[2], PATH_MAX, "%.*s-shm", PATH_MAX - 5, o->db_path);
		snprintf(s->files[3], PATH_MAX, "%s", o->artifacts_path);
	}
	if ((o->tls_cert || o->tls_key) && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
		rc = err_set(err, ERR_UNSUPPORTED, "--tls-cert: this libmicrohttpd was built without TLS; let a proxy encrypt and "
			     "give --behind-proxy");
	else
		rc = listen_open(&s->listen, o, err);
	if (rc) {
		server_stop(s);
		return rc;
	}
	s->access.behind_proxy = o->behind_proxy;
	s->access.any_host = s->listen.wildcard || o->behind_proxy;
	*ret = s;
	return 0;
}

const char *server_address(const struct server *s)
{
	return s->listen.address;
}

bool server_public(const struct server *s)
{
	return s->listen.public;
}

struct api_counters *server_counters(struct server *s)
{
	return &s->counters;
}

static void start_daemon(struct server *s)
{
	size_t n = s->max_connections;
	unsigned workers = (unsigned)((n + HTTP_WORKER_CONNECTIONS - 1) / HTTP_WORKER_CONNECTIONS);
	unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC;
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, s->listen.cert },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, s->listen.key },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2" },
		{ MHD_OPTION_END, 0, NULL },
	};

	if (s->listen.cert)
		flags |= MHD_USE_TLS;
	else
		tls[0].option = MHD_OPTION_END;
	if (workers < HTTP_WORKERS_MIN)
		workers = n < HTTP_WORKERS_MIN ? (unsigned)n : HTTP_WORKERS_MIN;
	s->daemon = MHD_start_daemon(flags, 0, NULL, NULL,
				on_request, s, MHD_OPTION_LISTEN_SOCKET, s->listen.fd, MHD_OPTION_THREAD_POOL_SIZE,
				workers > 1 ? workers : 0, MHD_OPTION_CONNECTION_LIMIT, (unsigned)n,
				MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_IDLE_TIMEOUT_S,
				MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK, keep_escaped, NULL,
				MHD_OPTION_URI_LOG_CALLBACK, on_uri, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
				MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

/* The library's threads are started by one that has been confined, and so are confined too; the store's own are not. */
static void *starter_main(void *arg)
{
	struct server *s = arg;
	const struct confine_path paths[] = {
		{ s->files[0], true }, { s->files[1], true }, { s->files[2], true }, { s->files[3], true },
		{ "/proc/self/statm", false }, { "/etc/localtime", false },
	};

	atomic_store(&s->counters.confined, confine_thread(paths, sizeof(paths) / sizeof(paths[0])));
	start_daemon(s);
	return NULL;
}

static int start_confined(struct server *s, struct err *err)
{
	pthread_t starter;

	if (!s->files[0][0]) {
		start_daemon(s);
		return 0;
	}
	if (pthread_create(&starter, NULL, starter_main, s))
		return err_set(err, ERR_NOMEM, "cannot start a thread");
	pthread_join(starter, NULL);
	return 0;
}

int server_run(struct server *s, const struct api *api, struct err *err)
{
	s->api = *api;
	s->access.store = api->store;
	if (s->listen.public || s->access.behind_proxy)
		token_need(api->store);
	s->conns = conns_new(s->max_connections);
	if (!s->conns)
		return err_set(err, ERR_NOMEM, "out of memory");
	s->watch = store_watch(api->store, on_change, s);
	if (start_confined(s, err))
		return err->code;
	if (!s->daemon)
		return s->listen.cert ? err_set(err, ERR_USAGE, "cannot serve with this --tls-cert and --tls-key: they must belong "
						"together, the key without a password") :
					err_set(err, ERR_IO, "cannot start the HTTP threads");
	if (pthread_create(&s->ticker, NULL, ticker_main, s))
		return err_set(err, ERR_NOMEM, "cannot start a thread");
	s->ticking = true;
	return 0;
}

static void drain(struct server *s)
{
	double until = clock_mono_s() + HTTP_DRAIN_S;

	conns_shutdown(s->conns, false);
	while (atomic_load(&s->in_flight) > 0 && clock_mono_s() < until)
		clock_sleep_s(0.01);
	if (atomic_load(&s->in_flight) > 0)
		conns_shutdown(s->conns, true);
	/* what waits for a commit must be woken before the library may stop; the store answers or fails everything */
	until = clock_mono_s() + HTTP_DRAIN_S;
	while (atomic_load(&s->in_flight) > 0 && clock_mono_s() < until)
		clock_sleep_s(0.01);
}

void server_stop(struct server *s)
{
	if (!s)
		return;
	atomic_store(&s->stopping, true);
	if (s->daemon) {
		MHD_quiesce_daemon(s->daemon);
		feeds_nudge(s, NUDGE_ALL);
		drain(s);
	}
	atomic_store(&s->drained, true);
	if (s->ticking)
		pthread_join(s->ticker, NULL);
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	if (s->watch >= 0)
		store_unwatch(s->api.store, s->watch);
	listen_close(&s->listen);
	conns_free(s->conns);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
