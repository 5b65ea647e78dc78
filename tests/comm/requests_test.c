/* SPDX-License-Identifier: Apache-2.0 */
/* requests_test.c: waits for messages, over a simulated link: received data arrive at a fixed rate, and the link
 * counts how often it is polled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tracker/base/clock.h"
#include "trainer/comm/hier_base.h"

#define RATE 1e8 /* bytes per second */
#define LONG_ONE ((size_t)4 << 20)

static long slept; /* by the waiting thread */
static double longest_s;

/* Replaces the C library's function. */
int nanosleep(const struct timespec *t, struct timespec *left)
{
	const double s = (double)t->tv_sec + 1e-9 * (double)t->tv_nsec;

	slept++;
	longest_s = s > longest_s ? s : longest_s;
	return clock_nanosleep(CLOCK_MONOTONIC, 0, t, left);
}

struct wire {
	struct link link;
	double comes_s; /* arrival of the last byte in flight */
	long looks;
	bool slow; /* slower than before: nothing arrives in the expected time */
};

static int wire_start(struct link *l, struct link_transfer *t, struct err *err)
{
	struct wire *w = (struct wire *)l;
	const double now = clock_mono_s(), from = w->comes_s > now ? w->comes_s : now;

	(void)err;
	w->comes_s = from + (double)t->bytes / RATE * (w->slow ? 10 : 1);
	return 0;
}

static void wire_progress(struct link *l)
{
	((struct wire *)l)->looks++;
}

static int wire_poll(struct link *l, struct link_transfer *t, struct err *err)
{
	(void)t, (void)err;
	return clock_mono_s() >= ((struct wire *)l)->comes_s;
}

/* A piece has already arrived. */
static void wire_wait(struct link *l, double seconds)
{
	(void)l, (void)seconds;
}

static const struct link_module eager = { .abi = LINK_ABI, .name = "eager", .arrives_alone = true, .start = wire_start,
					  .progress = wire_progress, .poll = wire_poll, .wait = wire_wait };
static const struct link_module helpless = { .abi = LINK_ABI, .name = "helpless", .start = wire_start,
					     .progress = wire_progress, .poll = wire_poll, .wait = wire_wait };

struct waiting {
	struct wire wire;
	struct requests m;
	int number[2];
};

static void begin(struct waiting *w, const struct link_module *module, bool rests)
{
	struct err err = ERR_INIT;
	int fd = -1;

	slept = 0, longest_s = 0;
	*w = (struct waiting){ .wire.link.module = module, .number = { 0, 1 } };
	w->m.link = &w->wire.link;
	w->m.number = w->number;
	w->m.what = "all-gather";
	w->m.sleeps_while_waiting = rests;
	assert_int_equal(comm_shm_make(&fd, 1, &err), 0);
	assert_int_equal(comm_shm_open(&w->m.local, &(struct comm_shm_opts){ .fd = fd, .world = 1 }, &err), 0);
	close(fd);
	requests_take_memory(&w->m, 4);
}

static void end(struct waiting *w)
{
	requests_free(&w->m);
	w->m.local->ops->close(w->m.local);
}

/* Receives this many bytes; returns the number of polls. */
static long hear(struct waiting *w, size_t bytes)
{
	static char nothing[1];
	const long before = w->wire.looks;
	struct err err = ERR_INIT;

	assert_int_equal(requests_begin(&w->m, &(struct message_opts){ 1, false, nothing, bytes, 0 }, &err), 0);
	assert_int_equal(requests_await_all(&w->m, &err), 0);
	assert_int_equal(w->m.n, 0);
	assert_true(clock_mono_s() >= w->wire.comes_s);
	return w->wire.looks - before;
}

/* A resting wait polls a few times where others poll for every piece, and no rest is long. */
static void test_rest(void **state)
{
	struct waiting w;
	long first, later;

	(void)state;
	begin(&w, &eager, true);
	first = hear(&w, LONG_ONE);
	later = hear(&w, LONG_ONE);
	assert_true(w.m.pace.rate > 0 && w.m.pace.rate <= 1.1 * RATE);
	assert_true(later < 400); /* 40 ms: about 20 rests, and the remainder of a late one */
	assert_true(first < 1000);
	assert_true(slept > 0 && longest_s <= 0.003);
	end(&w);
}

/* No rests for short messages, without the collective's request, or if the link progresses only when polled. */
static void test_polling(void **state)
{
	struct waiting w;

	(void)state;
	for (int i = 0; i < 3; i++) {
		begin(&w, i == 1 ? &helpless : &eager, i != 2);
		hear(&w, i == 0 ? 100 : LONG_ONE);
		hear(&w, i == 0 ? 100 : LONG_ONE);
		assert_true(slept == 0 && (i != 0 || w.m.pace.rate == 0));
		end(&w);
	}
}

/* A link that becomes slow neither ends the wait nor makes it poll for every piece. */
static void test_slower(void **state)
{
	struct waiting w;

	(void)state;
	begin(&w, &eager, true);
	hear(&w, LONG_ONE);
	w.wire.slow = true;
	hear(&w, LONG_ONE);
	assert_true(w.wire.looks < 10000);
	assert_true(w.m.pace.rate < RATE);
	end(&w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_rest), cmocka_unit_test(test_polling),
						   cmocka_unit_test(test_slower) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
