/* SPDX-License-Identifier: Apache-2.0 */
/* local.c: a call without HTTP: routes, runs the handler and passes on the reply, all on the caller's thread. */
#include "web/server/local.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "web/server/gate.h"

#define LOCAL_REPLY_MAX ((size_t)1 << 30)
#define PIECE_BYTES ((size_t)1 << 20)

struct local {
	struct call call; /* must be the first member: calls are cast to this struct */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool woken;
};

static const char *get_local_header(const struct call *c, const char *name)
{
	(void)c;
	return strcmp(name, "Content-Type") ? NULL : "application/json";
}

static void wake_local_call(struct call *c)
{
	struct local *l = (struct local *)(void *)c;

	pthread_mutex_lock(&l->lock);
	l->woken = true;
	pthread_cond_signal(&l->cond);
	pthread_mutex_unlock(&l->lock);
}

static const struct call_host local_host = { .header = get_local_header, .wake = wake_local_call };

static void wait_for_local_call(struct local *l)
{
	pthread_mutex_lock(&l->lock);
	while (!l->woken)
		pthread_cond_wait(&l->cond, &l->lock);
	l->woken = false;
	pthread_mutex_unlock(&l->lock);
}

static void continue_local_stream(void *arg)
{
	wake_local_call(arg);
}

static int send_local_buffer(const struct buf *b, const struct local_sink *sink, struct err *err)
{
	if (buf_failed(b))
		return err_set(err, ERR_NOMEM, "the reply does not fit into memory");
	return b->len ? sink->take(sink->arg, b->data, b->len, err) : 0;
}

static int send_local_stream(struct local *l, const struct local_sink *sink, struct err *err)
{
	struct call_stream *s = &l->call.stream;
	struct buf *out = &l->call.out;
	int next = STREAM_MORE, rc = send_local_buffer(out, sink, err);

	while (!rc && (next == STREAM_MORE || next == STREAM_LATER)) {
		buf_reset(out);
		next = s->fill(s->state, out, false, err);
		rc = next < 0 ? next : send_local_buffer(out, sink, err);
		if (!rc && next == STREAM_LATER) {
			s->later(s->state, continue_local_stream, l);
			wait_for_local_call(l);
		}
	}
	s->release(s->state);
	return rc;
}

static int send_local_file(struct local *l, const struct local_sink *sink, struct err *err)
{
	struct call_file *f = &l->call.file;
	char room[65536];
	ssize_t n;
	int rc = 0;

	while (!rc && f->bytes) {
		n = pread(f->fd, room, f->bytes < sizeof(room) ? f->bytes : sizeof(room), (off_t)f->from);
		if (n <= 0)
			return err_set(err, ERR_IO, "the file of the reply ended early");
		rc = sink->take(sink->arg, room, (size_t)n, err);
		f->from += (uint64_t)n;
		f->bytes -= (uint64_t)n;
	}
	return rc;
}

/* Feeds the file to a route that accepts files. */
static enum call_next feed_local_body(struct local *l, const struct local_opts *o)
{
	enum call_next (*whole)(struct call * c) = l->call.resume;
	size_t at = 0, n;
	int rc;

	while (at < o->file_bytes) {
		n = o->file_bytes - at < PIECE_BYTES ? o->file_bytes - at : PIECE_BYTES;
		rc = l->call.take(&l->call, (const char *)o->file + at, n);
		if (rc < 0)
			return CALL_DONE;
		if (rc == CALL_LATER)
			wait_for_local_call(l);
		else
			at += n;
	}
	return whole(&l->call);
}

/* Finds the route and runs its handler to the end. */
static void dispatch_local_call(struct local *l, const struct local_opts *o)
{
	enum call_method m = METHOD_GET;
	struct router_match match;
	enum call_next next;

	while (m < METHOD_DELETE && strcmp(call_method_name(m), o->method))
		m++;
	if (!router_find(&match, &l->call, m, o->target) || !match.route) {
		call_fail(&l->call, match.code, NULL, "%s", match.why);
		return;
	}
	l->call.route = match.route;
	if (match.route->body_max <= CALL_BUFFERED_MAX) {
		l->call.body = o->body ? o->body : "";
		l->call.body_len = strlen(l->call.body);
	}
	next = match.route->handler(&l->call);
	if (next == CALL_BODY)
		next = feed_local_body(l, o);
	for (; next == CALL_WAIT; next = l->call.resume(&l->call))
		wait_for_local_call(l);
}

int local_request(const struct api *api, const struct local_opts *o, int *ret_status, const struct local_sink *sink,
		  struct err *err)
{
	struct local l = { .call = { .api = api, .host = &local_host, .arena = arena_new(), .status = 200 } };
	int rc = 0;

	pthread_mutex_init(&l.lock, NULL);
	pthread_cond_init(&l.cond, NULL);
	buf_init(&l.call.out, LOCAL_REPLY_MAX);
	dispatch_local_call(&l, o);
	*ret_status = l.call.status;
	if (l.call.stream.fill)
		rc = send_local_stream(&l, sink, err);
	else if (l.call.file.set)
		rc = send_local_file(&l, sink, err);
	else if (l.call.fixed.bytes)
		rc = sink->take(sink->arg, l.call.fixed.bytes, l.call.fixed.len, err);
	else
		rc = send_local_buffer(&l.call.out, sink, err);
	call_finish(&l.call);
	buf_done(&l.call.out);
	pthread_cond_destroy(&l.cond);
	pthread_mutex_destroy(&l.lock);
	arena_free(l.call.arena);
	return rc;
}
