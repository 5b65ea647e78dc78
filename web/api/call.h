/* call.h: one request on its way through a handler, and the reply that the handler makes.
 * The server (or a command that asks its own store) fills the upper half; the handler fills the lower half. Handlers
 * know routes, the store and JSON; they never see a socket or the HTTP library.
 * A call belongs to one thread at a time; only call_wake may come from another one. */
#ifndef DPT_API_CALL_H
#define DPT_API_CALL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/buf.h"
#include "tracker/base/err.h"
#include "web/store/auth/token.h"

struct api;
struct call;
struct call_cleanup;
struct store;

enum call_method { METHOD_GET, METHOD_POST, METHOD_PUT, METHOD_PATCH, METHOD_DELETE };
enum call_dialect { DIALECT_V1, DIALECT_MLFLOW }; /* how a refusal is written */
enum call_scope { SCOPE_OPEN, SCOPE_READ, SCOPE_WRITE, SCOPE_ADMIN };

/* CALL_DONE: the reply (or the failure) is complete. CALL_WAIT: another thread will call call_wake, after which
 * call->resume is called on the call's own thread; it returns the same two values. CALL_BODY: the handler of a route
 * whose body is streamed wants it: call->take gets its pieces, then call->resume is called. */
enum call_next { CALL_DONE, CALL_WAIT, CALL_BODY };
#define CALL_LATER 1

/* A route that takes more than this has its body streamed: its handler is called before the body, with body NULL. */
#define CALL_BUFFERED_MAX ((size_t)64 << 20)

enum call_error {
#define API_ERROR(name, status, mlflow) CALL_##name,
#include "schema/api/errors.def"
#undef API_ERROR
	CALL_ERROR_COUNT
};

#define CALL_VARS_MAX 4
#define CALL_ARGS_MAX 2048 /* GET /series and GET /compare repeat run= */

/* One line of schema/api/routes.def. */
struct route {
	enum call_dialect dialect;
	enum call_method method;
	const char *pattern; /* segments; {name} matches one; a last segment * matches the rest */
	enum call_next (*handler)(struct call *c);
	const char *name; /* of the handler */
	enum call_scope scope;
	size_t body_max; /* decoded bytes; 0: takes no body */
};

struct call_arg {
	const char *name;
	const char *value;
	bool used;
};

enum stream_next { STREAM_MORE, STREAM_END, STREAM_IDLE, STREAM_LATER };

/* A reply made piece by piece. fill appends at most about 64 KiB to out; STREAM_IDLE (event streams only) means that
 * nothing is there now: it is called again after the store changed or, with tick set, after 15 s. STREAM_LATER (streams
 * with `later` only): it is called again when later's wake was, which may be at once, on any thread, and never behind
 * release. A negative return, with err set, cuts the reply off. release runs once, on any thread. */
struct call_stream {
	int (*fill)(void *state, struct buf *out, bool tick, struct err *err);
	void (*later)(void *state, void (*wake)(void *arg), void *arg);
	void (*release)(void *state);
	void *state;
	bool sized; /* of `bytes`, sent as they are */
	uint64_t bytes;
	bool events; /* an event stream: counted against the connections left to them */
};

/* A piece of a file as the reply. */
struct call_file {
	bool set;
	int fd; /* borrowed until the call ends */
	uint64_t from, bytes;
};

struct call_header {
	const char *name, *value;
};

#define CALL_HEADERS_MAX 6

/* What the caller offers; both members are set. */
struct call_host {
	const char *(*header)(const struct call *c, const char *name); /* NULL: not sent */
	void (*wake)(struct call *c);                                 /* see call_wake */
};

struct call {
	/* request */
	const struct api *api;
	const struct call_host *host;
	const struct route *route;
	struct arena *arena; /* lives until the reply is sent */
	const char *vars[CALL_VARS_MAX];
	const char *rest; /* what a last * matched, decoded, without the leading slash */
	struct call_arg *args;
	size_t arg_count;
	const char *body; /* decoded (inflated); NUL after body_len */
	size_t body_len;
	bool accepts_gzip;
	bool secure; /* came encrypted, here or at a proxy */
	enum call_dialect dialect; /* the route's, or of the address where it has none */
	uint64_t from; /* who asks: a number made of the address; 0: ourselves */
	enum token_scope has; /* what the token or session sent along allows; TOKEN_NONE: none was needed */
	/* reply */
	int status;              /* 200 until the handler says otherwise */
	const char *type;        /* application/json until the handler says otherwise */
	struct buf out;          /* the body, unless fixed is set; before a stream: its first piece */
	struct call_stream stream;
	const void *fixed;       /* borrowed bytes that outlive everything (embedded assets) */
	size_t fixed_len;
	bool fixed_gzip;         /* the fixed bytes are gzip already */
	const char *cache;       /* Cache-Control; NULL: no-cache */
	const char *etag;        /* quoted; NULL: made from the body of a GET */
	const char *disposition; /* Content-Disposition or NULL */
	const char *location;    /* Location or NULL */
	const char *cookie;      /* Set-Cookie or NULL */
	const char *csp;         /* Content-Security-Policy; NULL: the usual one */
	bool framed;             /* pages of ours may frame the reply */
	int retry_after_s;       /* 0: none */
	bool page;               /* gets the page's content security policy */
	enum call_next (*resume)(struct call *c);
	void *waiting; /* api_submit's own, between CALL_WAIT and resume */
	void *own;     /* the handler's own */
	/* CALL_BODY. Negative after failing the call; CALL_LATER: nothing was taken, call_wake tells when to come
	 * again. */
	int (*take)(struct call *c, const void *bytes, size_t n);
	struct call_file file; /* instead of out */
	struct call_header headers[CALL_HEADERS_MAX]; /* further ones */
	size_t header_count;
	struct call_cleanup *cleanups;
};

/* One more header of the reply; the value lives as long as the call. */
void call_header(struct call *c, const char *name, const char *value);

/* Runs fn(arg) when the call ends, however it ends; the newest first. False (fn has run) when out of memory. */
bool call_defer(struct call *c, void (*fn)(void *arg), void *arg);

/* For who made the call: runs what was deferred. */
void call_finish(struct call *c);

/* Fails the call: status, code and text as JSON, whatever was written before. field may be NULL. Returns CALL_DONE. */
enum call_next call_fail(struct call *c, enum call_error code, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Fails the call with what a library said; ERR_* decides the status. Returns CALL_DONE. */
enum call_next call_fail_err(struct call *c, const char *field, const struct err *err);

/* Makes s the reply, and its first piece at once: what fails then can still be said in words, and a reply that ends
 * with its first piece is one like any other, with its length. Takes s over in every case. 0, or the code of err: the
 * call is to be failed. */
int call_stream(struct call *c, const struct call_stream *s, struct err *err);

int call_error_status(enum call_error code);
const char *call_error_name(enum call_error code);
const char *call_method_name(enum call_method method);

/* Value of the query argument, NULL when absent; marks it as known. When it is given more than once, the call fails
 * in call_args_done. */
const char *call_arg(struct call *c, const char *name);

/* Every value of an argument that may repeat, in order: *ret borrowed from the call's arena, returns how many. */
size_t call_arg_all(struct call *c, const char *name, const char *const **ret);

/* Integer argument within [min, max]; fallback when absent. False after failing the call. */
bool call_arg_int(struct call *c, const char *name, int64_t *value, int64_t min, int64_t max);

/* Number argument (finite); *ret_given tells whether it was there. False after failing the call. */
bool call_arg_double(struct call *c, const char *name, double *value, bool *ret_given);

/* One of the words (NULL-terminated); *value is its place, unchanged when absent. False after failing the call. */
bool call_arg_word(struct call *c, const char *name, const char *const *words, int *value);

/* False after failing the call because an argument was given that nobody asked for, or twice. */
bool call_args_done(struct call *c);

/* The path variable as a run id; NULL after failing the call with 404. */
const char *call_run_id(struct call *c, size_t var);
bool call_is_run_id(const char *text);

/* Lets a call that returned CALL_WAIT go on; any thread, exactly once for each CALL_WAIT. */
void call_wake(struct call *c);

#endif
