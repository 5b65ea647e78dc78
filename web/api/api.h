/* SPDX-License-Identifier: Apache-2.0 */
/* api.h: the state that every handler uses, the way to change the store, and the handlers of all routes. */
#ifndef DPT_API_API_H
#define DPT_API_API_H

#include <stdatomic.h>

#include "web/api/js.h"
#include "web/oidc/oidc.h"
#include "web/store/follow/follow.h"
#include "web/store/mlflow/mlflow.h"
#include "web/store/read/points.h"
#include "web/store/read/query.h"
#include "web/store/store.h"

/* ---- journal_pace.c ----
 * The interval that senders of journals are asked to keep (interval_s in replies). It is half a second, and longer when
 * there are many senders or when storing takes long. Any thread. */

/* Zero-initialize. */
struct journal_pace {
	atomic_ullong since_ms, posts, waited_ms; /* start of the current window, its posts, their total wait */
	atomic_ullong interval_ms;		  /* 0: JOURNAL_PACE_LEAST_MS */
};

#define JOURNAL_PACE_LEAST_MS 500
#define JOURNAL_PACE_MOST_MS 30000
#define JOURNAL_PACE_POSTS_PER_S 250 /* wanted rate of a process, of all senders together */

/* Counts a range that was stored waited_ms after it arrived. */
void journal_pace_note(struct journal_pace *p, uint64_t now_ms, uint64_t waited_ms);

double journal_pace_interval_s(struct journal_pace *p);

/* ---- api.c ---- */

/* Written by the server, read by /metrics. */
struct api_counters {
	atomic_ullong requests;
	atomic_ullong by_class[6]; /* replies 1xx .. 5xx; [0] unused */
	atomic_ullong connections; /* open now */
	atomic_ullong streams;	   /* event streams open now */
	atomic_ullong body_bytes;
	atomic_ullong graphql_refused, graphql_unknown; /* root fields that are not here; members that are null */
	struct journal_pace pace; /* send intervals of journal clients */
	atomic_bool draining;	  /* shutdown has begun: clients must send no more requests */
	atomic_bool confined;	  /* Landlock confines the answering threads to the store */
};

struct docs_site;

struct api {
	struct store *store;
	struct follow *follow;	       /* NULL: no folder is followed */
	const struct docs_site *docs;  /* NULL: not installed, or outside a server */
	struct api_counters *counters; /* NULL outside a server */
	double started_s;	       /* clock_wall_s */
	struct oidc *oidc;	       /* NULL: no provider signs persons in */
	const char *backup_dir;	       /* where backups of clients are made; NULL: next to the store */
};

/* Returns true if the server's own user asks, or a command of this process. */
bool api_owner(const struct call *c);

/* Before the handler: replaces the store by the part of it that grants (grants.h) let the caller use, until the call
 * ends. */
void api_restrict(struct call *c, const char *grants, enum token_scope most);

/* Before the handler, with the body: whether the caller may ask this, if it has the session of a link. Returns false
 * after failing the call. In native/api_shares.c. */
bool api_share_admits(struct call *c);

/* Who asks, for the audit log. Borrows from the call. */
struct ingest_author api_author(const struct call *c);

/* Submits one change, whose author is that of the call, and calls then on the call's own thread when the change is
 * durable. A failed change fails the call (field names the cause, or NULL; fail, if set, writes the error) unless
 * keep_errors is set. stored, if set, writes what is stored for a member "stored" of the error of an author who had not
 * seen it (If-Match); it returns false after failing the call itself. op is copied. */
struct api_change {
	const struct ingest_op *op;
	const char *field;
	bool keep_errors;
	enum call_next (*fail)(struct call *c, const struct err *err);
	bool (*stored)(struct call *c, struct js *j);
	enum call_next (*then)(struct call *c, const struct ingest_result *res);
};

enum call_next api_submit(struct call *c, const struct api_change *change);

/* Look-ups in a run that was read; NULL: missing. */
const char *api_pair(const struct query_kv *pairs, size_t n, const char *key);
const char *api_param(const struct query_run *run, const char *key);
const struct query_metric *api_metric(const struct query_run *run, const char *key);

/* The handlers, by the names in routes.def, which are the operations of openapi.json. They are defined in native/ and
 * mlflow/; only the table of routes calls them. */
#define ROUTE(dialect, method, pattern, handler, scope, body_max) enum call_next on_##handler(struct call *c);
#include "schema/api/routes.def"
#undef ROUTE

/* ---- session.c ----
 * The pages of the sign-in, and the session cookie. */

/* Begins a page with one form: status, headers, and the HTML up to its heading, which is HTML. The caller adds the
 * rest,
 * "</form></main></html>" included. */
void session_page(struct call *c, int status, const char *action, const char *heading);
void session_add_text(struct buf *out, const char *text);		       /* escaped */
void session_add_hidden(struct buf *out, const char *name, const char *value); /* a field of the form */

/* Replies with the form that asks for a token or a provider, status 401. target: path and query of the address that the
 * browser shows, to which it returns. problem: an error text, or NULL. */
enum call_next session_form(struct call *c, const char *target, const char *problem);

/* Replies with a page that returns to where the form was; from a provider's page, a redirect would not send the cookie.
 */
enum call_next session_return(struct call *c);

/* Replies with the page that a link of /shares opens first. */
enum call_next session_share(struct call *c);

/* Set-Cookie of a session: scripts cannot read it and other sites cannot send it. more: further attributes. */
const char *session_cookie(struct call *c, const char *value, const char *more);
/* Name of the session cookie; it differs between stores, as cookies do not distinguish ports. */
const char *session_cookie_name(const struct call *c);
/* Value of that cookie in a Cookie header (NULL: absent): *ret_len bytes within the header. Returns NULL when
 * missing. */
const char *session_cookie_value(const char *cookies, const char *name, size_t *ret_len);

#endif
