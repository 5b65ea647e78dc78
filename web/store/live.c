/* SPDX-License-Identifier: Apache-2.0 */
/* live.c: a notification says that there are changes, and one row what they are. Without notifications the row is
 * polled twice a second. Notifications are sent in a transaction of their own and at a limited rate, because they
 * would hold up commits inside a write. */

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/thread.h"
#include "tracker/mem/mem.h"
#include "web/store/auth/token.h"
#include "web/store/base/parts.h"
#include "web/store/db/db.h"
#include "web/store/write/committer.h"

#define POLL_MS 500
#define TELL_MS 50  /* between two notifications */
#define AGAIN_S 0.5 /* after a failed connect */

struct store_live {
	struct store *s;
	char address[PATH_MAX];
	pthread_t thread;
	struct db *d;
	int wake; /* eventfd: this process committed, or should stop */
	int watch;
	atomic_bool news, stop;
	sem_t looked;
	int64_t rev, tokens;
	double told_s;
};

/* On the notifying thread: own commits are news to others, received ones are not. */
static void wake_live(void *arg, uint64_t rev)
{
	struct store_live *l = arg;

	(void)rev;
	if (pthread_equal(pthread_self(), l->thread))
		return;
	atomic_store(&l->news, true);
	eventfd_write(l->wake, 1);
}

static int connect_again(struct store_live *l)
{
	int rc;

	db_close(l->d);
	l->d = NULL;
	rc = db_open_reader(&l->d, l->address, NULL);
	return rc ? rc : db_run(l->d, DB_live_listen, NULL, "");
}

static int look_for_other_commits(struct store_live *l)
{
	int64_t rev = l->rev, tokens = l->tokens;
	struct db_rows *q;
	int rc = db_start(l->d, &q, DB_live_get, NULL, "");

	if (rc || (rc = db_next(l->d, q, NULL)) <= 0)
		return rc ? rc : ERR_IO;
	rev = db_i64(q, COL_live_get_rev);
	tokens = db_i64(q, COL_live_get_tokens);
	db_stop(q);
	token_heard(l->s);
	if (tokens != l->tokens)
		token_changed(l->s);
	if (rev != l->rev)
		committer_tell(l->s->writer, (uint64_t)rev);
	l->rev = rev;
	l->tokens = tokens;
	return 0;
}

static int tell_live_watchers(struct store_live *l)
{
	if (clock_mono_s() < l->told_s + TELL_MS * 1e-3 || !atomic_exchange(&l->news, false))
		return 0;
	l->told_s = clock_mono_s();
	return db_run(l->d, DB_live_tell, NULL, "");
}

static void *run_live(void *arg)
{
	struct store_live *l = arg;
	eventfd_t n;

	if (!connect_again(l))
		look_for_other_commits(l);
	sem_post(&l->looked);
	while (!atomic_load(&l->stop)) {
		if ((!l->d || db_lost(l->d)) && connect_again(l)) {
			clock_sleep_s(AGAIN_S);
			continue;
		}
		if (look_for_other_commits(l) || tell_live_watchers(l))
			continue;
		db_wait(l->d, l->wake, atomic_load(&l->news) ? TELL_MS : POLL_MS);
		eventfd_read(l->wake, &n);
	}
	return NULL;
}

/* Returns after the first look, which reports changed tokens and so ends streams that are open by then. */
int live_start(struct store_live **ret, struct store *s, const char *address, struct err *err)
{
	struct store_live *l = mem_zalloc(sizeof(*l));

	l->s = s;
	l->tokens = -1;
	snprintf(l->address, sizeof(l->address), "%s", address);
	sem_init(&l->looked, 0, 0);
	l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->wake < 0 || thread_start(&l->thread, run_live, l)) {
		if (l->wake >= 0)
			close(l->wake);
		free(l);
		return err_set(err, ERR_IO, "store: cannot start a thread");
	}
	sem_wait(&l->looked);
	l->watch = committer_watch(s->writer, wake_live, l);
	*ret = l;
	return 0;
}

void live_stop(struct store_live *l)
{
	if (!l)
		return;
	committer_unwatch(l->s->writer, l->watch);
	atomic_store(&l->stop, true);
	eventfd_write(l->wake, 1);
	pthread_join(l->thread, NULL);
	db_close(l->d);
	close(l->wake);
	sem_destroy(&l->looked);
	free(l);
}
