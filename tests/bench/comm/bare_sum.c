/* SPDX-License-Identifier: Apache-2.0 */
/* bare_sum.c: the minimum work of an all-reduce of two ranks in shared memory: each of two threads adds one half of two
 * buffers and stores the sum in both. bare_sum BYTES ROUNDS prints the seconds of one; for tests/bench/comm/compare. */
#pragma GCC optimize("O3") /* vectorised, as any serious implementation is */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static float *buffer[2];
static size_t count;
static int rounds;
static pthread_barrier_t meeting;

#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static void add(float *restrict a, float *restrict b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		a[i] = b[i] = a[i] + b[i];
}

static void *add_half(void *arg)
{
	size_t half = count / 2, from = arg ? half : 0, n = arg ? count - half : half;

	for (int k = 0; k < rounds; k++) {
		pthread_barrier_wait(&meeting);
		add(buffer[0] + from, buffer[1] + from, n);
		pthread_barrier_wait(&meeting);
	}
	return NULL;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char *argv[])
{
	pthread_t other;
	double start;

	count = argc > 1 ? strtoull(argv[1], NULL, 10) / sizeof(float) : 1;
	rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
	for (int i = 0; i < 2; i++) {
		buffer[i] = malloc((count + 1) * sizeof(float));
		for (size_t k = 0; buffer[i] && k < count; k++)
			buffer[i][k] = 0;
	}
	if (!buffer[0] || !buffer[1])
		return 1;
	pthread_barrier_init(&meeting, NULL, 2);
	start = now();
	pthread_create(&other, NULL, add_half, &meeting);
	add_half(NULL);
	pthread_join(other, NULL);
	printf("%.9f\n", (now() - start) / rounds);
	return 0;
}
