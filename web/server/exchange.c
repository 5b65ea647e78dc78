/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c: the life of a request. Three checks come first, in this order: gate, router, access. Only then the body
 * is read and bounded. A thread of the pool inflates it, calls the handler and makes the reply, while the connection is
 * suspended: what a request costs delays no other connection of its worker. A handler may wait for the store. */
#include "tracker/mem/mem.h"
#include "web/server/exchange.h"

#include <stdlib.h>
#include <string.h>

enum {
	SWALLOW_MAX = 1 << 20,	/* a body of up to this length is read and dropped when it was refused before it
				 * arrived; the connection continues */
	REST_MAX = 16 << 20,	/* the same for the rest of a body that is refused while it arrives */
	DISCARD_MAX = 64 << 20, /* of longer bodies this much is read after the reply, so that the reply reaches the
				 * client */
};

#define BODIES_MAX (192u << 20)	 /* all request bodies in memory together */
#define REPLIES_MAX (256u << 20) /* all replies; one alone may be larger */

static struct exchange *exchange_of(const struct call *c)
{
	return (struct exchange *)((char *)(uintptr_t)c - offsetof(struct exchange, call));
}

static const char *exchange_header(const struct call *c, const char *name)
{
	const struct gate_header *h = gate_find(&exchange_of(c)->req, name);

	return h ? h->value : NULL;
}

/* The waking and the suspending thread may come in either order; the second one continues the call. */
static void http_wake(struct call *c)
{
	struct exchange *x = exchange_of(c);

	if (atomic_exchange(&x->wait, WAIT_WOKEN) != WAIT_SUSPENDED)
		return;
	if (x->pooled)
		thread_pool_give(x->srv->pool, &x->task);
	else
		MHD_resume_connection(x->conn);
}

static const struct call_host http_host = { .header = exchange_header, .wake = http_wake };

static void suspend_exchange(struct exchange *x)
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

static void refuse_exchange(struct exchange *x, enum call_error code, const char *why)
{
	x->refused = true;
	call_fail(&x->call, code, NULL, "%s", why);
}

static void refuse_large_body(struct exchange *x)
{
	x->refused = true;
	call_fail(&x->call, CALL_too_large, NULL,
		  "the body is larger than the %zu KiB that this route accepts: send less at a time",
		  x->call.route->body_max >> 10);
}

static bool check_chunks(struct exchange *x, bool complete)
{
	if (x->refused || !x->pass.chunked || framing_good(x->fd, complete))
		return true;
	refuse_exchange(x, CALL_bad_request,
			"the body's chunks are malformed: expected SIZE CR LF BYTES CR LF and a last chunk 0");
	x->close = true;
	return false;
}

static void refuse_unreadable_body(struct exchange *x, int rc)
{
	if (rc == ERR_LIMIT)
		refuse_large_body(x);
	else
		refuse_exchange(x, CALL_bad_request, "the body is not gzip, but Content-Encoding says gzip");
}

static bool check_gate(struct exchange *x, const char *method, const char *version)
{
	enum call_error code;
	const char *why;

	x->req = (struct gate_request){
		.method = method, .version = version, .target = x->target, .target_at = x->target_at
	};
	x->req.headers = arena_array(x->call.arena, GATE_HEADERS_MAX + 2, sizeof(*x->req.headers));
	MHD_get_connection_values_n(x->conn, MHD_HEADER_KIND, collect_header, x);
	if (!gate_check(&x->pass, &x->req, &code, &why)) {
		refuse_exchange(x, code, why);
		x->close = true;
		x->allow = (1u << METHOD_GET) | (1u << METHOD_POST) | (1u << METHOD_PUT) | (1u << METHOD_PATCH) |
			   (1u << METHOD_DELETE);
		return false;
	}
	return check_chunks(x, false);
}

static void begin_options(struct exchange *x)
{
	x->options = true;
	x->refused = true; /* no handler runs: the reply is complete */
	x->call.status = MHD_HTTP_NO_CONTENT;
	buf_reset(&x->call.out);
}

static bool find_exchange_route(struct exchange *x)
{
	bool options = x->pass.verb == VERB_OPTIONS;
	struct router_match m;

	if (options && !strcmp(x->target, "*")) {
		x->allow = ~0u;
		return true;
	}
	if (!router_find(&m, &x->call, x->pass.method, x->target) || (!m.route && !options))
		refuse_exchange(x, m.code, m.why);
	x->allow = m.methods;
	x->call.route = m.route;
	return !x->refused;
}

static bool accepts_html(const struct exchange *x)
{
	const struct gate_header *accept = gate_find(&x->req, "Accept");

	return x->pass.verb == VERB_METHOD && accept && strstr(accept->value, "text/html");
}

static bool is_probe(const struct exchange *x)
{
	const struct route *r = x->call.route;

	return r && (!strcmp(r->pattern, "/health") || !strcmp(r->pattern, "/ready"));
}

/* Checks the credentials, says whose request it is, and asks for its place. */
static bool check_exchange_access(struct exchange *x)
{
	/* an OPTIONS request to an address that cannot be read has no route */
	struct access_query q = { .req = &x->req,
				  .pass = &x->pass,
				  .cookie = session_cookie_name(&x->call),
				  .scope = x->call.route ? x->call.route->scope : SCOPE_READ,
				  .names = x->call.route ? x->call.route->names : NAMES_NOTHING,
				  .shared = x->call.route ? x->call.route->shared : SHARED_NEVER,
				  .arena = x->call.arena,
				  .from = x->call.client.from };
	struct access_answer answer;

	bool allowed;

	x->tokens = token_generation(x->srv->api.store);
	allowed = access_check(&x->srv->access, &q, &answer);
	conns_client(x->srv->conns, x->slot, answer.owner ? answer.owner : q.from);
	if (allowed && !is_probe(x) && !conns_claim(x->srv->conns, x->slot)) {
		answer = (struct access_answer){ .code = CALL_busy, .retry_s = 1,
						 .why = "all places for connections are taken: try again soon" };
		allowed = false;
		x->close = true;
	}
	if (allowed) {
		x->call.client.has = answer.has;
		x->call.client.person = answer.person;
		x->call.client.grants = answer.grants;
		x->call.client.share = answer.share;
		if (answer.grants)
			api_restrict(&x->call, answer.grants, answer.has);
		x->call.client.owner = answer.lock_file;
		x->call.client.token = answer.owner;
		return true;
	}
	x->call.reply.retry_after_s = answer.retry_s;
	refuse_exchange(x, answer.code, answer.why);
	if (answer.code == CALL_unauthorized && x->pass.method == METHOD_GET && accepts_html(x))
		session_form(&x->call, x->target, NULL);
	return false;
}

/* Decides how the body is taken, and begins the handler of a streamed one. */
static void begin_body(struct exchange *x)
{
	size_t limit = x->call.route->body_max;

	x->streamed = limit > CALL_BUFFERED_MAX;
	/* what gzip cannot shorten grows a little */
	buf_init(&x->body, x->streamed ? CALL_BUFFERED_MAX : x->pass.gzip_body ? limit + limit / 512 + 1024 : limit);
	if (x->pass.content_length > (int64_t)limit || (x->pass.chunked && !limit)) {
		if (limit)
			refuse_large_body(x);
		else
			refuse_exchange(x, CALL_too_large, "this route accepts no body");
		return;
	}
	if (x->pass.gzip_body && (x->pass.chunked || x->pass.content_length > 0))
		x->gunzip = gunzip_new();
	if (x->streamed)
		x->refused = x->call.route->handler(&x->call) != CALL_BODY; /* in that case the handler has set the
									     * reply */
}

/* Does all checks that are possible before the body arrives. */
static void begin_exchange(struct exchange *x, const char *method, const char *version)
{
	x->begun = true;
	atomic_fetch_add(&x->srv->counters.requests, 1);
	if (check_gate(x, method, version)) {
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(x->conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
		const char *accepted = exchange_header(&x->call, "Accept-Encoding");

		x->call.client.from = access_from(&x->srv->access, &x->req, info ? info->client_addr : NULL);
		x->call.client.secure = x->srv->listen.cert || access_forwarded_tls(&x->srv->access, &x->req);
		x->call.client.accepts_gzip = coding_accepted(accepted, "gzip");
		x->call.client.accepts_brotli = coding_accepted(accepted, "br");
		if (find_exchange_route(x) && check_exchange_access(x)) {
			if (x->pass.verb == VERB_OPTIONS)
				begin_options(x);
			else
				begin_body(x);
		}
	}
	if (atomic_load(&x->srv->stopping) && !x->refused) {
		x->call.reply.retry_after_s = 1;
		refuse_exchange(x, CALL_busy, "the server is stopping");
	}
	if (x->pass.chunked || x->pass.content_length > 0)
		conns_phase(x->srv->conns, x->slot, x->refused ? CONN_REFUSED : CONN_BODY);
	else
		conns_phase(x->srv->conns, x->slot, CONN_BUSY);
}

/* Returns true if a refused request must be answered before its body is read. That is the case unless it has no body,
 * or one that is small enough to read and drop. What the client sends after the answer is still read for a while:
 * closing at once would destroy the answer on its way. */
static bool must_answer_before_body(struct exchange *x)
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

/* Drops a piece of a refused body. Returns false when the client still sends long after the refusal: cut it off. */
static bool discard_piece(struct exchange *x, size_t n)
{
	bool long_left = !x->pass.chunked && x->pass.content_length - (int64_t)x->wire_bytes > REST_MAX;

	x->discarded += n;
	if (!x->cut && (long_left || x->close || x->discarded > REST_MAX))
		reply_cut(x);
	return x->discarded <= DISCARD_MAX;
}

/* Counts the bytes of a body; fails the call if all bodies together are too large. */
static void count_held_bytes(struct exchange *x, size_t bytes)
{
	size_t grown = bytes > x->held_bytes ? bytes - x->held_bytes : 0;

	x->held_bytes += grown;
	if (atomic_fetch_add(&x->srv->bodies, grown) + grown <= BODIES_MAX || x->refused)
		return;
	x->call.reply.retry_after_s = 1;
	refuse_exchange(x, CALL_busy, "too many large bodies at once");
}

/* The same of a reply. */
static void count_reply_bytes(struct exchange *x)
{
	size_t others = atomic_fetch_add(&x->srv->replies, x->call.out.cap);

	x->reply_bytes = x->call.out.cap;
	if (!others || others + x->reply_bytes <= REPLIES_MAX)
		return;
	x->call.reply.retry_after_s = 1;
	call_fail(&x->call, CALL_busy, NULL, "too many large replies at once");
}

/* Passes a piece of a streamed body to its handler. Returns false if the handler has no room; it wakes the exchange
 * when it has. */
static bool pass_piece_on(struct exchange *x, const char *data, size_t n)
{
	int rc;

	atomic_store(&x->wait, WAIT_RUNNING);
	rc = n ? x->call.take(&x->call, data, n) : 0;
	x->refused = x->refused || rc < 0;
	return rc != CALL_LATER;
}

/* Passes on a piece of a streamed body after inflating it. Returns false as pass_piece_on does; the inflated piece is
 * then kept. */
static bool pass_inflated(struct exchange *x)
{
	x->stuck = !pass_piece_on(x, x->body.data, x->body.len);
	if (!x->stuck)
		buf_reset(&x->body);
	return !x->stuck;
}

static void count_body(struct exchange *x, size_t n)
{
	x->wire_bytes += n;
	conns_body(x->srv->conns, x->slot, n);
	if (!x->pass.chunked && x->wire_bytes == (size_t)x->pass.content_length)
		conns_phase(x->srv->conns, x->slot, CONN_BUSY); /* from here on a delay is the server's, not the
								 * client's */
	atomic_fetch_add(&x->srv->counters.body_bytes, n);
}

enum taken { TAKEN, TAKEN_LATER, TAKEN_CLOSE };

/* Consumes a piece of the body: inflates it, buffers it or passes it to the handler, or drops it when the request is
 * refused. */
static enum taken consume_body_piece(struct exchange *x, const char *data, size_t n)
{
	int rc = 0;

	check_chunks(x, false);
	if (x->stuck && !x->refused)
		return pass_inflated(x) ? TAKEN : TAKEN_LATER;
	if (x->streamed && !x->gunzip && !x->refused && !pass_piece_on(x, data, n))
		return TAKEN_LATER;
	count_body(x, n);
	if (x->refused)
		return discard_piece(x, n) ? TAKEN : TAKEN_CLOSE;
	if (x->gunzip && x->streamed) {
		rc = gunzip_feed(x->gunzip, data, n, &x->body);
	} else if (!x->streamed) {
		buf_add(&x->body, data, n);
		rc = buf_failed(&x->body) ? ERR_LIMIT : 0;
	}
	if (rc)
		refuse_unreadable_body(x, rc);
	count_held_bytes(x, x->body.cap);
	return !x->streamed || !x->gunzip || x->refused || pass_inflated(x) ? TAKEN : TAKEN_LATER;
}

/* Inflates a buffered body as a whole, within the route's limit. */
static void inflate_body(struct exchange *x)
{
	struct buf whole;
	int rc = 0;

	if (!x->streamed) {
		buf_init(&whole, x->call.route->body_max);
		rc = gunzip_feed(x->gunzip, x->body.data, x->body.len, &whole);
		count_held_bytes(x, x->body.cap + whole.cap);
		buf_done(&x->body);
		x->body = whole;
	}
	if (rc)
		refuse_unreadable_body(x, rc);
	else if (!x->refused && !gunzip_complete(x->gunzip))
		refuse_exchange(x, CALL_bad_request, "the gzip body ends too early");
}

static enum call_next begin_call(struct exchange *x)
{
	struct call *c = &x->call;

	if (atomic_load(&x->srv->hurry)) {
		c->reply.retry_after_s = 1;
		refuse_exchange(x, CALL_busy, "the server is stopping");
	}
	if (x->gunzip && !x->refused)
		inflate_body(x);
	if (x->refused)
		return CALL_DONE;
	if (x->streamed)
		return c->resume(c);
	c->body = x->body.data ? x->body.data : "";
	c->body_len = x->body.len;
	return api_share_admits(c) ? c->route->handler(c) : CALL_DONE;
}

/* On the pool, while the connection is suspended: calls the handler and, when it waited, its continuation. */
static void run_exchange(void *arg)
{
	struct exchange *x = arg;
	enum call_next next;

	do {
		atomic_store(&x->wait, WAIT_RUNNING);
		next = x->waiting ? x->call.resume(&x->call) : begin_call(x);
		if (next == CALL_DONE) {
			count_reply_bytes(x);
			reply_make(x);
			MHD_resume_connection(x->conn); /* x may end from here on */
			return;
		}
		x->waiting = true;
	} while (atomic_exchange(&x->wait, WAIT_SUSPENDED) == WAIT_WOKEN);
}

/* What anybody may ask (health, ready, the documents) costs little and waits for no other request; what names a
 * provider waits for that, and a file, whose address holds its own right, may come from an object store. */
static bool is_answered_at_once(const struct route *r)
{
	return r->scope == SCOPE_OPEN && r->method == METHOD_GET && !strchr(r->pattern, '{') && !r->body_max;
}

static enum MHD_Result dispatch_exchange(struct exchange *x)
{
	check_chunks(x, true);
	if (x->refused)
		return reply_send(x);
	if (is_answered_at_once(x->call.route)) {
		x->call.route->handler(&x->call);
		return reply_send(x);
	}
	x->pooled = true;
	x->task = (struct thread_pool_task){ .fn = run_exchange, .arg = x };
	MHD_suspend_connection(x->conn);
	thread_pool_give(x->srv->pool, &x->task);
	return MHD_YES;
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
		begin_exchange(x, method, version);
		return must_answer_before_body(x) ? reply_send(x) : MHD_YES;
	}
	if (*size) {
		bool refused = x->refused;
		enum taken taken = consume_body_piece(x, data, *size);

		if (x->refused && !refused)
			conns_phase(x->srv->conns, x->slot, CONN_REFUSED);
		if (taken == TAKEN_LATER)
			suspend_exchange(x); /* the library calls again with the same piece */
		else
			*size = 0;
		return taken == TAKEN_CLOSE ? MHD_NO : MHD_YES;
	}
	if (x->pooled)
		return reply_queue(x);
	if (x->cut)
		return MHD_NO;
	conns_phase(x->srv->conns, x->slot, CONN_BUSY);
	return dispatch_exchange(x);
}

/* Ends the URI at its query. The router reads the query from a copy. The library would parse it too, after this call
 * and into its buffer for the head, and would drop the connection without a reply if some hundred arguments do not fit
 * there. */
static void cut_uri_at_query(const char *uri)
{
	char *mark = strchr((char *)(uintptr_t)uri, '?');

	if (mark && mark[1])
		mark[1] = '\0';
}

void *exchange_open(void *server, const char *uri, struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct exchange *x = mem_zalloc(sizeof(*x));

	x->srv = server;
	x->conn = conn;
	x->slot = info ? info->socket_context : NULL;
	info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD); /* may reuse the memory of the last */
	x->fd = info ? info->connect_fd : -1;
	framing_open(x->fd);
	x->target = mem_strdup(uri);
	cut_uri_at_query(uri);
	if (MHD_get_version()[0] == '0')
		x->target_at = uri;
	x->pass.content_length = -1;
	x->call = (struct call){
		.api = &x->srv->api, .host = &http_host, .arena = arena_new(), .status = 200, .type = "application/json"
	};
	buf_init(&x->call.out, EXCHANGE_OUT_MAX);
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
	atomic_fetch_sub(&x->srv->replies, x->reply_bytes);
	if (x->response)
		MHD_destroy_response(x->response);
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
