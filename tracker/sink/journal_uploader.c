/* SPDX-License-Identifier: Apache-2.0 */
/* journal_uploader.c: the thread that sends journals. One lock protects its state; requests are made without it. */
#include "tracker/sink/sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/array.h"
#include "tracker/base/clock.h"
#include "tracker/base/thread.h"
#include "tracker/sink/worker.h"

#define EAGER_BYTES (256u << 10)
#define BACKOFF_FIRST_S 0.5
#define BACKOFF_MAX_S 30.0
#define RETRY_AFTER_MAX_S 120.0
#define CLOSING_BACKOFF_S 0.5 /* while a caller waits in close */
#define IDLE_S 60.0

struct spooled_journal {
	struct sender *sender; /* used by the thread only */
	char writer_id[33];
	uint64_t bytes;	  /* in the file */
	uint64_t durable; /* acknowledged by the server */
	bool adopted;	  /* written by another process; may end in an incomplete record */
};

struct journal_uploader {
	struct worker worker;
	char run_id[33];
	struct http *http;
	/* protected by the worker's lock */
	struct spooled_journal *journal;
	unsigned journals, room;
	/* used by the thread only */
	double backoff_s;
	bool failing;
};

static void uplink_free(void *own)
{
	struct journal_uploader *u = own;

	for (unsigned i = 0; i < u->journals; i++)
		sender_free(u->journal[i].sender);
	free(u->journal);
	http_close(u->http);
	worker_done(&u->worker);
	free(u);
}

/* Returns the number of unsent bytes, and the first journal that has any. The caller holds the lock. */
static uint64_t count_pending_bytes(const struct journal_uploader *u, unsigned *ret_first)
{
	uint64_t sum = 0;

	for (unsigned i = u->journals; i-- > 0;) {
		if (u->journal[i].durable >= u->journal[i].bytes)
			continue;
		*ret_first = i;
		sum += u->journal[i].bytes - u->journal[i].durable;
	}
	return sum;
}

static void report_failure(struct journal_uploader *u, const struct err *err)
{
	char text[640];

	if (u->failing)
		return;
	u->failing = true;
	snprintf(text, sizeof(text), "%s; the journal stays on disk and is sent again later", err->text);
	worker_say(&u->worker, text);
}

static void report_recovery(struct journal_uploader *u)
{
	char text[320];

	if (!u->failing)
		return;
	u->failing = false;
	snprintf(text, sizeof(text), "the server %s accepts the journal again", http_url(u->http));
	worker_say(&u->worker, text);
}

/* Varies the time by up to a quarter, so that many ranks spread out. */
static double add_jitter(double s)
{
	return s * (0.75 + 0.5 * (double)(clock_mono_ns() / 1000 % 1000) / 1000);
}

/* Returns the pause after a failure and doubles the next one. */
static double advance_backoff(struct journal_uploader *u, enum sender_step step, double asked_s)
{
	double wait_s = add_jitter(u->backoff_s);

	u->backoff_s = u->backoff_s * 2 > BACKOFF_MAX_S ? BACKOFF_MAX_S : u->backoff_s * 2;
	if (step != SENDER_RETRY)
		wait_s = BACKOFF_MAX_S;
	if (asked_s > wait_s)
		wait_s = asked_s > RETRY_AFTER_MAX_S ? RETRY_AFTER_MAX_S : asked_s;
	return wait_s;
}

/* Makes one request and returns the time of the next one. The caller holds the lock, which is released during the
 * request. */
static double send_journal(struct journal_uploader *u, unsigned which)
{
	struct sender *s = u->journal[which].sender;
	double deadline_s = u->worker.stop ? u->worker.deadline_s : 0, asked_s = 0, next_s;
	bool adopted = u->journal[which].adopted;
	struct err err = ERR_INIT;
	enum sender_step step;

	sender_limit(s, u->journal[which].bytes);
	pthread_mutex_unlock(&u->worker.lock);
	step = sender_step(s, u->http, deadline_s, &asked_s, &err);
	next_s = clock_mono_s();
	if (step == SENDER_SENT) {
		next_s += add_jitter(sender_interval_s(s)); /* used while few bytes are pending */
		u->backoff_s = BACKOFF_FIRST_S;
		report_recovery(u);
	} else if (step != SENDER_LOCAL || !adopted) {
		report_failure(u, &err);
		next_s += advance_backoff(u, step, asked_s);
	} else {
		next_s += SENDER_INTERVAL_S;
	}
	pthread_mutex_lock(&u->worker.lock);
	u->journal[which].durable = sender_durable(s);
	if (step == SENDER_LOCAL && adopted)
		u->journal[which].bytes = u->journal[which].durable;
	return next_s;
}

static double compute_closing_due(double next_s, double paused_s)
{
	return paused_s + CLOSING_BACKOFF_S < next_s ? paused_s + CLOSING_BACKOFF_S : next_s;
}

/* Waits until bytes are due; returns false if the thread must end. The caller holds the lock. */
static bool wait_for_bytes(struct journal_uploader *u, double next_s, bool backing_off, unsigned *ret_which)
{
	double paused_s = clock_mono_s();

	for (;;) {
		double now = clock_mono_s();
		uint64_t waiting = count_pending_bytes(u, ret_which);
		double due_s = next_s, until_s;

		if (u->worker.stop && (!waiting || now >= u->worker.deadline_s))
			return false;
		if (u->worker.stop)
			due_s = compute_closing_due(next_s, backing_off ? paused_s : now - CLOSING_BACKOFF_S);
		else if (!backing_off && waiting >= EAGER_BYTES)
			due_s = now;
		if (waiting && now >= due_s)
			return true;
		until_s = u->worker.stop && u->worker.deadline_s < due_s ? u->worker.deadline_s : due_s;
		cond_wait_until(&u->worker.changed, &u->worker.lock, waiting ? until_s : now + IDLE_S);
	}
}

static void uplink_run(void *own)
{
	struct journal_uploader *u = own;
	double next_s = 0;
	unsigned which = 0;

	u->backoff_s = BACKOFF_FIRST_S;
	while (wait_for_bytes(u, next_s, u->failing, &which))
		next_s = send_journal(u, which);
}

int journal_uploader_start(struct journal_uploader **ret, const struct journal_uploader_opts *opts, struct err *err)
{
	struct journal_uploader *u = calloc(1, sizeof(*u));
	int rc;

	if (!u)
		return err_nomem(err, NULL);
	worker_init(&u->worker, &(struct worker_opts){ .name = "dptrack-send", .own = u, .run = uplink_run,
						       .free = uplink_free, .notice = opts->notice,
						       .user = opts->user });
	snprintf(u->run_id, sizeof(u->run_id), "%s", opts->run_id);
	rc = http_open(&u->http, opts->url, opts->token, err);
	if (!rc)
		rc = worker_start(&u->worker, err);
	if (rc) {
		uplink_free(u);
		return rc;
	}
	*ret = u;
	return 0;
}

/* Finds or adds the journal of this writer; NULL without memory. The caller holds the lock. */
static struct spooled_journal *find_journal(struct journal_uploader *u, const char *path, const char *writer_id)
{
	struct spooled_journal *j;
	struct err err;

	for (unsigned i = u->journals; i-- > 0;)
		if (!strcmp(u->journal[i].writer_id, writer_id))
			return &u->journal[i];
	if (!array_reserve(&u->journal, &u->room, u->journals + 1))
		return NULL;
	j = &u->journal[u->journals];
	*j = (struct spooled_journal){ NULL };
	if (sender_new(&j->sender, path, u->run_id, writer_id, &err))
		return NULL;
	snprintf(j->writer_id, sizeof(j->writer_id), "%s", writer_id);
	u->journals++;
	return j;
}

void journal_uploader_advance(struct journal_uploader *u, const char *path, const char *writer_id, uint64_t bytes)
{
	struct spooled_journal *j;

	pthread_mutex_lock(&u->worker.lock);
	j = find_journal(u, path, writer_id);
	if (j)
		j->bytes = bytes;
	pthread_cond_broadcast(&u->worker.changed);
	pthread_mutex_unlock(&u->worker.lock);
}

void journal_uploader_adopt(struct journal_uploader *u, const char *path, const char *writer_id, uint64_t bytes)
{
	struct spooled_journal *j;

	pthread_mutex_lock(&u->worker.lock);
	j = find_journal(u, path, writer_id);
	if (j && !j->bytes) { /* skip one that is already being sent */
		j->adopted = true;
		j->bytes = bytes;
	}
	pthread_cond_broadcast(&u->worker.changed);
	pthread_mutex_unlock(&u->worker.lock);
}

uint64_t journal_uploader_stop(struct journal_uploader *u, double wait_s)
{
	uint64_t unsent;
	unsigned first;

	worker_end(&u->worker, u->http, wait_s);
	unsent = count_pending_bytes(u, &first);
	worker_leave(&u->worker);
	return unsent;
}
