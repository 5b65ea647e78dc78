/* source.c: one way to ask, three places that answer. Knows no command. */
#include "web/cli/source.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tracker/base/clock.h"
#include "web/cli/client.h"
#include "web/store/follow.h"
#include "web/store/store.h"

enum { SOURCE_TRIES = 20 };

#define SOURCE_REPLY_MAX ((size_t)1 << 30)

struct source {
	struct api api; /* store NULL: a server answers */
	struct store_holder holder;
	const char *url;
	const char *token;
};

/* Passes 2xx bodies on and keeps the rest for the message. */
struct source_pass {
	const struct local_sink *sink;
	int *status;
	struct buf refusal;
};

/* Between two processes a holder may appear or go at any moment: look and try again for a while. */
static int source_hold(struct source *s, const struct source_opts *o, struct err *err)
{
	struct store_paths paths;
	int rc, tries;

	rc = store_locate(&paths, o->logdir, o->db, err);
	for (tries = 0; !rc && tries < SOURCE_TRIES; tries++) {
		if (!store_holder(&s->holder, paths.db, NULL) && s->holder.address[0]) {
			s->url = s->holder.address;
			s->token = s->holder.token[0] ? s->holder.token : NULL;
			return 0;
		}
		rc = store_open(&s->api.store, &(struct store_opts){ .db_path = paths.db }, err);
		if (!rc)
			return follow_start(&s->api.follow, s->api.store,
					    &(struct follow_opts){ .logdir = o->logdir, .poll = true, .once = true }, err);
		if (rc != ERR_BUSY)
			return rc;
		rc = 0;
		clock_sleep_s(0.25);
	}
	return rc ? rc : err->code;
}

int source_open(struct source **ret, const struct source_opts *o, struct err *err)
{
	struct source *s = calloc(1, sizeof(*s));
	const char *logdir = o->logdir ? o->logdir : "runs";
	struct stat st;
	int rc = 0;

	if (!s)
		return err_set(err, ERR_NOMEM, "out of memory");
	s->token = getenv("DPTRACK_TOKEN");
	if (o->url && o->logdir)
		rc = err_set(err, ERR_USAGE, "--url and --logdir: name one of them");
	else if (o->url)
		s->url = o->url;
	else if (stat(logdir, &st) || !S_ISDIR(st.st_mode))
		rc = err_set(err, ERR_USAGE, "no folder %s: name the folder of runs with --logdir, or a server with --url", logdir);
	else
		rc = source_hold(s, &(struct source_opts){ .logdir = logdir, .db = o->db }, err);
	if (!rc && s->api.follow)
		rc = follow_scan_wait(s->api.follow, -1, err);
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
	follow_stop(s->api.follow);
	store_close(s->api.store);
	free(s);
}

static int pass_take(void *arg, const char *bytes, size_t n, struct err *err)
{
	struct source_pass *p = arg;

	if (*p->status / 100 == 2)
		return p->sink->take(p->sink->arg, bytes, n, err);
	buf_add(&p->refusal, bytes, n);
	return 0;
}

static int refused(int status, const struct buf *body, struct err *err)
{
	json_t *root = body->data ? json_loadb(body->data, body->len, 0, NULL) : NULL;
	const char *text = json_string_value(json_object_get(json_object_get(root, "error"), "message"));
	int code = status == 404 ? ERR_NOENT : status / 100 == 4 ? ERR_USAGE : ERR_PEER;

	if (text)
		err_set(err, code, "%s", text);
	else
		err_set(err, ERR_PEER, "the server answered with status %d", status);
	json_decref(root);
	return code;
}

int source_send(struct source *s, const struct local_opts *request, const struct local_sink *sink, struct err *err)
{
	int status = 0, rc;
	struct source_pass pass = { .sink = sink, .status = &status };
	struct local_sink inner = { pass_take, &pass };

	buf_init(&pass.refusal, 1 << 20);
	if (s->api.store) {
		/* the body comes after the handler is done, when the status stands */
		rc = local_request(&s->api, request, &status, &inner, err);
	} else {
		rc = client_request(&(struct client_opts){ .url = s->url, .token = s->token, .request = *request },
				    &status, &inner, err);
	}
	if (!rc && status / 100 != 2)
		rc = refused(status, &pass.refusal, err);
	buf_done(&pass.refusal);
	return rc;
}

static int collect(void *arg, const char *bytes, size_t n, struct err *err)
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
	rc = source_send(s, request, &(struct local_sink){ collect, &body }, err);
	if (!rc) {
		*ret = json_loadb(body.data ? body.data : "", body.len, 0, &jerr);
		if (!*ret)
			rc = err_set(err, ERR_PEER, "the reply is no JSON: %s", jerr.text);
	}
	buf_done(&body);
	return rc;
}

void source_arg(struct buf *target, const char *name, const char *value)
{
	buf_addf(target, "%c%s=", target->data && strchr(target->data, '?') ? '&' : '?', name);
	for (; *value; value++) {
		if (isalnum((unsigned char)*value) || strchr("-._~", *value))
			buf_addc(target, *value);
		else
			buf_addf(target, "%%%02X", (unsigned char)*value);
	}
}
