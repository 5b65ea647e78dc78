/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c: replies that are produced piece by piece: exports; event streams, which are suspended until the store
 * changes; and files of an object store, which are suspended until the next piece arrives. */
#include "web/server/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tracker/base/clock.h"
#include "tracker/mem/mem.h"

enum { STREAM_BLOCK_BYTES = 65536, STREAM_HEARTBEAT_S = 15 };

/* A reply that is produced piece by piece. It outlives the exchange, which may end first. */
struct reply_stream {
	struct reply_stream *next, *prev; /* event streams only */
	struct server *srv;
	struct MHD_Connection *conn;
	struct call_stream src;
	struct store *store; /* of the call, which src may use */
	struct gzip *gzip;
	struct buf piece, out;
	size_t sent;
	double tick_at_s;
	int fd;
	unsigned tokens; /* token generation when the reader's access was checked */
	bool ended, suspended, nudged, tick, gone;
	bool filled; /* the pool has fetched a piece; its result is in rc */
	int rc;
	struct thread_pool_task task;
};

static void free_stream(void *cls)
{
	struct reply_stream *f = cls;

	if (f->src.events) {
		pthread_mutex_lock(&f->srv->lock);
		if (f->prev)
			f->prev->next = f->next;
		else
			f->srv->streams = f->next;
		if (f->next)
			f->next->prev = f->prev;
		pthread_mutex_unlock(&f->srv->lock);
		atomic_fetch_sub(&f->srv->counters.streams, 1);
	}
	f->src.release(f->src.state);
	store_release(f->store);
	gzip_free(f->gzip);
	buf_done(&f->piece);
	buf_done(&f->out);
	free(f);
}

/* Suspends an event stream that has no output. Returns false if it was nudged in between. */
static bool suspend_idle_stream(struct reply_stream *f)
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
static int fill_stream_piece(struct reply_stream *f)
{
	struct buf *to = f->gzip ? &f->piece : &f->out;
	bool tick = f->tick;
	int rc;

	buf_reset(&f->out);
	buf_reset(&f->piece);
	f->sent = 0;
	f->tick = false;
	rc = f->src.fill(f->src.state, to, tick, NULL);
	if (rc < 0 || buf_failed(to))
		return -1;
	if (f->gzip && !gzip_feed(f->gzip, f->piece.data, f->piece.len, rc == STREAM_END, &f->out))
		return -1;
	f->ended = rc == STREAM_END;
	if (f->src.events && f->out.len) {
		pthread_mutex_lock(&f->srv->lock);
		f->tick_at_s = clock_mono_s() + STREAM_HEARTBEAT_S;
		pthread_mutex_unlock(&f->srv->lock);
	}
	return rc;
}

/* On the pool, while the connection is suspended. */
static void run_fill(void *arg)
{
	struct reply_stream *f = arg;

	f->rc = fill_stream_piece(f);
	f->filled = true;
	MHD_resume_connection(f->conn);
}

/* Called on any thread: the next piece is available. */
static void resume_stream(void *arg)
{
	struct reply_stream *f = arg;

	MHD_resume_connection(f->conn);
}

/* Returns true after a change of any token: the stream ends, and clients that still have access reconnect. */
static bool has_token_change(const struct reply_stream *f)
{
	return f->tokens != token_generation(f->srv->api.store);
}

/* Callback of libmicrohttpd: copies the next bytes; has the pool fetch a piece when all are sent, and suspends until it
 * is there. */
static ssize_t read_stream(void *cls, uint64_t pos, char *to, size_t max)
{
	struct reply_stream *f = cls;
	size_t n;
	int rc;

	(void)pos;
	while (f->sent == f->out.len) {
		if (f->ended || (f->src.events && (atomic_load(&f->srv->stopping) || has_token_change(f))))
			return MHD_CONTENT_READER_END_OF_STREAM;
		if (f->gone)
			return MHD_CONTENT_READER_END_WITH_ERROR;
		if (!f->filled) {
			MHD_suspend_connection(f->conn);
			thread_pool_give(f->srv->pool, &f->task);
			return 0;
		}
		f->filled = false;
		rc = f->rc;
		if (rc < 0)
			return MHD_CONTENT_READER_END_WITH_ERROR;
		if (rc == STREAM_IDLE && !f->out.len && suspend_idle_stream(f))
			return 0;
		if (rc == STREAM_LATER && !f->out.len) {
			MHD_suspend_connection(f->conn);
			f->src.later(f->src.state, resume_stream, f);
			return 0;
		}
	}
	n = f->out.len - f->sent < max ? f->out.len - f->sent : max;
	memcpy(to, f->out.data + f->sent, n);
	f->sent += n;
	return (ssize_t)n;
}

/* libmicrohttpd does not watch a suspended connection, so it is polled for a client that left. */
static bool has_stream_client_left(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

void stream_nudge(struct server *s, int how)
{
	double now = clock_mono_s();
	struct reply_stream *f;

	pthread_mutex_lock(&s->lock);
	for (f = s->streams; f; f = f->next) {
		/* while the stream is suspended its socket is open and its worker reads none of these members */
		bool due = now >= f->tick_at_s,
		     gone = (how & STREAM_NUDGE_PROBE) && f->suspended && has_stream_client_left(f->fd);

		if (!(how & STREAM_NUDGE_ALL) && !due && !gone)
			continue;
		if (due)
			f->tick_at_s = now + STREAM_HEARTBEAT_S;
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

/* Writes what the call wrote already in front of the stream. */
static bool write_stream_prefix(struct reply_stream *f, const struct buf *first)
{
	if (first->len && f->gzip)
		return gzip_feed(f->gzip, first->data, first->len, false, &f->out);
	buf_add(&f->out, first->data, first->len);
	return !buf_failed(&f->out);
}

struct MHD_Response *stream_response(struct exchange *x, bool gzip)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(x->conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct reply_stream *f = mem_zalloc(sizeof(*f));
	struct MHD_Response *r = NULL;

	f->srv = x->srv;
	f->conn = x->conn;
	f->fd = info ? info->connect_fd : -1;
	f->src = x->call.stream;
	f->store = store_hold(x->call.api->store);
	f->task = (struct thread_pool_task){ .fn = run_fill, .arg = f };
	f->tokens = x->tokens;
	f->tick_at_s = clock_mono_s() + STREAM_HEARTBEAT_S;
	x->call.stream = (struct call_stream){ 0 };
	buf_init(&f->piece, EXCHANGE_OUT_MAX);
	buf_init(&f->out, EXCHANGE_OUT_MAX);
	f->gzip = gzip ? gzip_new(1) : NULL;
	if (f->src.events) {
		pthread_mutex_lock(&x->srv->lock);
		f->next = x->srv->streams;
		if (f->next)
			f->next->prev = f;
		x->srv->streams = f;
		pthread_mutex_unlock(&x->srv->lock);
		atomic_fetch_add(&x->srv->counters.streams, 1);
	}
	if (write_stream_prefix(f, &x->call.out))
		r = MHD_create_response_from_callback(f->src.sized ? f->src.bytes : MHD_SIZE_UNKNOWN,
						      STREAM_BLOCK_BYTES, read_stream, f, free_stream);
	if (!r)
		free_stream(f);
	else if (f->gzip)
		MHD_add_response_header(r, "Content-Encoding", "gzip");
	return r;
}
