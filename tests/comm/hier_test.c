/* SPDX-License-Identifier: Apache-2.0 */
/* hier_test.c: communicators over several machines, simulated by groups of processes: each group has separate shared
 * memory, and the link between them uses the loopback interface. And how such ranks find each other: a wrong key, a
 * foreign protocol, a rank that joins twice. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/built_modules.h"
#include "tests/comm/collectives.h"
#include "tracker/base/clock.h"
#include "trainer/comm/bootstrap.h"
#include "trainer/comm/hier.h"

#define RANKS_MAX 8

typedef int rank_fn(struct comm *c);

struct world {
	int nodes, size[4]; /* ranks per machine */
	int sockets;
	rank_fn *fn;
};

static int ranks_of(const struct world *w)
{
	int sum = 0;

	for (int b = 0; b < w->nodes; b++)
		sum += w->size[b];
	return sum;
}

static int listen_here(int *ret_port)
{
	struct err err = ERR_INIT;
	int fd = -1;

	assert_int_equal(tcp_listen("127.0.0.1", 0, &fd, &err), 0);
	*ret_port = tcp_port(fd);
	return fd;
}

static struct bootstrap_opts member(int self, int count, int listener, int port)
{
	return (struct bootstrap_opts){ .what = "rank", .host = "127.0.0.1", .port = port, .key = "secret",
				       .wait_s = 20, .listener = self ? -1 : listener, .self = self, .count = count };
}

/* Main function of rank number `local` of that node. */
static int live(const struct world *w, int node, int local, const int *shm_fd, const struct bootstrap_opts *eo)
{
	struct comm_shm_opts so = { .fd = shm_fd[node], .rank = local, .world = w->size[node], .timeout_s = 20 };
	struct comm_hier_opts o = { .sockets = w->sockets, .timeout_s = 20 };
	struct err err = ERR_INIT;
	struct comm *c;
	char name[32];
	int bad = link_load(&o.link, "ucx", &err);

	snprintf(name, sizeof(name), "node %d", node);
	o.node = name;
	if (!bad)
		bad = bootstrap_open(&o.bootstrap, eo, &err);
	if (!bad)
		bad = comm_shm_open(&o.local, &so, &err);
	if (!bad)
		bad = comm_hier_open(&c, &o, &err);
	if (bad) {
		fprintf(stderr, "rank %d: %s\n", eo->self, err.text);
		return 99;
	}
	bad = w->fn(c);
	c->ops->close(c);
	bootstrap_close(o.bootstrap);
	return bad;
}

static void run_world(const struct world *w, int *ret)
{
	pid_t pid[RANKS_MAX];
	struct err err = ERR_INIT;
	int world = ranks_of(w), port, listener = listen_here(&port), shm_fd[4], r = 0, status;

	for (int b = 0; b < w->nodes; b++)
		assert_int_equal(comm_shm_make(&shm_fd[b], w->size[b], &err), 0);
	for (int b = 0; b < w->nodes; b++)
		for (int l = 0; l < w->size[b]; l++, r++) {
			struct bootstrap_opts eo = member(r, world, listener, port);

			pid[r] = fork();
			if (pid[r] == 0)
				_exit(live(w, b, l, shm_fd, &eo));
		}
	for (r = 0; r < world; r++) {
		waitpid(pid[r], &status, 0);
		ret[r] = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
	}
	for (int b = 0; b < w->nodes; b++)
		close(shm_fd[b]);
	close(listener);
}

static bool no_link(void)
{
	const struct link_module *l;
	struct err err = ERR_INIT;

	if (!link_load(&l, "ucx", &err))
		return false;
	print_message("skipped: %s\n", err.text);
	return true;
}

static void expect_clean(const struct world *w)
{
	int code[RANKS_MAX];

	run_world(w, code);
	for (int r = 0; r < ranks_of(w); r++)
		assert_int_equal(code[r], 0);
}

static void test_collectives(void **state)
{
	static const struct world worlds[] = { { 2, { 2, 2 }, 1, NULL }, { 2, { 1, 3 }, 4, NULL },
					       { 3, { 2, 1, 1 }, 2, NULL }, { 2, { 1, 1 }, 1, NULL } };
	static rank_fn *const fns[] = { collectives_allreduce, collectives_scatter, collectives_broadcast,
					collectives_ring, collectives_terms };

	(void)state;
	if (no_link())
		skip();
	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++)
		for (size_t f = 0; f < sizeof(fns) / sizeof(fns[0]); f++) {
			struct world w = worlds[i];

			w.fn = fns[f];
			expect_clean(&w);
		}
}

/* Sums of numbers that do not add exactly: the same bits on every rank, and in a repeat. */
static int same_bits(struct comm *c)
{
	const size_t n = 50001;
	float *x = malloc(n * sizeof(*x)), *root = malloc(n * sizeof(*root)), *first = malloc(n * sizeof(*first));
	struct err err = ERR_INIT;
	int bad = 0;

	for (int k = 0; !bad && k < 3; k++) {
		for (size_t i = 0; i < n; i++)
			x[i] = (float)(0.1 * (double)(i % 97) + 1e-5 / (1.0 + c->rank) + 1e4 * (c->rank == 2));
		bad = c->ops->allreduce(c, x, (int64_t)n, DTYPE_F32, &err);
		memcpy(root, x, n * sizeof(*x));
		bad = bad ? bad : c->ops->broadcast(c, root, n * sizeof(*root), 1, &err);
		bad = bad ? bad : memcmp(x, root, n * sizeof(*x)) != 0;
		if (k == 0)
			memcpy(first, x, n * sizeof(*x));
		bad = bad ? bad : memcmp(x, first, n * sizeof(*x)) != 0;
	}
	free(x);
	free(root);
	free(first);
	return bad;
}

/* Sums of more data than are in flight at once. */
static int large(struct comm *c)
{
	const size_t n = 3000017;
	double *x = malloc(n * sizeof(*x));
	struct err err = ERR_INIT;
	int bad = 0;

	for (size_t i = 0; i < n; i++)
		x[i] = (double)(i % 1009) * (c->rank + 1);
	bad = c->ops->allreduce(c, x, (int64_t)n, DTYPE_F64, &err);
	for (size_t i = 0; i < n && !bad; i++)
		bad = x[i] != (double)(i % 1009) * c->world * (c->world + 1) / 2;
	free(x);
	return bad;
}

/* The same for slices. */
static int large_slices(struct comm *c)
{
	const size_t each = 1500013, first = each * (size_t)c->rank;
	double *x = malloc(each * (size_t)c->world * sizeof(*x));
	struct err err = ERR_INIT;
	int bad;

	for (size_t i = 0; i < each * (size_t)c->world; i++)
		x[i] = (double)(i % 1009) * (c->rank + 1);
	bad = c->ops->reduce_scatter(c, x, (int64_t)each, DTYPE_F64, &err);
	for (size_t i = first; i < first + each && !bad; i++)
		bad = x[i] != (double)(i % 1009) * c->world * (c->world + 1) / 2;
	free(x);
	return bad;
}

static void test_same_bits(void **state)
{
	(void)state;
	if (no_link())
		skip();
	expect_clean(&(struct world){ 2, { 2, 2 }, 4, same_bits });
	expect_clean(&(struct world){ 3, { 1, 2, 1 }, 1, same_bits });
	expect_clean(&(struct world){ 2, { 1, 1 }, 4, large });
	expect_clean(&(struct world){ 3, { 1, 2, 1 }, 2, large });
	expect_clean(&(struct world){ 2, { 1, 1 }, 1, large_slices });
	expect_clean(&(struct world){ 3, { 1, 2, 1 }, 4, large_slices });
}

static void test_groups(void **state)
{
	(void)state;
	if (no_link())
		skip();
	expect_clean(&(struct world){ 2, { 2, 2 }, 2, collectives_groups });
	expect_clean(&(struct world){ 2, { 1, 2 }, 1, collectives_groups });
	expect_clean(&(struct world){ 3, { 2, 1, 2 }, 2, collectives_groups });
	expect_clean(&(struct world){ 2, { 2, 1 }, 1, collectives_threads });
}

/* Rank 0 sends one message and ends; rank 1 receives it after exchanging many with rank 2. */
static int short_life(struct comm *c)
{
	struct err err = ERR_INIT;
	char words[1000] = "";
	int rc = 0;

	if (c->rank == 0)
		return c->ops->send(c, "once", 5, 1, &err) ? 10 : 0;
	for (int k = 0; !rc && k < 6000; k++)
		rc = k % 2 == c->rank - 1 ? c->ops->send(c, words, sizeof(words), 3 - c->rank, &err)
			: c->ops->recv(c, words, sizeof(words), 3 - c->rank, &err);
	if (!rc && c->rank == 1)
		rc = c->ops->recv(c, words, 5, 0, &err) || strcmp(words, "once") != 0;
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	return rc ? 11 : 0;
}

static void test_early_end(void **state)
{
	static const struct world w = { 3, { 1, 1, 1 }, 1, short_life };

	(void)state;
	if (no_link())
		skip();
	expect_clean(&w);
}

/* ---- sent messages leave, whatever the sender does next ---- */

#define ELSEWHERE_MOST_S 15.0

static atomic_int *heard; /* shared by the ranks: the number of messages that rank 2 has received */

static bool others_come(int messages)
{
	const double until = clock_mono_s() + ELSEWHERE_MOST_S;

	while (atomic_load(heard) < messages && clock_mono_s() < until)
		clock_sleep_s(0.001);
	return atomic_load(heard) >= messages;
}

/* Long messages fill the buffers, short ones follow them. */
static const size_t said_bytes[] = { 300000, 1000, 700017, 70000, 3 };

#define SAID (int)(sizeof(said_bytes) / sizeof(said_bytes[0]))

static int hear_all(struct comm *c)
{
	unsigned char *x = malloc(said_bytes[2]);
	struct err err = ERR_INIT;
	int rc = 0;

	for (int k = 0; !rc && k < SAID; k++) {
		clock_sleep_s(0.05); /* rank 0 is ahead */
		rc = c->ops->recv(c, x, said_bytes[k], 0, &err);
		for (size_t i = 0; !rc && i < said_bytes[k]; i++)
			rc = x[i] != (unsigned char)(i * 7 + (size_t)k);
		atomic_fetch_add(heard, 1);
	}
	if (rc)
		fprintf(stderr, "rank 2: %s\n", err.text);
	free(x);
	return rc ? 20 : 0;
}

static int say_one(struct comm *c, int k)
{
	unsigned char *x = malloc(said_bytes[k]);
	struct err err = ERR_INIT;
	int rc;

	for (size_t i = 0; i < said_bytes[k]; i++)
		x[i] = (unsigned char)(i * 7 + (size_t)k);
	rc = c->ops->send(c, x, said_bytes[k], 2, &err);
	if (rc)
		fprintf(stderr, "rank 0: %s\n", err.text);
	free(x);
	return rc ? 21 : 0;
}

/* Rank 0 sends, then waits without a call: for data, or while computing. */
static int goes_to_work(struct comm *c)
{
	int rc = c->rank == 2 ? hear_all(c) : 0;

	for (int k = 0; !rc && c->rank == 0 && k < SAID; k++) {
		rc = say_one(c, k);
		if (!rc && k % 2 && !others_come(k + 1))
			rc = 22;
	}
	return !rc && c->rank == 0 && !others_come(SAID) ? 22 : rc;
}

/* Rank 0 waits for rank 1 in another communicator, and rank 1 waits for rank 2. */
static int goes_to_neighbour(struct comm *c)
{
	struct err err = ERR_INIT;
	struct comm *pair;
	int rc = c->ops->split(c, c->rank < 2 ? 0 : 1, &pair, &err) ? 23 : 0;

	if (!rc && c->rank == 2)
		rc = hear_all(c);
	for (int k = 0; !rc && c->rank == 0 && k < SAID; k++)
		rc = say_one(c, k);
	if (!rc && c->rank == 1 && !others_come(SAID))
		rc = 22;
	if (!rc && c->rank < 2 && pair->ops->barrier(pair, &err))
		rc = 24;
	if (rc != 23)
		pair->ops->close(pair);
	return rc;
}

/* Rank 0 ends. */
static int goes_away(struct comm *c)
{
	int rc = c->rank == 2 ? hear_all(c) : 0;

	for (int k = 0; !rc && c->rank == 0 && k < SAID; k++)
		rc = say_one(c, k);
	return rc;
}

/* Small buffers of the machine, and long messages if UCX copies them: most of one would remain in a process that makes
 * no further calls. */
static void test_busy_sender(void **state)
{
	static rank_fn *const fns[] = { goes_to_work, goes_to_neighbour, goes_away };

	(void)state;
	if (no_link())
		skip();
	heard = mmap(NULL, sizeof(*heard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(heard, MAP_FAILED);
	setenv("UCX_TCP_TX_SEG_SIZE", "256k", 1);
	setenv("UCX_TCP_SNDBUF", "16k", 1);
	setenv("UCX_TCP_RCVBUF", "128k", 1);
	for (size_t f = 0; f < sizeof(fns) / sizeof(fns[0]); f++)
		for (int sockets = 1; sockets <= 4; sockets += 3) {
			atomic_store(heard, 0);
			expect_clean(&(struct world){ 2, { 2, 1 }, sockets, fns[f] });
		}
	unsetenv("UCX_TCP_TX_SEG_SIZE");
	unsetenv("UCX_TCP_SNDBUF");
	unsetenv("UCX_TCP_RCVBUF");
	munmap(heard, sizeof(*heard));
}

static int dying(struct comm *c)
{
	struct err err = ERR_INIT;
	double x = 1, start;
	int rc = 0;

	for (int k = 0; k < 5; k++)
		rc |= c->ops->allreduce(c, &x, 1, DTYPE_F64, &err);
	if (rc)
		return 10;
	if (c->rank == 2) {
		clock_sleep_s(0.3);
		raise(SIGKILL);
	}
	start = clock_mono_s();
	rc = c->ops->allreduce(c, &x, 1, DTYPE_F64, &err);
	if (rc != ERR_PEER || c->ops->barrier(c, &err) != ERR_PEER)
		return 11;
	return clock_mono_s() - start > 15 ? 12 : 0;
}

static void test_dead_rank(void **state)
{
	int code[RANKS_MAX];

	(void)state;
	if (no_link())
		skip();
	run_world(&(struct world){ 2, { 2, 2 }, 4, dying }, code);
	for (int r = 0; r < 4; r++)
		assert_int_equal(code[r], r == 2 ? -SIGKILL : 0);
}

/* ---- how members meet ---- */

struct guest {
	int self, count;
	const char *key;
	const char *says; /* sent instead of joining */
	int expect;	  /* ERR_*, 0 */
};

static int be_guest(const struct guest *g, int port)
{
	struct bootstrap_opts eo = member(1, g->count, -1, port);
	struct err err = ERR_INIT;
	struct bootstrap *x;
	char byte = 0;
	int fd, rc;

	eo.self = g->self;
	eo.key = g->key;
	if (g->says) {
		if (tcp_connect("127.0.0.1", port, clock_mono_s() + 5, &fd, &err))
			return 1;
		send(fd, g->says, strlen(g->says), MSG_NOSIGNAL);
		clock_sleep_s(0.3);
		close(fd);
		return 0;
	}
	rc = bootstrap_open(&x, &eo, &err);
	if (rc != g->expect)
		return 2;
	if (!rc) {
		size_t n;

		byte = (char)('a' + bootstrap_self(x));
		rc = bootstrap_round(x, &byte, 1, NULL, &err);
		if (rc || memcmp(bootstrap_said(x, 1, &n), "b", 1) || memcmp(bootstrap_said(x, 2, &n), "c", 1))
			return 3;
		bootstrap_close(x);
	}
	return 0;
}

/* Member 0 next to those guests; stores its error text, "" if all went well. */
static void host(const struct guest *g, int n, double wait_s, char said[sizeof(((struct err *)0)->text)])
{
	int port, listener = listen_here(&port), status;
	struct bootstrap_opts eo = member(0, 3, listener, port);
	struct err err = ERR_INIT;
	struct bootstrap *x;
	pid_t pid[8];

	for (int i = 0; i < n; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			_exit(be_guest(&g[i], port));
	}
	eo.wait_s = wait_s;
	if (!bootstrap_open(&x, &eo, &err)) {
		assert_int_equal(bootstrap_round(x, "a", 1, NULL, &err), 0);
		bootstrap_close(x);
	}
	snprintf(said, sizeof(err.text), "%s", err.text);
	for (int i = 0; i < n; i++) {
		waitpid(pid[i], &status, 0);
		assert_int_equal(status, 0);
	}
	close(listener);
}

static void test_unknown_connections(void **state)
{
	static const struct guest guests[] = {
		{ BOOTSTRAP_ANY, 3, "secret", NULL, 0 }, { 0, 3, NULL, "GET / HTTP/1.0\r\n\r\n", 0 },
		{ 1, 3, "guess", NULL, ERR_PEER },	{ 0, 3, NULL,
		  "01234567890123456789012345678901234567890123456789"
		  "01234567890123456789012345678901234567890123456789", 0 },
		{ BOOTSTRAP_ANY, 3, "secret", NULL, 0 },
	};
	char said[600];

	(void)state;
	host(guests, 5, 20, said);
	assert_string_equal(said, "");
}

static void test_contradictions(void **state)
{
	static const struct guest other[] = { { 1, 4, "secret", NULL, ERR_USAGE } },
				  old[] = { { 1, 3, NULL, "drkpte01\1\1\1\1\1\1\1\1", 0 } };
	char said[600];

	(void)state;
	host(other, 1, 20, said);
	assert_non_null(strstr(said, "3 ranks"));
	host(old, 1, 1, said);
	assert_non_null(strstr(said, "protocol version 16843009, this one "));
	host(NULL, 0, 0.2, said);
	assert_non_null(strstr(said, "rank 1 of 3 did not connect"));
	assert_non_null(strstr(said, "only this machine reaches"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unknown_connections),  cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_collectives), cmocka_unit_test(test_early_end),
		cmocka_unit_test(test_same_bits), cmocka_unit_test(test_groups),
		cmocka_unit_test(test_busy_sender), cmocka_unit_test(test_dead_rank),
	};

	use_built_modules();
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
