/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts on a simulated clock: a silent run, a receiver that is down for ten minutes, stores that are closed and
 * reopened, two posters. Each alert is raised once and received once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "web/store/alert/alert.h"
#include "web/store/store.h"
#include "web/store/write/ingest.h"
#include "web/webhook/webhook.h"

#define MINUTE_MS INT64_C(60000)
#define RUN "0123456789abcdef0123456789abcdef"
#define OTHER "ffffffffffffffffffffffffffffffff"

struct stage {
	char folder[64], secret[128];
	struct store *s;
	struct alert_eval *judge;
	struct webhook *hook;
	int64_t now_ms;
	/* the receiver */
	int port, fd;
	pthread_t thread;
	atomic_int taken;
};

static void open_store(struct stage *t)
{
	char path[128], url[64];

	snprintf(path, sizeof path, "%s/dptrack.db", t->folder);
	snprintf(url, sizeof url, "http://127.0.0.1:%d/hook", t->port);
	assert_int_equal(store_open(&t->s, &(struct store_opts){ .db_path = path }, NULL), 0);
	t->judge = alert_eval_new(t->s, true);
	assert_int_equal(webhook_new(&t->hook, t->s, &(struct webhook_opts){ .url = url, .secret_file = t->secret },
				     NULL), 0);
}

static void close_store(struct stage *t)
{
	webhook_free(t->hook);
	alert_eval_free(t->judge);
	store_close(t->s);
}

/* Receives posts until its socket is closed. */
static void *receive(void *arg)
{
	static const char answer[] = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
	struct stage *t = arg;
	char text[8192];
	int c;

	while ((c = accept(t->fd, NULL, NULL)) >= 0) {
		size_t n = 0;
		ssize_t got;

		while ((got = read(c, text + n, sizeof text - 1 - n)) > 0) {
			n += (size_t)got;
			text[n] = '\0';
			if (strstr(text, "\r\n\r\n") && strchr(text, '}'))
				break;
		}
		if (strstr(text, "X-Dptrack-Signature: sha256=") && write(c, answer, sizeof answer - 1) > 0)
			atomic_fetch_add(&t->taken, 1);
		close(c);
	}
	return NULL;
}

/* A port that refuses connections: it is bound, without a listener. */
static void reserve(struct stage *t)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof at;

	t->fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(t->fd, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(getsockname(t->fd, (struct sockaddr *)&at, &n), 0);
	t->port = ntohs(at.sin_port);
}

static void come_back(struct stage *t)
{
	assert_int_equal(listen(t->fd, 16), 0);
	assert_int_equal(pthread_create(&t->thread, NULL, receive, t), 0);
}

static int setup(void **state)
{
	struct stage *t = calloc(1, sizeof *t);
	FILE *f;

	snprintf(t->folder, sizeof t->folder, "/tmp/dptrack-test.XXXXXX");
	assert_non_null(mkdtemp(t->folder));
	snprintf(t->secret, sizeof t->secret, "%s/secret", t->folder);
	f = fopen(t->secret, "w");
	fputs("a-secret-of-some-length\n", f);
	fclose(f);
	t->now_ms = clock_wall_ms();
	reserve(t);
	open_store(t);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct stage *t = *state;
	char command[128];

	close_store(t);
	shutdown(t->fd, SHUT_RDWR);
	if (t->thread)
		pthread_join(t->thread, NULL);
	close(t->fd);
	snprintf(command, sizeof command, "rm -rf %s", t->folder);
	assert_int_equal(system(command), 0);
	free(t);
	return 0;
}

static void submit(struct stage *t, const struct ingest_op *op)
{
	struct ingest_result res;

	assert_int_equal(ingest_submit(t->s, op, NULL, &res, NULL), 0);
}

static void rule(struct stage *t, const char *kind, double bound)
{
	const struct alert_op op = { .kind = &alert_change_rule, .rule_kind = kind, .metric = "", .bound = bound };
	const struct ingest_op ingest = alert_ingest(&op);

	submit(t, &ingest);
}

/* One second of the test's clock. */
static void second(struct stage *t)
{
	assert_int_equal(alert_eval_look(t->judge, t->now_ms, NULL), 0);
	assert_int_equal(webhook_turn(t->hook, t->now_ms, NULL), 0);
	t->now_ms += 1000;
}

static size_t found(struct stage *t, int *ret_tries)
{
	struct arena *a = arena_new();
	struct alerts all;
	size_t i, n;

	assert_int_equal(alert_list(t->s, &(struct alert_page){ .limit = 100 }, a, &all, NULL), 0);
	for (i = 0; i < all.count; i++)
		*ret_tries += all.items[i].tries;
	n = all.count;
	arena_free(a);
	return n;
}

/* The receiver is down for ten minutes, and the store is reopened every minute; then both alerts arrive, once. */
static void away_for_ten_minutes(void **state)
{
	struct stage *t = *state;
	int64_t end = t->now_ms + 10 * MINUTE_MS;
	int tries = 0;

	rule(t, "done", 0);
	rule(t, "silent", 300);
	submit(t, &(struct ingest_op){ .kind = &change_run_new, .name = "silent", .run = RUN });
	submit(t, &(struct ingest_op){ .kind = &change_run_new, .name = "done", .run = OTHER });
	submit(t, &(struct ingest_op){ .kind = &change_run_patch, .run = OTHER, .state.status = "finished",
				       .state.end_ms = INGEST_NO_TIME });
	while (t->now_ms < end) {
		second(t);
		if ((end - t->now_ms) % MINUTE_MS == 0) {
			close_store(t);
			open_store(t);
		}
	}
	assert_int_equal(found(t, &tries), 2);
	assert_in_range(tries, 8, 30); /* after 2, 4, 8, … s, then every five minutes */
	assert_int_equal(atomic_load(&t->taken), 0);
	come_back(t);
	for (end = t->now_ms + 10 * MINUTE_MS; t->now_ms < end;)
		second(t);
	assert_int_equal(atomic_load(&t->taken), 2);
	close_store(t);
	open_store(t);
	for (end = t->now_ms + MINUTE_MS; t->now_ms < end;)
		second(t);
	assert_int_equal(atomic_load(&t->taken), 2);
	assert_int_equal(found(t, &tries), 2);
}

/* Two posters: an alert claimed by one is free for the other only after the claim expires; it is given up after a
 * week. */
static void claimed_once(void **state)
{
	struct stage *t = *state;
	struct alert_op op = { .kind = &alert_change_claim, .id = 1 };
	struct ingest_op ingest = alert_ingest(&op);
	struct arena *a = arena_new();
	struct ingest_result res;
	struct alerts due;

	rule(t, "done", 0);
	submit(t, &(struct ingest_op){ .kind = &change_run_new, .name = "done", .run = RUN });
	submit(t, &(struct ingest_op){ .kind = &change_run_patch, .run = RUN, .state.status = "finished",
				       .state.end_ms = INGEST_NO_TIME });
	assert_int_equal(alert_eval_look(t->judge, t->now_ms, NULL), 0);
	op.due_ms = t->now_ms;
	op.time_ms = t->now_ms + MINUTE_MS;
	assert_int_equal(ingest_submit(t->s, &ingest, NULL, &res, NULL), 0);
	assert_false(res.existed);
	assert_int_equal(ingest_submit(t->s, &ingest, NULL, &res, NULL), 0);
	assert_true(res.existed);
	assert_int_equal(alert_due(t->s, t->now_ms + MINUTE_MS - 1, a, &due, NULL), 0);
	assert_int_equal(due.count, 0);
	assert_int_equal(alert_due(t->s, t->now_ms + MINUTE_MS, a, &due, NULL), 0);
	assert_int_equal(due.count, 1);
	t->now_ms += 8 * 24 * 60 * MINUTE_MS;
	second(t);
	assert_int_equal(alert_due(t->s, INT64_MAX, a, &due, NULL), 0);
	assert_int_equal(due.count, 0);
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(away_for_ten_minutes, setup, teardown),
		cmocka_unit_test_setup_teardown(claimed_once, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
