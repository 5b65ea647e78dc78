/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_test.c: the fake of NCCL, between processes: the results of its collectives in any order of the ranks' streams,
 * and its refusal of ranks with different collectives, two ranks on one device, and host memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#define RANKS 3
#define COUNT 30 /* elements, divided among the ranks */

static ncclUniqueId id;

struct rank {
	int number;
	ncclComm_t comm;
	cudaStream_t stream;
	double *memory;
};

/* In a child: a failed check ends it with the line's number. */
#define MUST(x)                                                                                                        \
	do {                                                                                                           \
		if (!(x)) {                                                                                            \
			fprintf(stderr, "line %d: %s\n", __LINE__, #x);                                                \
			_exit(1);                                                                                      \
		}                                                                                                      \
	} while (0)

static ncclResult_t state_of(ncclComm_t c)
{
	ncclResult_t state = ncclInternalError;

	MUST(ncclCommGetAsyncError(c, &state) == ncclSuccess);
	return state;
}

static struct rank come(int number)
{
	struct rank r = { .number = number };
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

	config.blocking = 0;
	MUST(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking) == cudaSuccess);
	MUST(cudaMalloc((void **)&r.memory, COUNT * sizeof(double)) == cudaSuccess);
	MUST(ncclCommInitRankConfig(&r.comm, RANKS, id, number, &config) == ncclInProgress);
	while (state_of(r.comm) == ncclInProgress)
		usleep(100);
	return r;
}

static void put(const struct rank *r, double first)
{
	double values[COUNT];

	for (int i = 0; i < COUNT; i++)
		values[i] = first + i;
	MUST(cudaMemcpy(r->memory, values, sizeof(values), cudaMemcpyDefault) == cudaSuccess);
	MUST(cudaStreamSynchronize(NULL) == cudaSuccess);
}

static double get(const struct rank *r, int i)
{
	double values[COUNT];

	MUST(cudaStreamSynchronize(r->stream) == cudaSuccess);
	MUST(cudaMemcpy(values, r->memory, sizeof(values), cudaMemcpyDefault) == cudaSuccess);
	return values[i];
}

/* Runs fn as every rank; all must succeed. */
static void as_ranks(int devices, void (*fn)(int number))
{
	char text[16];
	pid_t pid[RANKS];

	snprintf(text, sizeof(text), "%d", devices);
	setenv("DPTRAIN_FAKE_DEVICES", text, 1);
	assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
	for (int r = 0; r < RANKS; r++) {
		pid[r] = fork();
		if (pid[r] == 0) {
			alarm(30);
			MUST(cudaSetDevice(r % devices) == cudaSuccess);
			fn(r);
			_exit(0);
		}
	}
	for (int r = 0; r < RANKS; r++) {
		int status = -1;

		assert_int_equal(waitpid(pid[r], &status, 0), pid[r]);
		assert_int_equal(status, 0);
	}
}

static void use_all(int number)
{
	struct rank r = come(number);
	const int each = COUNT / RANKS, next = (number + 1) % RANKS, last = (number + RANKS - 1) % RANKS;

	MUST(state_of(r.comm) == ncclSuccess);
	put(&r, 100 * number);
	MUST(ncclAllReduce(r.memory, r.memory, COUNT, ncclFloat64, ncclSum, r.comm, r.stream) == ncclSuccess);
	MUST(get(&r, 7) == 300 + 3 * 7);
	MUST(ncclReduceScatter(r.memory, r.memory + number * each, (size_t)each, ncclFloat64, ncclSum, r.comm,
			       r.stream) == ncclSuccess);
	MUST(get(&r, number * each + 2) == 3 * (300 + 3 * (number * each + 2)));
	MUST(ncclAllGather(r.memory + number * each, r.memory, (size_t)each, ncclFloat64, r.comm, r.stream) ==
	     ncclSuccess);
	for (int i = 0; i < COUNT; i++)
		MUST(get(&r, i) == 3 * (300 + 3 * i));
	put(&r, 100 * number);
	if (number > 0)
		MUST(ncclRecv(r.memory + 1, 1, ncclFloat64, last, r.comm, r.stream) == ncclSuccess);
	if (next > 0)
		MUST(ncclSend(r.memory, 2, ncclFloat64, next, r.comm, r.stream) == ncclSuccess);
	MUST(get(&r, 0) == 100 * number && get(&r, 1) == (number ? 100 * last : 1));
	MUST(ncclCommFinalize(r.comm) == ncclSuccess);
}

static void collectives(void **state)
{
	(void)state;
	as_ranks(RANKS, use_all);
}

static int differing; /* what rank 1 does differently */

static void differ(int number)
{
	struct rank r = come(number);
	const size_t count = number == 1 && differing == 0 ? COUNT - 1 : COUNT;
	const ncclDataType_t type = number == 1 && differing == 1 ? ncclFloat32 : ncclFloat64;

	put(&r, number);
	if (number == 1 && differing == 2)
		ncclAllGather(r.memory, r.memory, 1, ncclFloat64, r.comm, r.stream);
	else
		ncclAllReduce(r.memory, r.memory, count, type, ncclSum, r.comm, r.stream);
	cudaStreamSynchronize(r.stream);
	MUST(state_of(r.comm) == ncclInvalidUsage);
	MUST(strstr(ncclGetLastError(r.comm), "ranks disagree"));
}

static void ranks_that_differ(void **state)
{
	(void)state;
	for (differing = 0; differing < 3; differing++)
		as_ranks(RANKS, differ);
}

static void find_two(int number)
{
	struct rank r = come(number);

	MUST(state_of(r.comm) == ncclInvalidUsage);
	MUST(strstr(ncclGetLastError(r.comm), "Duplicate GPU"));
}

static void find_shared(int number)
{
	char text[16];

	snprintf(text, sizeof(text), "host %d", number);
	setenv("NCCL_HOSTID", text, 1);
	MUST(state_of(come(number).comm) == ncclSuccess);
}

static void two_on_one_device(void **state)
{
	(void)state;
	as_ranks(2, find_two);
	as_ranks(1, find_shared);
}

static void misuse(int number)
{
	struct rank r = come(number);
	double host[COUNT] = { 0 };

	MUST(ncclAllReduce(host, host, COUNT, ncclFloat64, ncclSum, r.comm, r.stream) == ncclInvalidArgument);
	MUST(ncclAllReduce(r.memory, r.memory, COUNT, ncclBfloat16, ncclSum, r.comm, r.stream) == ncclInvalidArgument);
	MUST(ncclCommAbort(r.comm) == ncclSuccess);
	MUST(ncclAllReduce(r.memory, r.memory, COUNT, ncclFloat64, ncclSum, r.comm, r.stream) != ncclSuccess);
}

static void refused_calls(void **state)
{
	(void)state;
	as_ranks(RANKS, misuse);
}

/* A dead rank is waited for until the others abort. */
static void wait_alone(int number)
{
	struct rank r = come(number);
	cudaEvent_t end;

	if (number == 1)
		_exit(0);
	MUST(cudaEventCreateWithFlags(&end, cudaEventDisableTiming) == cudaSuccess);
	MUST(ncclAllReduce(r.memory, r.memory, COUNT, ncclFloat64, ncclSum, r.comm, r.stream) == ncclSuccess);
	MUST(cudaEventRecord(end, r.stream) == cudaSuccess);
	for (int i = 0; i < 50; i++) {
		MUST(cudaEventQuery(end) == cudaErrorNotReady);
		usleep(1000);
	}
	MUST(state_of(r.comm) == ncclSuccess);
	ncclCommAbort(r.comm);
	MUST(cudaEventQuery(end) == cudaSuccess);
}

static void dead_rank(void **state)
{
	(void)state;
	as_ranks(RANKS, wait_alone);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collectives),	 cmocka_unit_test(ranks_that_differ),
		cmocka_unit_test(two_on_one_device), cmocka_unit_test(refused_calls),
		cmocka_unit_test(dead_rank),
	};

	return cmocka_run_group_tests_name("nccl", tests, NULL, NULL);
}
