/* SPDX-License-Identifier: Apache-2.0 */
/* source.c: sends a request to a server by URL, to the server that has the store open, or to handlers in this process.
 * Knows no command. */
#include "tracker/base/text.h"
#include "web/cli/source.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "tracker/base/run_folders.h"
#include "tracker/mem/mem.h"
#include "tracker/sink/http_client.h"

enum { SOURCE_TRIES = 20 };

#define SOURCE_REPLY_MAX ((size_t)1 << 30)

#define FOLD_S 2.0

struct source {
	struct api api;	   /* its store is open in this process */
	struct http *http; /* a server answers */
};

/* Passes 2xx bodies to the sink and keeps others for the error message. */
struct source_pass {
	const struct local_sink *sink;
	const int *status;
	struct buf refusal;
	struct err *err;
	int rc;
};

/* Returns true if the server accepted no connection, by curl's message. */
static bool is_unreachable(const char *why)
{
	return strstr(why, "connect") != NULL;
}

/* Connects to the server that holds the store. Only this user can write the lock file that names it, so its certificate
 * needs no check. ERR_BUSY: it accepts no connection, because it is ending and still writes its store. */
static int open_holder(struct source *s, const struct store_holder *holder, struct err *err)
{
	const struct http_request health = { .method = "GET", .path = "/health" };
	struct http_reply reply = { 0 };
	int rc = http_open(&s->http, holder->address, holder->token, err);

	if (rc)
		return rc;
	http_trust(s->http);
	rc = http_send(s->http, &health, &reply, err);
	http_reply_done(&reply);
	if (rc == ERR_PEER && is_unreachable(err->text)) {
		http_close(s->http);
		s->http = NULL;
		return ERR_BUSY;
	}
	return rc;
}

/* Opens the store and starts to read what is new in its folder. ERR_BUSY: a process holds the store. */
static int open_own_store(struct source *s, const struct store_paths *paths, const char *logdir, struct err *err)
{
	int rc = store_open(&s->api.store,
			    &(struct store_opts){ .db_path = paths->db,
						  .logdir = logdir,
						  .artifacts = paths->artifacts,
						  .artifacts_by_default = true,
						  .read_when_full = true },
			    err);

	if (rc)
		return rc;
	if (store_only_reads(s->api.store)) {
		log_warn("no space left on the disk of %s: its content is shown without what is new in %s", paths->db,
			 logdir);
		return 0;
	}
	if (!logdir)
		return 0;
	return follow_start(
		&s->api.follow, s->api.store,
		&(struct follow_opts){ .logdir = logdir, .poll = true, .once = true, .network = paths->poll }, err);
}

/* Between two processes a holder may appear or disappear at any moment, so this retries for a while. */
static int open_store_or_holder(struct source *s, const struct source_opts *o, struct err *err)
{
	struct store_holder holder;
	struct store_paths paths;
	int rc = store_locate(&paths, o->logdir, o->db, err);

	for (int tries = 0; !rc && tries < SOURCE_TRIES; tries++) {
		if (!store_holder(&holder, paths.db, NULL) && holder.address[0])
			rc = open_holder(s, &holder, err);
		else
			rc = open_own_store(s, &paths, o->logdir, err);
		if (rc != ERR_BUSY)
			return rc;
		rc = 0;
		clock_sleep_s(0.25);
	}
	return rc ? rc : err->code;
}

int source_place(const char **io_db, struct err *err)
{
	const char *env = getenv("DPTRACK_DB");
	bool given = *io_db, password = false;
	int rc;

	if (!given && env && *env)
		*io_db = env;
	if (!store_is_address(*io_db))
		return 0;
	rc = store_address_check(*io_db, &password, err);
	if (!rc && password && given)
		rc = err_set(
			err, ERR_USAGE,
			"--db: every user of this machine can see a password on the command line: put the address into "
			"DPTRACK_DB, or the password into PGPASSWORD or ~/.pgpass");
	return rc;
}

int source_folder(const char *logdir, struct err *err)
{
	struct stat st;

	if (!stat(logdir, &st) && S_ISDIR(st.st_mode))
		return 0;
	return err_set(err, ERR_USAGE,
		       "no folder %s: use --logdir or DPTRACK_RUNS_DIR for the folder of runs, or --url for a server",
		       logdir);
}

int source_open(struct source **ret, const struct source_opts *o, struct err *err)
{
	struct source *s = mem_zalloc(sizeof(*s));
	const char *logdir = o->logdir, *db = o->db;
	char token[HTTP_TOKEN_BYTES];
	int rc;

	rc = o->url ? 0 : source_place(&db, err);
	if (!logdir && !store_is_address(db))
		logdir = run_folders_dir(NULL);
	if (rc) {
		free(s);
		return rc;
	}
	if (o->url && o->logdir)
		rc = err_set(err, ERR_USAGE, "--url and --logdir exclude each other: use one");
	else if (o->url)
		rc = http_open(&s->http, o->url, http_token(o->url, token), err);
	else if (logdir)
		rc = source_folder(logdir, err);
	if (!rc && !s->http)
		rc = open_store_or_holder(s, &(struct source_opts){ .logdir = logdir, .db = db }, err);
	if (!rc && s->api.follow)
		rc = follow_scan_wait(s->api.follow, -1, err);
	if (!rc && s->api.follow)
		store_fold(s->api.store, FOLD_S);
	if (rc) {
		source_close(s);
		return rc;
	}
	*ret = s;
	return 0;
}

void source_close(struct source *s)
{
	if (!s)
		return;
	http_close(s->http);
	follow_stop(s->api.follow);
	store_close(s->api.store);
	free(s);
}

static int pass_body_piece(void *arg, const char *bytes, size_t n, struct err *err)
{
	struct source_pass *p = arg;

	if (*p->status / 100 == 2)
		return p->sink->take(p->sink->arg, bytes, n, err);
	buf_add(&p->refusal, bytes, n);
	return 0;
}

static int pass_http_piece(void *arg, const void *bytes, size_t n)
{
	struct source_pass *p = arg;

	p->rc = p->sink->take(p->sink->arg, bytes, n, p->err);
	return p->rc;
}

/* Fails with the message of an error body, or with the status. */
static int fail_with_reply(const struct http_reply *reply, struct err *err)
{
	int code = reply->status == 404 ? ERR_NOENT : reply->status == 410 ? ERR_GONE
						    : reply->status / 100 == 4 ? ERR_USAGE : ERR_PEER;
	char text[400];

	http_reply_reason(reply, text, sizeof(text));
	return err_set(err, code, "%s", text);
}

/* A hint for a failed connection, chosen by curl's message. */
static const char *connection_advice(const char *why)
{
	if (strstr(why, "expired") || strstr(why, "not yet valid"))
		return ": renew the server's certificate, or check this machine's clock";
	if (strstr(why, "certificate verification failed")) /* GnuTLS, which does not say why */
		return ": set DPTRACK_CA to a file of certificates to trust, or renew the server's certificate";
	if (strstr(why, "certificate"))
		return ": set DPTRACK_CA to a file of certificates to trust";
	return is_unreachable(why) ? ": is dptrack serve running there?" : "";
}

static int send_http_request(struct source *s, const struct local_opts *o, struct source_pass *pass)
{
	struct http_request request = {
		.method = o->method, .path = o->target, .body = o->file ? o->file : o->body,
		.body_bytes = o->file ? o->file_bytes : o->body ? strlen(o->body) : 0,
		.content_type = o->file ? "application/octet-stream" : "application/json", .piece = pass_http_piece,
		.user = pass
	};
	struct http_reply reply = { 0 };
	struct err why = ERR_INIT;
	int rc = http_send(s->http, &request, &reply, &why);

	if (pass->rc)
		return pass->rc; /* the error of the sink is more precise */
	if (rc)
		return err_set(pass->err, rc, "%.400s%s", why.text, rc == ERR_PEER ? connection_advice(why.text) : "");
	if (reply.status / 100 != 2)
		rc = fail_with_reply(&reply, pass->err);
	http_reply_done(&reply);
	return rc;
}

static int send_local_request(struct source *s, const struct local_opts *o, struct source_pass *pass)
{
	struct http_reply reply = { 0 };
	int status = 0, rc;

	pass->status = &status;
	buf_init(&pass->refusal, 1 << 20);
	rc = local_request(&s->api, o, &status, &(struct local_sink){ pass_body_piece, pass }, pass->err);
	reply.status = status;
	reply.body = pass->refusal;
	if (!rc && status / 100 != 2)
		rc = fail_with_reply(&reply, pass->err);
	buf_done(&pass->refusal);
	return rc;
}

int source_send(struct source *s, const struct local_opts *request, const struct local_sink *sink, struct err *err)
{
	struct source_pass pass = { .sink = sink, .err = err };

	return s->http ? send_http_request(s, request, &pass) : send_local_request(s, request, &pass);
}

static int collect_reply(void *arg, const char *bytes, size_t n, struct err *err)
{
	struct buf *b = arg;

	buf_add(b, bytes, n);
	return buf_failed(b) ? err_set(err, ERR_NOMEM, "the reply does not fit into memory") : 0;
}

int source_json(struct source *s, const struct local_opts *request, json_t **ret, struct err *err)
{
	struct buf body;
	json_error_t jerr;
	int rc;

	buf_init(&body, SOURCE_REPLY_MAX);
	rc = source_send(s, request, &(struct local_sink){ collect_reply, &body }, err);
	if (!rc) {
		*ret = json_loadb(body.data ? body.data : "", body.len, 0, &jerr);
		if (!*ret)
			rc = err_set(err, ERR_PEER, "the reply is not JSON: %s", json_error_reason(&jerr));
	}
	buf_done(&body);
	return rc;
}

void source_escape(struct buf *target, const char *text)
{
	text_add_escaped(target, text, "-._~");
}

void source_arg(struct buf *target, const char *name, const char *value)
{
	if (!value)
		return;
	buf_addf(target, "%c%s=", target->data && strchr(target->data, '?') ? '&' : '?', name);
	source_escape(target, value);
}
