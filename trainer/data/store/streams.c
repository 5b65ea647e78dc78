/* streams.c: as many places as lanes of an order need, the one that was used longest ago going first. */
#include "trainer/data/store/streams.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define PLACES 128
#define GAP ((uint64_t)256 << 10) /* between two ranges of a stream: headers, labels, samples of the other split */

struct stream {
	int object, fd; /* -1: none */
	bool taken;
	uint64_t next; /* byte behind its last range */
	uint64_t turn; /* when it was used */
};

struct streams {
	pthread_mutex_t lock;
	uint64_t turn;
	struct stream stream[PLACES];
};

struct streams *streams_new(void)
{
	struct streams *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	for (int i = 0; i < PLACES; i++)
		s->stream[i].object = s->stream[i].fd = -1;
	return s;
}

void streams_free(struct streams *s)
{
	if (!s)
		return;
	for (int i = 0; i < PLACES; i++)
		if (s->stream[i].fd >= 0)
			close(s->stream[i].fd);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* Under the lock: the stream that the range goes on with, or the place where one begins; NULL: all are taken. */
static struct stream *find(struct streams *s, const struct objects_range *r, bool *ret_follows)
{
	struct stream *oldest = NULL;

	for (int i = 0; i < PLACES; i++) {
		struct stream *one = &s->stream[i];

		if (one->taken)
			continue;
		*ret_follows = one->object == r->object && r->at >= one->next && r->at - one->next <= GAP;
		if (*ret_follows)
			return one;
		if (!oldest || one->turn < oldest->turn)
			oldest = one;
	}
	return oldest;
}

static void go_on(struct streams *s, struct stream *one, const struct objects_range *r)
{
	one->object = r->object;
	one->next = r->at + r->n;
	one->turn = ++s->turn;
}

void streams_take(struct streams *s, const struct objects_range *r, const char *path, struct stream_place *ret)
{
	struct stream *one;
	bool follows = false;
	int old = -1;

	*ret = (struct stream_place){ .number = -1, .fd = -1 };
	if (r->alone)
		return;
	pthread_mutex_lock(&s->lock);
	one = find(s, r, &follows);
	if (one) {
		one->taken = true;
		go_on(s, one, r);
		ret->number = (int)(one - s->stream);
		old = one->fd;
	}
	pthread_mutex_unlock(&s->lock);
	if (!one || (follows && old >= 0)) {
		ret->fd = old;
		return;
	}
	if (old >= 0)
		close(old);
	one->fd = follows ? open(path, O_RDONLY | O_CLOEXEC) : -1; /* the place is taken: nobody else's */
	if (one->fd >= 0)
		posix_fadvise(one->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	ret->fd = one->fd;
}

void streams_give(struct streams *s, const struct stream_place *p)
{
	if (p->number < 0)
		return;
	pthread_mutex_lock(&s->lock);
	s->stream[p->number].taken = false;
	pthread_mutex_unlock(&s->lock);
}

bool streams_follow(struct streams *s, const struct objects_range *r)
{
	struct stream *one;
	bool follows = false;

	pthread_mutex_lock(&s->lock);
	one = find(s, r, &follows);
	if (one)
		go_on(s, one, r);
	pthread_mutex_unlock(&s->lock);
	return follows;
}
