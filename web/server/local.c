/* local.c: a call without HTTP: route, handler, reply, all on the caller's thread. */
#include "web/server/local.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "web/server/router.h"

#define LOCAL_REPLY_MAX ((size_t)1 << 30)
#define PIECE_BYTES ((size_t)1 << 20)

struct local {
	struct call call; /* first: a call is cast back to it */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool woken;
};

static const char *local_header(const struct call *c, const char *name)
{
	(void)c;
	return strcmp(name, "Content-Type") ? NULL : "application/json";
}

static void local_wake(struct call *c)
{
	struct local *l = (struct local *)(void *)c;

	pthread_mutex_lock(&l->lock);
	l->woken = true;
	pthread_cond_signal(&l->cond);
	pthread_mutex_unlock(&l->lock);
}

static const struct call_host local_host = { .header = local_header, .wake = local_wake };

static void local_wait(struct local *l)
{
	pthread_mutex_lock(&l->lock);
	while (!l->woken)
		pthread_cond_wait(&l->cond, &l->lock);
	l->woken = false;
	pthread_mutex_unlock(&l->lock);
}

static void local_more(void *arg)
{
	local_wake(arg);
}

static int local_send(const struct buf *b, const struct local_sink *sink, struct err *err)
{
	if (buf_failed(b))
		return err_set(err, ERR_NOMEM, "the reply does not fit into memory");
	return b->len ? sink->take(sink->arg, b->data, b->len, err) : 0;
}

static int local_stream(struct local *l, const struct local_sink *sink, struct err *err)
{
	struct call_stream *s = &l->call.stream;
	struct buf *out = &l->call.out;
	int next = STREAM_MORE, rc = local_send(out, sink, err);

	while (!rc && (next == STREAM_MORE || next == STREAM_LATER)) {
		buf_reset(out);
		next = s->fill(s->state, out, false, err);
		rc = next < 0 ? next : local_send(out, sink, err);
		if (!rc && next == STREAM_LATER) {
			s->later(s->state, local_more, l);
			local_wait(l);
		}
	}
	s->release(s->state);
	return rc;
}

static int local_file(struct local *l, const struct local_sink *sink, struct err *err)
{
	struct call_file *f = &l->call.file;
	char room[65536];
	ssize_t n;
	int rc = 0;

	while (!rc && f->bytes) {
		n = pread(f->fd, room, f->bytes < sizeof(room) ? f->bytes : sizeof(room), (off_t)f->from);
		if (n <= 0)
			return err_set(err, ERR_IO, "the reply broke off");
		rc = sink->take(sink->arg, room, (size_t)n, err);
		f->from += (uint64_t)n;
		f->bytes -= (uint64_t)n;
	}
	return rc;
}

/* The body of a route that takes files. */
static enum call_next local_body(struct local *l, const struct local_opts *o)
{
	enum call_next (*whole)(struct call *c) = l->call.resume;
	size_t at = 0, n;
	int rc;

	while (at < o->file_bytes) {
		n = o->file_bytes - at < PIECE_BYTES ? o->file_bytes - at : PIECE_BYTES;
		rc = l->call.take(&l->call, (const char *)o->file + at, n);
		if (rc < 0)
			return CALL_DONE;
		if (rc == CALL_LATER)
			local_wait(l);
		else
			at += n;
	}
	return whole(&l->call);
}

static void local_dispatch(struct local *l, const struct local_opts *o)
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
		next = local_body(l, o);
	for (; next == CALL_WAIT; next = l->call.resume(&l->call))
		local_wait(l);
}

int local_request(const struct api *api, const struct local_opts *o, int *ret_status, const struct local_sink *sink,
		  struct err *err)
{
	struct local l = { .call = { .api = api, .host = &local_host, .arena = arena_new(), .status = 200 } };
	int rc = 0;

	if (!l.call.arena)
		return err_set(err, ERR_NOMEM, "out of memory");
	pthread_mutex_init(&l.lock, NULL);
	pthread_cond_init(&l.cond, NULL);
	buf_init(&l.call.out, LOCAL_REPLY_MAX);
	local_dispatch(&l, o);
	*ret_status = l.call.status;
	if (l.call.stream.fill)
		rc = local_stream(&l, sink, err);
	else if (l.call.file.set)
		rc = local_file(&l, sink, err);
	else if (l.call.fixed)
		rc = sink->take(sink->arg, l.call.fixed, l.call.fixed_len, err);
	else
		rc = local_send(&l.call.out, sink, err);
	call_finish(&l.call);
	buf_done(&l.call.out);
	pthread_cond_destroy(&l.cond);
	pthread_mutex_destroy(&l.lock);
	arena_free(l.call.arena);
	return rc;
}
