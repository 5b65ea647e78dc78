/* SPDX-License-Identifier: Apache-2.0 */
/* call.h: one request while a handler processes it, and the reply that the handler makes.
 * The server (or a command that opens its own store) fills the upper half; the handler fills the lower half. Handlers
 * know routes, the store and JSON; they never see a socket or the HTTP library.
 * A call belongs to one thread at a time; only call_wake may be called from another one. */
#ifndef DPT_API_CALL_H
#define DPT_API_CALL_H

#include "tracker/base/buf.h"
#include "web/store/auth/token.h"

struct api;
struct call;
struct call_cleanup;
struct store;

enum call_method { METHOD_GET, METHOD_POST, METHOD_PUT, METHOD_PATCH, METHOD_DELETE };
enum call_dialect { DIALECT_V1, DIALECT_MLFLOW }; /* format of errors */
enum call_scope { SCOPE_OPEN, SCOPE_READ, SCOPE_WRITE, SCOPE_ADMIN };
/* What a request names (schema/api/access.def). */
enum call_names { NAMES_NOTHING, NAMES_SEEN, NAMES_ONE, NAMES_ALL };

/* What the session of a link may ask of a route (schema/api/access.def). */
enum call_shared { SHARED_NEVER, SHARED_OPEN, SHARED_RUN, SHARED_RUNS, SHARED_BODY, SHARED_TEXT };

/* CALL_DONE: the reply (or the failure) is complete. CALL_WAIT: another thread will call call_wake; then call->resume
 * runs on the call's own thread and returns one of the same two values. CALL_BODY: a handler of a streamed route wants
 * the body: call->take gets its pieces, then call->resume is called. */
enum call_next { CALL_DONE, CALL_WAIT, CALL_BODY };
#define CALL_LATER 1

/* A route with a larger body_max has its body streamed: its handler is called before the body arrives, with body
 * NULL. */
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
	const char *name; /* name of the handler */
	enum call_scope scope;
	enum call_names names;
	enum call_shared shared;
	size_t body_max; /* decoded bytes; 0: accepts no body */
};

struct call_arg {
	const char *name;
	const char *value;
	bool used;
};

enum stream_next { STREAM_MORE, STREAM_END, STREAM_IDLE, STREAM_LATER };

/* A reply that is made piece by piece. fill appends at most about 64 KiB to out. STREAM_IDLE (event streams only):
 * nothing is available; fill is called again after the store changed or, with tick set, after 15 s. STREAM_LATER
 * (streams with `later` only): fill is called again after the wake that was passed to later. That wake may come at once
 * and on any thread, but never after release. A negative return value, with err set, aborts the reply. release runs
 * once, on any thread. */
struct call_stream {
	int (*fill)(void *state, struct buf *out, bool tick, struct err *err);
	void (*later)(void *state, void (*wake)(void *arg), void *arg);
	void (*release)(void *state);
	void *state;
	bool sized; /* the length is `bytes`; sent uncompressed */
	uint64_t bytes;
	bool events; /* an event stream: limited to a share of the connections */
};

/* A range of a file as the reply. */
struct call_file {
	bool set;
	int fd; /* borrowed until the call ends */
	uint64_t from, bytes;
};

struct call_header {
	const char *name, *value;
};

#define CALL_HEADERS_MAX 6

/* Functions of the caller; both are set. */
struct call_host {
	const char *(*header)(const struct call *c, const char *name); /* NULL: header absent */
	void (*wake)(struct call *c);				       /* see call_wake */
};

/* Who asks. */
struct call_client {
	uint64_t from;	      /* hash of the client's address; 0: a command of this process */
	enum token_scope has; /* scope of the token or session; TOKEN_NONE: no token was required */
	const char *person;   /* who has it; NULL: unknown */
	const char *grants;   /* what it may do in which experiments; NULL: the scope in all */
	const char *share;    /* what the link shows whose session it is (share.h); NULL: of no link */
	uint64_t token;	      /* a number made from the token; 0: none was required */
	bool owner;	      /* the request has the token of the lock file, which the server's user alone can read */
	bool secure;	      /* encrypted, on this connection or up to a trusted proxy */
	bool accepts_gzip, accepts_brotli;
};

/* The values in the request's target, decoded. */
struct call_address {
	const char *vars[CALL_VARS_MAX];
	const char *rest; /* segments that the last * matched, without the leading slash */
	struct call_arg *args;
	size_t arg_count;
};

/* Borrowed bytes that outlive the call (embedded assets). */
struct call_fixed {
	const void *bytes; /* NULL: the body is in call.out */
	size_t len;
	const char *coding; /* how the bytes are compressed: Content-Encoding; NULL: not at all */
};

/* Headers of the reply other than its type. NULL: absent, unless said otherwise. */
struct call_reply {
	const char *cache;	 /* Cache-Control; NULL: no-cache */
	const char *etag;	 /* quoted; NULL: computed from the body of a GET */
	const char *disposition; /* Content-Disposition */
	const char *location;	 /* Location */
	const char *cookie;	 /* Set-Cookie */
	const char *csp;	 /* Content-Security-Policy; NULL: the default */
	bool framed;		 /* pages of this server may frame the reply */
	bool page;		 /* gets the content security policy of the page */
	int retry_after_s;	 /* 0: none */
	struct call_header more[CALL_HEADERS_MAX];
	size_t more_count;
};

struct call {
	/* request */
	const struct api *api;
	const struct call_host *host;
	const struct route *route;
	struct arena *arena; /* lives until the reply is sent */
	struct call_client client;
	struct call_address address;
	const char *body; /* decoded (inflated); NUL-terminated */
	size_t body_len;
	enum call_dialect dialect; /* dialect of the route, else of the address space */
	/* reply */
	int status;	  /* 200 unless the handler sets it */
	const char *type; /* application/json unless the handler sets it */
	struct call_reply reply;
	struct buf out; /* the body, unless fixed is set; of a stream its first piece */
	struct call_fixed fixed;
	struct call_stream stream;
	struct call_file file; /* in place of out */
	enum call_next (*resume)(struct call *c);
	void *waiting; /* private to api_submit, between CALL_WAIT and resume */
	void *own;     /* private to the handler */
	/* For CALL_BODY. Negative: the call has failed. CALL_LATER: nothing was consumed; call_wake announces room. */
	int (*take)(struct call *c, const void *bytes, size_t n);
	struct call_cleanup *cleanups;
	const char *asked[24]; /* the arguments that the handler knows, for the message about another one */
	size_t asked_count;
};

/* Adds a header to the reply; the value must live as long as the call. */
void call_header(struct call *c, const char *name, const char *value);

/* Runs fn(arg) when the call ends, in any way; the newest first. */
void call_defer(struct call *c, void (*fn)(void *arg), void *arg);

/* For the owner of the call: runs the deferred functions. */
void call_finish(struct call *c);

/* Fails the call: replaces the reply by status, code and text as JSON. field may be NULL. Returns CALL_DONE. */
enum call_next call_fail(struct call *c, enum call_error code, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Fails the call with an error of a library; ERR_* decides the status. Returns CALL_DONE. */
enum call_next call_fail_err(struct call *c, const char *field, const struct err *err);

/* Makes s the reply and produces its first piece at once, so that an early failure can still be reported as an error. A
 * stream that ends with its first piece becomes an ordinary reply with a length. Takes s over in every case. Returns 0
 * or the code of err; the caller then fails the call. */
int call_stream(struct call *c, const struct call_stream *s, struct err *err);

int call_error_status(enum call_error code);
const char *call_error_name(enum call_error code);
const char *call_method_name(enum call_method method);

/* Value of the query argument, NULL when absent; marks it as known. If it occurs twice, call_args_done fails the
 * call. */
const char *call_arg(struct call *c, const char *name);

/* All values of an argument that may repeat, in order. *ret is borrowed from the call's arena; returns their number. */
size_t call_arg_all(struct call *c, const char *name, const char *const **ret);

/* Integer argument within [min, max]; *value is unchanged when absent. Returns false after failing the call. */
bool call_arg_int(struct call *c, const char *name, int64_t *value, int64_t min, int64_t max);

/* Number argument (finite); *ret_given is set when present. Returns false after failing the call. */
bool call_arg_double(struct call *c, const char *name, double *value, bool *ret_given);

/* One of the words (NULL-terminated); *value is its index, unchanged when absent. Returns false after failing the
 * call. */
bool call_arg_word(struct call *c, const char *name, const char *const *words, int *value);

/* Returns false after failing the call because an argument is unknown or occurs twice. */
bool call_args_done(struct call *c);

/* The path variable as a run id, which may be a unique prefix of at least 4 digits; NULL after failing the call with
 * 404, or 400 where several runs begin so. */
const char *call_run_id(struct call *c, size_t var);
bool call_is_run_id(const char *text);

#define RUN_PREFIX_MIN 4 /* digits of a run's id */

/* The id of the one run that begins so, in the call's arena; an id of 32 digits is returned as it is. NULL after
 * failing the call. prefix: RUN_PREFIX_MIN to 32 hex digits. */
const char *call_whole_run_id(struct call *c, const char *field, const char *prefix);

/* Continues a call that returned CALL_WAIT; any thread, exactly once for each CALL_WAIT. */
void call_wake(struct call *c);

#endif
