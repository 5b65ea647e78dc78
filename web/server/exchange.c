/* exchange.c: the life of a request. What it may do is decided elsewhere, in this order: gate, router, access; only
 * then is its body read, inflated and bounded, and its handler called, which may wait suspended for the disk. */
#include "web/server/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "web/api/session.h"
#include "web/server/reply.h"
#include "web/server/router.h"
#include "web/store/auth/token.h"

enum {
	SWALLOW_MAX = 1 << 20,	/* of a body that is refused before it came: read away, and the connection goes on */
	REST_MAX = 16 << 20,	/* the same for the rest of one that is refused on its way */
	DISCARD_MAX = 64 << 20, /* of longer ones so much is read behind the reply, so that the reply gets through */
};

#define BODIES_MAX (192u << 20) /* all bodies in memory together */

static struct exchange *exchange_of(const struct call *c)
{
	return (struct exchange *)((char *)(uintptr_t)c - offsetof(struct exchange, call));
}

static const char *exchange_header(const struct call *c, const char *name)
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

static const struct call_host http_host = { .header = exchange_header, .wake = http_wake };

static void suspend(struct exchange *x)
{
	MHD_suspend_connection(x->conn);
	if (atomic_exchange(&x->wait, WAIT_SUSPENDED) == WAIT_WOKEN)
		MHD_resume_connection(x->conn);
}

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
		.req = &x->req, .pass = &x->pass, .cookie = session_cookie_name(&x->call),
		.scope = x->call.route ? x->call.route->scope : SCOPE_READ, .from = x->call.from
	};
	struct access_answer answer;

	x->tokens = token_generation(x->srv->api.store);
	if (access_check(&x->srv->access, &q, &answer)) {
		x->call.has = answer.has;
		return true;
	}
	x->call.retry_after_s = answer.retry_s;
	refuse(x, answer.code, answer.why);
	if (answer.code == CALL_unauthorized && x->pass.method == METHOD_GET && wants_page(x))
		session_form(&x->call, x->target + strcspn(x->target, "?") + (strchr(x->target, '?') != NULL), NULL);
	return false;
}

static void begin_body(struct exchange *x)
{
	size_t limit = x->call.route->body_max;

	x->streamed = limit > CALL_BUFFERED_MAX;
	buf_init(&x->body, x->streamed ? CALL_BUFFERED_MAX : limit);
	if (x->pass.content_length > (int64_t)limit || (x->pass.chunked && !limit)) {
		refuse(x, CALL_too_large,
		       limit ? "the body is larger than this address takes" : "this address takes no body");
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
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(x->conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

		x->call.from = access_from(&x->srv->access, &x->req, info ? info->client_addr : NULL);
		x->call.secure = x->srv->listen.cert || access_forwarded_tls(&x->srv->access, &x->req);
		x->call.accepts_gzip = gzip_accepted(exchange_header(&x->call, "Accept-Encoding"));
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

/* A refused request is answered at once unless its body is small enough to be read away, or there is none. What the
 * client sends behind the answer is still read for a while: a close would take the answer with it. */
static bool answer_at_once(struct exchange *x)
{
	bool no_body = !x->pass.chunked && x->pass.content_length <= 0;

	if (!x->refused)
		return false;
	if (x->close)
		return true;
	if (no_body)
		return false;
	if (!exchange_header(&x->call, "Expect") &&
	    ((!x->pass.chunked && x->pass.content_length <= SWALLOW_MAX) || reply_cut(x)))
		return false;
	x->close = true;
	return true;
}

/* A piece of a refused body. False: the client goes on sending what was refused long ago; cut it off. */
static bool discard(struct exchange *x, size_t n)
{
	bool long_left = !x->pass.chunked && x->pass.content_length - (int64_t)x->wire_bytes > REST_MAX;

	x->discarded += n;
	if (!x->cut && (long_left || x->discarded > REST_MAX))
		reply_cut(x);
	return x->discarded <= DISCARD_MAX;
}

static bool hold(struct exchange *x)
{
	size_t grown = x->body.cap > x->held_bytes ? x->body.cap - x->held_bytes : 0;

	x->held_bytes += grown;
	return atomic_fetch_add(&x->srv->bodies, grown) + grown <= BODIES_MAX;
}

/* A piece of a streamed body to its handler. False: it has no room, and wakes us when it has. */
static bool pass_on(struct exchange *x, const char *data, size_t n)
{
	int rc;

	atomic_store(&x->wait, WAIT_RUNNING);
	rc = n ? x->call.take(&x->call, data, n) : 0;
	x->refused = x->refused || rc < 0;
	return rc != CALL_LATER;
}

/* A piece of a streamed body, inflated. False: see pass_on; the piece is here already and stays. */
static bool pass_inflated(struct exchange *x)
{
	x->stuck = !pass_on(x, x->body.data, x->body.len);
	if (!x->stuck)
		buf_reset(&x->body);
	return !x->stuck;
}

static void count_body(struct exchange *x, size_t n)
{
	x->wire_bytes += n;
	conns_body(x->srv->conns, x->slot, n);
	if (!x->pass.chunked && x->wire_bytes == (size_t)x->pass.content_length)
		conns_phase(x->srv->conns, x->slot, CONN_BUSY); /* what is late from here on is ours */
	atomic_fetch_add(&x->srv->counters.body_bytes, n);
}

enum taken { TAKEN, TAKEN_LATER, TAKEN_CLOSE };

static enum taken take_body(struct exchange *x, const char *data, size_t n)
{
	int rc = 0;

	if (x->stuck && !x->refused)
		return pass_inflated(x) ? TAKEN : TAKEN_LATER;
	if (x->streamed && !x->gunzip && !x->refused && !pass_on(x, data, n))
		return TAKEN_LATER;
	count_body(x, n);
	if (x->refused)
		return discard(x, n) ? TAKEN : TAKEN_CLOSE;
	if (x->gunzip) {
		rc = gunzip_feed(x->gunzip, data, n, &x->body);
	} else if (!x->streamed) {
		buf_add(&x->body, data, n);
		rc = buf_failed(&x->body) ? ERR_LIMIT : 0;
	}
	if (rc == ERR_LIMIT)
		refuse(x, CALL_too_large, "the body is larger than this address takes");
	else if (rc)
		refuse(x, CALL_bad_request, "the body is not the gzip stream that Content-Encoding says");
	if (!hold(x) && !x->refused) {
		x->call.retry_after_s = 1;
		refuse(x, CALL_busy, "too many large bodies at once");
	}
	return !x->streamed || !x->gunzip || x->refused || pass_inflated(x) ? TAKEN : TAKEN_LATER;
}

static enum MHD_Result advance(struct exchange *x, enum call_next next)
{
	if (next == CALL_DONE) {
		x->waiting = false;
		return reply_send(x);
	}
	x->waiting = true;
	suspend(x);
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

enum MHD_Result exchange_go(void *server, struct MHD_Connection *conn, const char *url, const char *method,
			    const char *version, const char *data, size_t *size, void **con_cls)
{
	struct exchange *x = *con_cls;

	(void)server;
	(void)conn;
	(void)url;
	if (!x)
		return MHD_NO;
	if (!x->begun) {
		begin(x, method, version);
		return answer_at_once(x) ? reply_send(x) : MHD_YES;
	}
	if (*size) {
		enum taken taken = take_body(x, data, *size);

		if (taken == TAKEN_LATER)
			suspend(x); /* the library comes again with the same piece */
		else
			*size = 0;
		return taken == TAKEN_CLOSE ? MHD_NO : MHD_YES;
	}
	if (x->waiting) {
		atomic_store(&x->wait, WAIT_RUNNING);
		return advance(x, x->call.resume(&x->call));
	}
	if (x->cut)
		return MHD_NO;
	conns_phase(x->srv->conns, x->slot, CONN_BUSY);
	return dispatch(x);
}

/* The router reads the query. The library would, too, behind this call, into its buffer for the head, and gives up
 * without a reply where some hundred arguments do not fit: in that buffer the query ends where it begins. */
static void hide_query(const char *uri)
{
	char *mark = strchr((char *)(uintptr_t)uri, '?');

	if (mark && mark[1])
		mark[1] = '\0';
}

void *exchange_open(void *server, const char *uri, struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct exchange *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->srv = server;
	x->conn = conn;
	x->slot = info ? info->socket_context : NULL;
	x->target = strdup(uri);
	hide_query(uri);
	if (MHD_get_version()[0] == '0')
		x->target_at = uri;
	x->pass.content_length = -1;
	x->call = (struct call){
		.api = &x->srv->api, .host = &http_host, .arena = arena_new(), .status = 200, .type = "application/json"
	};
	buf_init(&x->call.out, EXCHANGE_OUT_MAX);
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

void exchange_end(void *server, struct MHD_Connection *conn, void **con_cls, enum MHD_RequestTerminationCode why)
{
	struct exchange *x = *con_cls;

	(void)server;
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
