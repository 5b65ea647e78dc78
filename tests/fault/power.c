/* SPDX-License-Identifier: Apache-2.0 */
/* power.c: power cuts under load. Clients keep a ledger of what was acknowledged; the store that a cut leaves must
 * contain all of it exactly once, after the clients repeat what was not acknowledged. The same with synchronous=NORMAL
 * must lose something, otherwise this test detects nothing.
 *
 *	tests/fault/power            20 cuts (make check)
 *	tests/fault/power 200        the long version */
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fault/cutfs.h"
#include "tests/store/helper.h"
#include "tracker/base/clock.h"
#include "tracker/event/record.h"
#include "web/store/maintenance/maintenance.h"

#define JOURNALS 2
#define JOURNAL_POINTS 100000
#define BATCH 40
#define BATCHES_MAX 100000
#define POSTER "00000000000000000000000000000abc"

struct ledger {
	struct buf journal[JOURNALS];
	char writer[JOURNALS][33];
	uint64_t acked[JOURNALS]; /* bytes */
	int64_t batches;          /* acknowledged */
	int64_t lost;
	char root[PATH_MAX / 2];
	int folder;               /* number of the current one */
};

struct client {
	struct ledger *l;
	struct store *s;
	int number;
};

static void die(const char *what)
{
	printf("power: %s\n", what);
	exit(1);
}

static void fill_journal(struct ledger *l, int number)
{
	struct event_header header = helper_header(number, 0, 0);
	int i;

	snprintf(l->writer[number], sizeof l->writer[number], "%032d", number + 1);
	header.writer_id = helper_text(l->writer[number]);
	buf_init(&l->journal[number], 1 << 26);
	encode_header(&l->journal[number], 1.7e9, &header);
	for (i = 1; i <= JOURNAL_POINTS; i++)
		encode_scalar(&l->journal[number], &(struct encode_scalar){ .key = helper_text("a"), .step = i,
									    .wall_time = i,
									    .value = i * 0.5, .rank = number,
									    .journal_rank = number });
}

static void *send_journal(void *arg)
{
	struct client *c = arg;
	struct buf *j = &c->l->journal[c->number];
	struct ingest_result res;
	uint64_t at = 0;
	unsigned seed = (unsigned)c->number + 7;

	ingest_durable(c->s, HELPER_RUN, c->l->writer[c->number], &at, NULL);
	while (at < j->len) {
		size_t n = 500 + (size_t)rand_r(&seed) % 4000;
		struct ingest_op op = { .kind = &change_journal, .run = HELPER_RUN,
					.journal.writer = c->l->writer[c->number],
					.journal.offset = at,
					.journal.bytes = j->data + at,
					.journal.len = j->len - at < n ? j->len - at : n };

		if (ingest_submit(c->s, &op, NULL, &res, NULL))
			break;
		c->l->acked[c->number] = at = res.durable;
	}
	return NULL;
}

/* Batches in sequence, each with a unique name: one without a reply is repeated after the cut. */
static void *send_batches(void *arg)
{
	struct client *c = arg;
	struct ingest_point points[BATCH];
	struct ingest_result res;
	char name[24];
	int i;

	while (c->l->batches < BATCHES_MAX) {
		for (i = 0; i < BATCH; i++)
			points[i] = (struct ingest_point){ "b", c->l->batches * BATCH + i, 1, (double)c->l->batches,
							   -1 };
		snprintf(name, sizeof name, "%lld", (long long)c->l->batches);
		if (ingest_submit(c->s, &(struct ingest_op){ .kind = &change_points, .run = POSTER,
							     .logged.points = points,
				  .logged.point_count = BATCH, .idempotency = name }, NULL, &res, NULL))
			break;
		c->l->batches++;
	}
	return NULL;
}

static void folder_name(const struct ledger *l, int number, char ret[PATH_MAX])
{
	snprintf(ret, PATH_MAX, "%s/%d", l->root, number);
}

static struct store *open_present(const struct ledger *l)
{
	char folder[PATH_MAX], db[PATH_MAX + 16];
	struct err err = ERR_INIT;
	struct store *s;

	folder_name(l, l->folder, folder);
	snprintf(db, sizeof db, "%s/dptrack.db", folder);
	if (!store_open(&s, &(struct store_opts){ .db_path = db, .wal_limit_bytes = 100000 }, &err))
		return s;
	if (!cutfs_is_cut())
		die(err.text);
	return NULL; /* the power failed while it was opened */
}

static size_t count_rows(struct store *s, const char *run, const char *key, int rank, int64_t *ret_first_gap)
{
	struct points_sel sel = { .runs = &run, .run_count = 1, .keys = &key, .key_count = 1, .rank = rank,
				  .from_step = INT64_MIN, .to_step = INT64_MAX };
	static struct points_row rows[4096];
	struct points_cursor *c;
	struct err err = ERR_INIT;
	size_t n = 0, got, i;
	int64_t first = !strcmp(key, "a");

	*ret_first_gap = -1;
	if (points_open(&c, s, &sel, NULL, &err))
		die(err.text);
	do {
		if (points_next(c, rows, 4096, &got, &err))
			die(err.text);
		for (i = 0; i < got; i++, n++)
			if (rows[i].step != first + (int64_t)n && *ret_first_gap < 0)
				*ret_first_gap = (int64_t)n;
	} while (got);
	points_close(c);
	return n;
}

static void check_whole(const struct ledger *l)
{
	char path[PATH_MAX];
	sqlite3_stmt *q;
	sqlite3 *d;

	folder_name(l, l->folder, path);
	snprintf(path + strlen(path), sizeof path - strlen(path), "/dptrack.db");
	if (sqlite3_open_v2(path, &d, SQLITE_OPEN_READONLY, NULL) ||
	    sqlite3_prepare_v2(d, "PRAGMA integrity_check", -1, &q, NULL) || sqlite3_step(q) != SQLITE_ROW)
		die("the store cannot be read");
	if (strcmp((const char *)sqlite3_column_text(q, 0), "ok"))
		die((const char *)sqlite3_column_text(q, 0));
	sqlite3_finalize(q);
	sqlite3_close(d);
}

/* No duplicates, no gaps; points missing at the end are counted and removed from the ledger. */
static void audit(struct ledger *l, struct store *s)
{
	int64_t gap, batches;
	uint64_t durable;
	size_t n, want, at;
	struct record rec;
	int i;

	for (i = 0; i < JOURNALS; i++) {
		durable = 0;
		ingest_durable(s, HELPER_RUN, l->writer[i], &durable, NULL);
		for (at = 0, want = 0;
		     at < durable && record_next(l->journal[i].data, durable, &at, &rec) == RECORD_OK;)
			want++;
		n = count_rows(s, HELPER_RUN, "a", i, &gap);
		if (at != durable || gap >= 0 || n != (want ? want - 1 : 0))
			die("a journal's points are not those of its durable bytes");
		l->lost += durable < l->acked[i] ? (int64_t)(l->acked[i] - durable) : 0;
		l->acked[i] = durable;
	}
	n = count_rows(s, POSTER, "b", -1, &gap);
	batches = (int64_t)(n / BATCH);
	if (gap >= 0 || n % BATCH)
		die("a batch is stored partly, or twice");
	l->lost += batches < l->batches ? l->batches - batches : 0;
	if (batches < l->batches || batches > l->batches + 1)
		l->batches = batches;
}

static void run_until_cut(struct ledger *l, unsigned round)
{
	pthread_t threads[JOURNALS + 1];
	struct client clients[JOURNALS + 1];
	struct store *s = open_present(l);
	struct store_gc_result gc;
	int i;

	if (!s)
		return;
	ingest_submit(s, &(struct ingest_op){ .kind = &change_run_new, .run = POSTER, .name = "poster" }, NULL, NULL,
		      NULL);
	for (i = 0; i <= JOURNALS; i++) {
		clients[i] = (struct client){ l, s, i };
		if (pthread_create(&threads[i], NULL, i < JOURNALS ? send_journal : send_batches, &clients[i]))
			die("cannot start a thread");
	}
	if (round % 3 == 0)
		store_gc(s, &(struct store_gc_opts){ 0 }, &gc, NULL);
	for (i = 0; i < 3000 && !cutfs_is_cut(); i++)
		clock_sleep_s(0.01);
	cutfs_cut();
	for (i = 0; i <= JOURNALS; i++)
		pthread_join(threads[i], NULL);
	store_close(s);
}

static void next_folder(struct ledger *l, unsigned round, unsigned seed)
{
	static const unsigned keep[] = { 0, 50, 100, 90, 10 };
	char folder[PATH_MAX], to[PATH_MAX];

	folder_name(l, l->folder, folder);
	folder_name(l, l->folder + 1, to);
	if (mkdir(to, 0700))
		die("cannot make a folder");
	cutfs_arm(folder, to, 30 + rand_r(&seed) % 1500, keep[round % 5], seed);
}

static void remove_folder(const struct ledger *l, int number)
{
	char folder[PATH_MAX], command[PATH_MAX + 16];

	folder_name(l, number, folder);
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	if (system(command))
		die("cannot remove a folder");
}

static int64_t cuts(unsigned rounds, bool relaxed)
{
	static struct ledger l;
	const char *tmp = getenv("TMPDIR");
	unsigned round;
	struct store *s;
	char folder[PATH_MAX];
	int i;

	memset(&l, 0, sizeof l);
	snprintf(l.root, sizeof l.root, "%s/dptrack-power-XXXXXX",
		 tmp ? tmp : access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(l.root))
		die("cannot make a folder");
	folder_name(&l, 0, folder);
	if (mkdir(folder, 0700) || cutfs_install(relaxed))
		die("cannot begin");
	for (i = 0; i < JOURNALS; i++)
		fill_journal(&l, i);
	for (round = 0; round < rounds; round++) {
		next_folder(&l, round, round * 7919 + relaxed);
		run_until_cut(&l, round);
		remove_folder(&l, l.folder++);
		cutfs_arm("/nowhere", "/nowhere", UINT64_MAX, 0, 1);
		s = open_present(&l);
		audit(&l, s);
		store_close(s);
		check_whole(&l);
		if (relaxed && l.lost)
			break;
	}
	printf("%s: %u cuts, %lld bytes and %lld batches acknowledged, %lld lost\n", relaxed ? "NORMAL" : "FULL", round,
	       (long long)(l.acked[0] + l.acked[1]), (long long)l.batches, (long long)l.lost);
	remove_folder(&l, l.folder);
	rmdir(l.root);
	for (i = 0; i < JOURNALS; i++)
		buf_done(&l.journal[i]);
	return l.lost;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 20;

	if (cuts(rounds, false))
		die("acknowledged points are lost");
	if (!cuts(100, true))
		die("nothing is lost with synchronous=NORMAL: this test detects nothing");
	printf("%llu syncs\n", (unsigned long long)cutfs_syncs());
	return 0;
}
