/* SPDX-License-Identifier: Apache-2.0 */
/* crash_test.c: an ingesting process is killed many times: everything acknowledged is stored exactly once. And two
 * processes open one store: the second is refused with the name of the first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/store/helper.h"
#include "tracker/base/clock.h"
#include "tracker/event/record.h"

#define WRITERS 4
#define POINTS 150000
#define KILLS 12

struct client {
	struct helper *h;
	int number;
	char writer[33];
	struct buf journal;
	volatile uint64_t *acked; /* shared with the killing process */
};

static void make_client(struct client *c, struct helper *h, int number, volatile uint64_t *acked)
{
	struct event_header header = helper_header(number, 0, 0);
	int i;

	c->h = h;
	c->number = number;
	c->acked = acked;
	snprintf(c->writer, sizeof c->writer, "%032d", number + 1);
	header.writer_id = helper_text(c->writer);
	buf_init(&c->journal, 1 << 26);
	encode_header(&c->journal, 1.7e9, &header);
	for (i = 1; i <= POINTS; i++)
		encode_scalar(&c->journal, &(struct encode_scalar){ .key = helper_text("a"), .step = i, .wall_time = i,
								    .value = i * 0.5 + number, .rank = number,
								    .journal_rank = number });
}

static void *send_all(void *arg)
{
	struct client *c = arg;
	struct ingest_result res;
	uint64_t at = 0;
	unsigned int seed = (unsigned int)getpid() + (unsigned int)c->number;

	ingest_durable(c->h->s, HELPER_RUN, c->writer, &at, NULL);
	*c->acked = at; /* durable when the previous process was killed, but not yet acknowledged */
	while (at < c->journal.len) {
		size_t n = 200 + (size_t)rand_r(&seed) % 9000;
		struct buf part = { .data = c->journal.data, .len = c->journal.len - at < n ? c->journal.len : at + n };

		if (helper_post(c->h, HELPER_RUN, c->writer, at, &part, at, &res))
			_exit(3);
		at = res.durable;
		*c->acked = at;
	}
	return NULL;
}

static void child(struct helper *h, struct client *clients)
{
	pthread_t threads[WRITERS];
	struct err err = ERR_INIT;
	int i;

	if (store_open(&h->s, &(struct store_opts){ .db_path = h->db, .wal_limit_bytes = 200000 }, &err))
		_exit(2);
	for (i = 0; i < WRITERS; i++)
		if (pthread_create(&threads[i], NULL, send_all, &clients[i]))
			_exit(4);
	for (i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	store_close(h->s);
	_exit(0);
}

static void check(struct helper *h, const struct client *c)
{
	static struct points_row rows[POINTS + 10];
	size_t at = 0, want = 0, n, i;
	struct record rec;
	uint64_t durable = 0;

	ingest_durable(h->s, HELPER_RUN, c->writer, &durable, NULL);
	assert_true(durable >= *c->acked);
	while (at < durable && record_next(c->journal.data, durable, &at, &rec) == RECORD_OK)
		want++;
	assert_int_equal(at, durable);
	n = helper_rows(h, HELPER_RUN, "a", c->number, false, rows, POINTS + 10);
	assert_int_equal(n, want ? want - 1 : 0);
	for (i = 0; i < n; i++) {
		assert_int_equal(rows[i].step, i + 1);
		assert_true(rows[i].value == (double)(i + 1) * 0.5 + c->number);
	}
}

static void killed_while_ingesting(void **state)
{
	struct helper *h = *state;
	struct client clients[WRITERS];
	uint64_t *acked = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int i, round, status, killed = 0;
	unsigned int seed = 1;
	bool finished = false;

	assert_true(acked != MAP_FAILED);
	for (i = 0; i < WRITERS; i++)
		make_client(&clients[i], h, i, &acked[i]);
	for (round = 0; round < KILLS || !finished; round++) {
		pid_t pid;

		store_close(h->s);
		h->s = NULL;
		pid = fork();
		if (!pid)
			child(h, clients);
		if (round < KILLS) {
			clock_sleep_s(0.005 + (double)(rand_r(&seed) % 1000) * 3e-5);
			kill(pid, SIGKILL);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		finished = WIFEXITED(status);
		killed += !finished;
		if (finished)
			assert_int_equal(WEXITSTATUS(status), 0);
		helper_reopen(h);
		for (i = 0; i < WRITERS; i++)
			check(h, &clients[i]);
	}
	assert_true(killed > 0);
	for (i = 0; i < WRITERS; i++) {
		assert_int_equal(acked[i], clients[i].journal.len);
		buf_done(&clients[i].journal);
	}
	munmap(acked, 4096);
}

/* Main function when started with the path of a database: returns 0 if the store is refused as expected. */
static int second_process(const char *db)
{
	struct store *s = NULL;
	struct err err = ERR_INIT;
	int rc = store_open(&s, &(struct store_opts){ .db_path = db }, &err);

	return rc == ERR_BUSY && strstr(err.text, "http://127.0.0.1:6007") ? 0 : 1;
}

static void second_process_is_refused(void **state)
{
	struct helper *h = *state;
	int status;
	pid_t pid;

	assert_int_equal(store_publish(h->s, "http://127.0.0.1:6007", "t", NULL), 0);
	pid = fork();
	if (!pid) {
		execl("/proc/self/exe", "crash_test", h->db, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(killed_while_ingesting, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(second_process_is_refused, helper_setup, helper_teardown),
	};

	if (argc > 1)
		return second_process(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
