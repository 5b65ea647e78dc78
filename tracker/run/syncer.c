/* syncer.c: the sync thread; it has at most one request. */
#include "tracker/run/syncer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/thread.h"

#define SYNC_S 1.0
#define REMOVED "the journal was removed while it was being written"
#define SLOW_SHARE 10.0 /* pause this many times as long as a sync took */

struct syncer {
	struct warn *warn;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int fd; /* to sync; -1: none */
	bool stop;
	double due_s;
	bool removed; /* the file of the last sync has been unlinked */
};

static void sync_journal_file(struct syncer *s, int fd)
{
	struct err err = ERR_INIT;
	struct stat st;

	s->removed = false;
	if (fdatasync(fd)) {
		err_set_errno(&err, errno, "cannot sync the journal");
		warn_post(s->warn, WARN_SYNC, "%s", err.text);
	} else if (!fstat(fd, &st) && !st.st_nlink) {
		s->removed = true;
		warn_post(s->warn, WARN_SYNC, REMOVED);
	}
}

/* The thread: waits for a descriptor, syncs and closes it, and computes when the next sync is due. */
static void *run_syncer(void *arg)
{
	struct syncer *s = arg;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		double start, took;

		while (s->fd < 0 && !s->stop)
			pthread_cond_wait(&s->changed, &s->lock);
		if (s->fd < 0)
			break;
		pthread_mutex_unlock(&s->lock);
		start = clock_mono_s();
		sync_journal_file(s, s->fd); /* no other thread changes fd until it is -1 again */
		close(s->fd);
		took = clock_mono_s() - start;
		pthread_mutex_lock(&s->lock);
		s->fd = -1;
		pthread_cond_signal(&s->changed);
		s->due_s = start + took + (took * SLOW_SHARE > SYNC_S ? took * SLOW_SHARE : SYNC_S);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

int syncer_start(struct syncer **ret, struct warn *warn, struct err *err)
{
	struct syncer *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return err_nomem(err, NULL);
	s->warn = warn;
	s->fd = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	rc = thread_start(&s->thread, run_syncer, s);
	if (rc) {
		free(s);
		return err_set_errno(err, rc, "cannot start the sync thread");
	}
	*ret = s;
	return 0;
}

bool syncer_due(struct syncer *s)
{
	bool due;

	pthread_mutex_lock(&s->lock);
	due = s->fd < 0 && clock_mono_s() >= s->due_s;
	pthread_mutex_unlock(&s->lock);
	return due;
}

void syncer_post(struct syncer *s, int fd)
{
	if (fd < 0)
		return;
	pthread_mutex_lock(&s->lock);
	s->fd = fd;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

int syncer_stop(struct syncer *s, int fd, struct err *err)
{
	int rc;

	pthread_mutex_lock(&s->lock);
	while (s->fd >= 0)
		pthread_cond_wait(&s->changed, &s->lock);
	s->fd = fd;
	s->stop = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	rc = s->removed ? err_set(err, ERR_IO, REMOVED) : 0;
	free(s);
	return rc;
}
