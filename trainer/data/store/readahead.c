/* SPDX-License-Identifier: Apache-2.0 */
/* readahead.c: one stream per lane of an order; the least recently used one is replaced. */
#include "trainer/data/store/readahead.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tracker/mem/mem.h"

#define PLACES 128
/* largest distance from a stream's end: headers, labels, and samples that other threads read */
#define GAP ((uint64_t)1 << 20)

struct read_stream {
	int object, fd; /* -1: none */
	int users;
	uint64_t end;  /* of its farthest range */
	uint64_t turn; /* time of last use */
};

struct readahead {
	pthread_mutex_t lock;
	uint64_t turn;
	struct read_stream stream[PLACES];
};

struct readahead *readahead_new(void)
{
	struct readahead *s = mem_zalloc(sizeof(*s));

	pthread_mutex_init(&s->lock, NULL);
	for (int i = 0; i < PLACES; i++)
		s->stream[i].object = s->stream[i].fd = -1;
	return s;
}

void readahead_free(struct readahead *s)
{
	if (!s)
		return;
	for (int i = 0; i < PLACES; i++)
		if (s->stream[i].fd >= 0)
			close(s->stream[i].fd);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* Bytes between a range and a stream's end, which several threads may advance. */
static uint64_t measure_stream_distance(const struct read_stream *one, const struct objects_range *r)
{
	if (one->object != r->object)
		return UINT64_MAX;
	return r->at > one->end ? r->at - one->end : one->end - r->at;
}

/* Under the lock. Returns the stream that the range continues, or a slot for a new one; NULL: all are in use. */
static struct read_stream *find_nearest_stream(struct readahead *s, const struct objects_range *r, bool *ret_follows)
{
	struct read_stream *nearest = &s->stream[0], *oldest = NULL;

	for (int i = 0; i < PLACES; i++) {
		struct read_stream *one = &s->stream[i];

		if (measure_stream_distance(one, r) < measure_stream_distance(nearest, r))
			nearest = one;
		if (!one->users && (!oldest || one->turn < oldest->turn))
			oldest = one;
	}
	*ret_follows = measure_stream_distance(nearest, r) <= GAP;
	return *ret_follows ? nearest : oldest;
}

static void move_stream_to(struct readahead *s, struct read_stream *one, const struct objects_range *r, bool follows)
{
	const uint64_t end = r->at + r->n;

	one->object = r->object;
	one->end = follows && one->end > end ? one->end : end;
	one->turn = ++s->turn;
}

/* Opens the stream's own descriptor at its second range. If another thread was faster, uses that one. */
static int open_stream_fd(struct readahead *s, struct read_stream *one, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), kept;

	if (fd < 0)
		return -1;
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	pthread_mutex_lock(&s->lock);
	kept = one->fd;
	if (kept < 0)
		one->fd = fd;
	pthread_mutex_unlock(&s->lock);
	if (kept >= 0)
		close(fd);
	return kept < 0 ? fd : kept;
}

void readahead_take(struct readahead *s, const struct objects_range *r, const char *path, struct stream_place *ret)
{
	struct read_stream *one;
	bool follows = false;
	int old = -1;

	*ret = (struct stream_place){ .number = -1, .fd = -1 };
	if (r->alone)
		return;
	pthread_mutex_lock(&s->lock);
	one = find_nearest_stream(s, r, &follows);
	if (one) {
		one->users++;
		move_stream_to(s, one, r, follows);
		ret->number = (int)(one - s->stream);
		old = one->fd;
		if (!follows)
			one->fd = -1;
	}
	pthread_mutex_unlock(&s->lock);
	if (follows)
		ret->fd = old >= 0 ? old : open_stream_fd(s, one, path);
	else if (old >= 0)
		close(old); /* of the replaced stream, which is unused */
}

void readahead_give(struct readahead *s, const struct stream_place *p)
{
	if (p->number < 0)
		return;
	pthread_mutex_lock(&s->lock);
	s->stream[p->number].users--;
	pthread_mutex_unlock(&s->lock);
}

bool readahead_follow(struct readahead *s, const struct objects_range *r)
{
	struct read_stream *one;
	bool follows = false;

	pthread_mutex_lock(&s->lock);
	one = find_nearest_stream(s, r, &follows);
	if (one)
		move_stream_to(s, one, r, follows);
	pthread_mutex_unlock(&s->lock);
	return follows;
}
