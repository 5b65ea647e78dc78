/* SPDX-License-Identifier: Apache-2.0 */
/* read_peak.c: GB/s at which one thread repeatedly reads a memory area: a program that reads as many bytes per token
 * cannot make tokens faster. The fastest way to read differs between machines, so several alternate: front to back or
 * at several places at once, with prefetching or without, with large pages where the system provides them.
 * The best pass of the best way counts, by the wall clock, because the wait for memory is what is measured.
 *   read_peak [BYTES] [SECONDS] [-v]     512 MiB, 3 s; -v: also one line per way
 * Caches that hold the area between two passes do so as well for a program that reads as much per token. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define LINES 4 /* per place and iteration: independent sums */
#define PLACES_MOST 8
#define LARGE_PAGE ((size_t)2 << 20)

typedef uint64_t line __attribute__((vector_size(64)));

static const struct way {
	int places;
	size_t ahead; /* lines; 0: the hardware prefetcher only */
} ways[] = { { 1, 0 }, { 1, 16 }, { 1, 64 }, { 2, 0 }, { 2, 16 }, { 4, 0 }, { 4, 16 }, { 8, 0 }, { 8, 16 } };

#define WAYS (sizeof(ways) / sizeof(ways[0]))

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns a sum, so that no read is optimised out. */
__attribute__((always_inline)) static inline uint64_t read_at(const line *p, size_t n, const int places, size_t ahead)
{
	const size_t each = n / (size_t)places / LINES * LINES;
	line lane[LINES] = { { 0 } };
	uint64_t sum = 0;

	for (size_t i = 0; i < each; i += LINES)
#pragma GCC unroll 8
		for (int at = 0; at < places; at++)
#pragma GCC unroll 4
			for (int l = 0; l < LINES; l++) {
				const line *q = p + (size_t)at * each + i + (size_t)l;

				if (ahead)
					__builtin_prefetch(q + ahead);
				lane[l] += *q;
			}
	for (int l = 0; l < LINES; l++)
		for (size_t k = 0; k < sizeof(line) / sizeof(uint64_t); k++)
			sum += lane[l][k];
	return sum;
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target_clones("default", "avx2", "avx512f")))
#endif
static uint64_t
read_all(const struct way *w, const line *p, size_t n)
{
	switch (w->places) {
	case 1:
		return w->ahead ? read_at(p, n, 1, w->ahead) : read_at(p, n, 1, 0);
	case 2:
		return w->ahead ? read_at(p, n, 2, w->ahead) : read_at(p, n, 2, 0);
	case 4:
		return w->ahead ? read_at(p, n, 4, w->ahead) : read_at(p, n, 4, 0);
	default:
		return w->ahead ? read_at(p, n, 8, w->ahead) : read_at(p, n, 8, 0);
	}
}

/* Allocates large pages, as for tensors (trainer/backends/cpu/cpu_module.c). NULL if there is no memory. */
static line *memory_of(size_t bytes)
{
	void *p = NULL;

	if (posix_memalign(&p, LARGE_PAGE, bytes))
		return NULL;
	madvise(p, bytes, MADV_HUGEPAGE);
	memset(p, 1, bytes);
	return p;
}

/* Stores bytes per second of each way in best; returns the sum of all that was read. */
static uint64_t measure(const line *p, size_t lines, double seconds, double *best)
{
	const double begin = now_s(), bytes = (double)lines * sizeof(line);
	uint64_t sum = 0;

	do
		for (size_t i = 0; i < WAYS; i++) {
			const double at = now_s();
			double rate;

			sum += read_all(&ways[i], p, lines);
			rate = bytes / (now_s() - at);
			best[i] = rate > best[i] ? rate : best[i];
		}
	while (now_s() - begin < seconds);
	return sum;
}

int main(int argc, char *argv[])
{
	const size_t unit = sizeof(line) * LINES * PLACES_MOST; /* every way reads all of it */
	const size_t asked = argc > 1 ? (size_t)strtod(argv[1], NULL) : (size_t)512 << 20;
	const size_t bytes = asked < unit ? unit : asked / unit * unit;
	double best[WAYS] = { 0 }, most = 0;
	line *p = memory_of(bytes);
	uint64_t sum;

	if (!p) {
		fprintf(stderr, "read_peak: out of memory\n");
		return 1;
	}
	sum = measure(p, bytes / sizeof(line), argc > 2 ? strtod(argv[2], NULL) : 3, best);
	for (size_t i = 0; i < WAYS; i++) {
		if (argc > 3 && strcmp(argv[3], "-v") == 0)
			printf("%d places, %2zu lines ahead: %.2f\n", ways[i].places, ways[i].ahead, 1e-9 * best[i]);
		most = best[i] > most ? best[i] : most;
	}
	free(p);
	printf("%.2f\n", 1e-9 * most);
	return sum == 0; /* the data are ones */
}
