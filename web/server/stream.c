/* stream.c: replies that come piece by piece: exports; event streams, which sleep suspended until the store changes;
 * and files from an object store, which sleep until the next piece has come. */
#include "web/server/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tracker/base/clock.h"
#include "web/store/auth/token.h"

enum { STREAM_BLOCK_BYTES = 65536, STREAM_HEARTBEAT_S = 15 };

/* A reply that comes piece by piece. It outlives the exchange, which may end first. */
struct stream {
	struct stream *next, *prev; /* event streams only */
	struct server *srv;
	struct MHD_Connection *conn;
	struct call_stream src;
	struct gzip *gzip;
	struct buf piece, out;
	size_t sent;
	double tick_at_s;
	int fd;
	unsigned tokens; /* generation that its reader was checked against */
	bool ended, suspended, nudged, tick, gone;
};

static void stream_free(void *cls)
{
	struct stream *f = cls;

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
	gzip_free(f->gzip);
	buf_done(&f->piece);
	buf_done(&f->out);
	free(f);
}

/* Suspends an event stream that has nothing to say; false when it was nudged meanwhile. */
static bool stream_sleep(struct stream *f)
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
static int stream_fill(struct stream *f)
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

/* On any thread: the next piece is there. */
static void stream_wake(void *arg)
{
	struct stream *f = arg;

	MHD_resume_connection(f->conn);
}

/* Tokens changed: whoever still may read comes again. */
static bool stream_outlived(const struct stream *f)
{
	return f->tokens != token_generation(f->srv->api.store);
}

static ssize_t stream_read(void *cls, uint64_t pos, char *to, size_t max)
{
	struct stream *f = cls;
	size_t n;
	int rc;

	(void)pos;
	while (f->sent == f->out.len) {
		if (f->ended || (f->src.events && (atomic_load(&f->srv->stopping) || stream_outlived(f))))
			return MHD_CONTENT_READER_END_OF_STREAM;
		if (f->gone)
			return MHD_CONTENT_READER_END_WITH_ERROR;
		rc = stream_fill(f);
		if (rc < 0)
			return MHD_CONTENT_READER_END_WITH_ERROR;
		if (rc == STREAM_IDLE && !f->out.len && stream_sleep(f))
			return 0;
		if (rc == STREAM_LATER && !f->out.len) {
			MHD_suspend_connection(f->conn);
			f->src.later(f->src.state, stream_wake, f);
			return 0;
		}
	}
	n = f->out.len - f->sent < max ? f->out.len - f->sent : max;
	memcpy(to, f->out.data + f->sent, n);
	f->sent += n;
	return (ssize_t)n;
}

/* A suspended connection is watched by nobody: whether its client left must be asked. */
static bool peer_gone(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

void stream_nudge(struct server *s, int how)
{
	double now = clock_mono_s();
	struct stream *f;

	pthread_mutex_lock(&s->lock);
	for (f = s->streams; f; f = f->next) {
		/* while it is suspended its socket is open, and its worker reads none of this */
		bool due = now >= f->tick_at_s, gone = (how & STREAM_NUDGE_PROBE) && f->suspended && peer_gone(f->fd);

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

/* What the call wrote already goes first. */
static bool stream_begin(struct stream *f, const struct buf *first)
{
	if (first->len && f->gzip)
		return gzip_feed(f->gzip, first->data, first->len, false, &f->out);
	buf_add(&f->out, first->data, first->len);
	return !buf_failed(&f->out);
}

struct MHD_Response *stream_response(struct exchange *x, bool gzip)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(x->conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct stream *f = calloc(1, sizeof(*f));
	struct MHD_Response *r = NULL;

	if (!f) {
		x->call.stream.release(x->call.stream.state);
		x->call.stream = (struct call_stream){ 0 };
		return NULL;
	}
	f->srv = x->srv;
	f->conn = x->conn;
	f->fd = info ? info->connect_fd : -1;
	f->src = x->call.stream;
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
	if (stream_begin(f, &x->call.out))
		r = MHD_create_response_from_callback(f->src.sized ? f->src.bytes : MHD_SIZE_UNKNOWN,
						      STREAM_BLOCK_BYTES, stream_read, f, stream_free);
	if (!r)
		stream_free(f);
	else if (f->gzip)
		MHD_add_response_header(r, "Content-Encoding", "gzip");
	return r;
}
