/* SPDX-License-Identifier: Apache-2.0 */
/* shm_test.c: the shared-memory communicator between real processes. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/comm/collectives.h"
#include "tracker/base/clock.h"
#include "trainer/comm/comm.h"
#include "trainer/comm/bootstrap.h"
#include "trainer/comm/sum.h"

typedef int rank_fn(struct comm *c);

static struct comm_shm_opts opts_for(int fd, int rank, int world)
{
	return (struct comm_shm_opts){ .fd = fd, .rank = rank, .world = world, .timeout_s = 20 };
}

static int run_rank(const struct comm_shm_opts *o, rank_fn *fn)
{
	struct err err = ERR_INIT;
	struct comm *c;
	int bad;

	if (comm_shm_open(&c, o, &err)) {
		fprintf(stderr, "rank %d: %s\n", o->rank, err.text);
		return 99;
	}
	bad = fn(c);
	c->ops->close(c);
	return bad;
}

/* As over a link of 20 ms and 1 MB/s: the same sums, later, also in communicators split from it. */
static int held_collectives(struct comm *c)
{
	const struct comm_slow_link link = { .latency_s = 0.02, .bytes_per_s = 1e6 };
	struct err err = ERR_INIT;
	struct comm *held, *part;
	float data[25000];
	double start;

	for (size_t i = 0; i < 25000; i++)
		data[i] = (float)(c->rank + 1);
	held = comm_emulate_link(c, &link);
	if (held->ops->split(held, 0, &part, &err))
		return 1;
	start = clock_mono_s();
	if (part->ops->allreduce(part, data, 25000, DTYPE_F32, &err) || data[0] != 3 || data[24999] != 3)
		return 2;
	if (part->sent < 100000 || clock_mono_s() - start < 0.02 + 1e-6 * (double)part->sent)
		return 3;
	start = clock_mono_s();
	if (held->ops->barrier(held, &err) || clock_mono_s() - start < 0.02)
		return 4;
	part->ops->close(part);
	held->ops->abort(held);
	return held->ops->barrier(held, &err) != ERR_PEER; /* without waiting for the link */
}

static int make(int world)
{
	struct err err = ERR_INIT;
	int fd = -1;

	assert_int_equal(comm_shm_make(&fd, world, &err), 0);
	return fd;
}

/* Stores the exit codes of the ranks (negative: signal) in ret. */
static void run_world(const struct comm_shm_opts *base, rank_fn *fn, int *ret)
{
	pid_t pid[16];
	int status;

	for (int r = 0; r < base->world; r++) {
		struct comm_shm_opts o = *base;

		o.rank = r;
		pid[r] = fork();
		if (pid[r] == 0)
			_exit(run_rank(&o, fn));
	}
	for (int r = 0; r < base->world; r++) {
		waitpid(pid[r], &status, 0);
		ret[r] = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
	}
}

static void expect_clean(int world, rank_fn *fn)
{
	int fd = make(world), code[16];
	struct comm_shm_opts o = opts_for(fd, 0, world);

	run_world(&o, fn, code);
	close(fd);
	for (int r = 0; r < world; r++)
		assert_int_equal(code[r], 0);
}

static void test_held(void **state)
{
	(void)state;
	expect_clean(2, held_collectives);
}

static void test_allreduce(void **state)
{
	(void)state;
	for (int world = 1; world <= 5; world++)
		expect_clean(world, collectives_allreduce);
}

static void test_reduce_scatter_all_gather(void **state)
{
	(void)state;
	for (int world = 1; world <= 4; world++)
		expect_clean(world, collectives_scatter);
}

static void test_terms(void **state)
{
	(void)state;
	for (int world = 2; world <= 5; world++)
		expect_clean(world, collectives_terms);
}

static void test_broadcast_and_ring(void **state)
{
	(void)state;
	expect_clean(3, collectives_broadcast);
	expect_clean(2, collectives_ring);
	expect_clean(4, collectives_ring);
}

static void test_many_small(void **state)
{
	(void)state;
	expect_clean(3, collectives_repeat);
}

static void test_groups(void **state)
{
	(void)state;
	for (int world = 1; world <= 5; world++)
		expect_clean(world, collectives_groups);
}

static void test_threads(void **state)
{
	(void)state;
	expect_clean(3, collectives_threads);
}

/* Rank 3 dies once every other rank has its group: rank 1 waits for it in theirs, the others for all; all name it by
 * its number in the job. */
static int group_dying_rank(struct comm *c)
{
	struct err err = ERR_INIT, late = ERR_INIT;
	struct comm *group, *waits;
	char ready = 1;

	if (c->ops->split(c, c->rank % 2, &group, &err))
		return 1;
	for (int r = 0; c->rank == 3 && r < 3; r++)
		c->ops->recv(c, &ready, 1, r, &late);
	if (c->rank == 3)
		raise(SIGKILL);
	c->ops->send(c, &ready, 1, 3, &late); /* it may die before this returns */
	waits = c->rank == 1 ? group : c;
	if (waits->ops->barrier(waits, &err) != ERR_PEER || !strstr(err.text, "rank 3 died"))
		return 2;
	return group->ops->barrier(group, &err) == ERR_PEER ? 0 : 3;
}

static void test_dead_rank_of_a_group(void **state)
{
	int fd = make(4), code[16];
	struct comm_shm_opts o = opts_for(fd, 0, 4);

	(void)state;
	run_world(&o, group_dying_rank, code);
	close(fd);
	for (int r = 0; r < 3; r++)
		assert_int_equal(code[r], 0);
	assert_int_equal(code[3], -SIGKILL);
}

static int dying_rank(struct comm *c)
{
	struct err err = ERR_INIT;
	double x = 1, start;
	int rc = 0;

	for (int k = 0; k < 5; k++)
		rc |= c->ops->allreduce(c, &x, 1, DTYPE_F64, &err);
	if (rc)
		return 10;
	if (c->rank == 1) {
		clock_sleep_s(0.3); /* the others have also finished the last sum */
		raise(SIGKILL);
	}
	start = clock_mono_s();
	rc = c->ops->allreduce(c, &x, 1, DTYPE_F64, &err);
	if (rc != ERR_PEER || !strstr(err.text, "rank 1 died"))
		return 11;
	rc = c->ops->barrier(c, &err);
	if (rc != ERR_PEER)
		return 12;
	return clock_mono_s() - start > 30 ? 13 : 0;
}

static void test_dead_rank(void **state)
{
	int fd = make(3), code[16];
	struct comm_shm_opts o = opts_for(fd, 0, 3);

	(void)state;
	run_world(&o, dying_rank, code);
	close(fd);
	assert_int_equal(code[0], 0);
	assert_int_equal(code[1], -SIGKILL);
	assert_int_equal(code[2], 0);
}

static int leaving_rank(struct comm *c)
{
	struct err err = ERR_INIT;
	double x = 1;

	if (c->rank == 0)
		return 0;
	return c->ops->allreduce(c, &x, 1, DTYPE_F64, &err) == ERR_PEER && strstr(err.text, "rank 0") ? 0 : 1;
}

static int slow_rank(struct comm *c)
{
	struct err err = ERR_INIT;
	double x = 1;

	if (c->rank == 1)
		clock_sleep_s(0.3);
	return c->ops->allreduce(c, &x, 1, DTYPE_F64, &err) || x != c->world;
}

static int aborting_rank(struct comm *c)
{
	struct err err = ERR_INIT;

	if (c->rank == 1) {
		clock_sleep_s(0.1);
		c->ops->abort(c);
	}
	return c->ops->barrier(c, &err) == ERR_PEER && strstr(err.text, "aborted") ? 0 : 1;
}

static int disagreeing_rank(struct comm *c)
{
	struct err err = ERR_INIT;
	double x[4] = { 1, 2, 3, 4 };

	return c->ops->allreduce(c, x, c->rank == 1 ? 4 : 3, DTYPE_F64, &err) == ERR_PEER ? 0 : 1;
}

static void test_trouble(void **state)
{
	(void)state;
	expect_clean(2, leaving_rank);
	expect_clean(3, slow_rank);
	expect_clean(3, aborting_rank);
	expect_clean(2, disagreeing_rank);
}

static int late_rank(struct comm *c)
{
	struct err err = ERR_INIT;

	if (c->rank == 1) {
		clock_sleep_s(1.5);
		return 0;
	}
	return c->ops->barrier(c, &err) == ERR_PEER && strstr(err.text, "rank 1") ? 0 : 1;
}

static void test_time_limit(void **state)
{
	int fd = make(2), code[16];
	struct comm_shm_opts o = opts_for(fd, 0, 2);

	(void)state;
	o.timeout_s = 0.5;
	run_world(&o, late_rank, code);
	close(fd);
	assert_int_equal(code[0], 0);
	assert_int_equal(code[1], 0);
}

/* ---- ranks that another program started ---- */

enum trouble { NONE, NO_MEMORY, ONE_IS_MISSING, TWO_CLAIM };

static struct bootstrap_opts member(const char *job, int rank, int world, double wait_s)
{
	return (struct bootstrap_opts){ .what = "rank", .job = job, .key = job, .listener = -1, .self = rank,
					.count = world, .wait_s = wait_s };
}

static int share(const struct bootstrap_opts *o, int *fd, struct err *err)
{
	struct bootstrap *x = NULL;
	int rc = bootstrap_open(&x, o, err);

	if (!rc)
		rc = bootstrap_share_fds(x, fd, 1, err);
	bootstrap_close(x);
	return rc;
}

struct meeting {
	char job[64];
	enum trouble trouble;
	int world;
};

/* Returns 0 if the rank got the expected result. */
static int meet(const struct meeting *m, int rank)
{
	static const char *const said[] = { NULL, "no room", "rank 2 did not start",
					    "two ranks claim to be rank 1" };
	struct bootstrap_opts o = member(m->job, rank, m->world, m->trouble == ONE_IS_MISSING ? 1 : 30);
	struct err err = ERR_INIT, failure = ERR_INIT;
	int fd = rank == 0 && m->trouble != NO_MEMORY ? make(m->world) : -1, rc;

	if (rank == 2 && m->trouble == ONE_IS_MISSING)
		return 0;
	if (rank == 2 && m->trouble == TWO_CLAIM)
		o.self = 1;
	if (m->trouble == NO_MEMORY)
		err_set(&failure, ERR_NOSPC, "no room");
	o.failure = &failure;
	rc = share(&o, &fd, &err);
	if (m->trouble != NONE)
		return rc && strstr(err.text, said[m->trouble]) ? 0 : 1;
	if (rc)
		return 2;
	return run_rank(&(struct comm_shm_opts){ .fd = fd, .rank = rank, .world = m->world, .timeout_s = 20 },
			collectives_allreduce);
}

static void expect_meeting(enum trouble trouble, int world)
{
	struct meeting m = { .trouble = trouble, .world = world };
	pid_t pid[16];
	int status;

	snprintf(m.job, sizeof(m.job), "test-%d-%d", (int)getpid(), (int)trouble);
	for (int r = 0; r < world; r++) {
		pid[r] = fork();
		if (pid[r] == 0)
			_exit(meet(&m, r));
	}
	for (int r = 0; r < world; r++) {
		waitpid(pid[r], &status, 0);
		if (status)
			fail_msg("trouble %d: rank %d ended with %d", (int)trouble, r, status);
	}
}

static void test_rendezvous(void **state)
{
	(void)state;
	expect_meeting(NONE, 3);
	expect_meeting(NO_MEMORY, 3);
	expect_meeting(ONE_IS_MISSING, 3);
	expect_meeting(TWO_CLAIM, 3);
}

/* Rank 1 is killed while it waits with rank 0 for rank 2, which never comes. */
static void test_rank_ends_at_the_start(void **state)
{
	struct err err = ERR_INIT;
	struct bootstrap_opts o;
	double start_s = clock_mono_s();
	int fd = make(3), status;
	char job[64];
	pid_t guest;

	(void)state;
	snprintf(job, sizeof(job), "test-%d-ends", (int)getpid());
	guest = fork();
	if (guest == 0) {
		alarm(1);
		o = member(job, 1, 3, 50);
		share(&o, &fd, &err);
		_exit(0);
	}
	o = member(job, 0, 3, 50);
	assert_int_equal(share(&o, &fd, &err), ERR_PEER);
	assert_non_null(strstr(err.text, "rank 1 ended"));
	assert_true(clock_mono_s() - start_s < 30);
	waitpid(guest, &status, 0);
	close(fd);
}

static void test_bf16_rounds_once(void **state)
{
	uint16_t a[3] = { 0x3f80, 0x3b80, 0x7fc0 }, b[3] = { 0x3b80, 0x3b80, 0x3f80 }, c[3] = { 0x3b80, 0, 0 }, out[3];
	const void *from[3] = { a, b, c };
	void *to[1] = { out };

	(void)state; /* 1 + 2^-8 + 2^-8: rounding after each addition would lose both; NaN is preserved */
	sum_run(&(struct sum_job){ from, to, 3, 1, 3, DTYPE_BF16, NULL });
	assert_int_equal(out[0], 0x3f81);
	assert_int_equal(out[1], 0x3c00);
	assert_int_equal(out[2] & 0x7fc0, 0x7fc0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bf16_rounds_once),
		cmocka_unit_test(test_allreduce), cmocka_unit_test(test_held),
		cmocka_unit_test(test_reduce_scatter_all_gather),
		cmocka_unit_test(test_terms),
		cmocka_unit_test(test_broadcast_and_ring),
		cmocka_unit_test(test_many_small),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_dead_rank_of_a_group),
		cmocka_unit_test(test_dead_rank),
		cmocka_unit_test(test_trouble),
		cmocka_unit_test(test_time_limit),
		cmocka_unit_test(test_rendezvous),
		cmocka_unit_test(test_rank_ends_at_the_start),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
