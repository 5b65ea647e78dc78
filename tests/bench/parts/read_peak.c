/* read_peak.c: GB/s at which one thread reads memory that no cache holds, front to back: who reads so many bytes a
 * token makes tokens no faster. The best of some passes over 512 MiB; by the wall clock, because waiting for memory is
 * what is measured. read_peak [SECONDS] (1) */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES ((size_t)512 << 20)
#define LANES 32 /* sums that do not wait for each other */

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A sum, so that nothing can be left out. */
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target_clones("default", "avx2", "avx512f")))
#endif
static uint64_t
read_all(const uint64_t *p, size_t n)
{
	uint64_t lane[LANES] = { 0 }, sum = 0;

	for (size_t i = 0; i < n; i += LANES)
		for (int l = 0; l < LANES; l++)
			lane[l] += p[i + (size_t)l];
	for (int l = 0; l < LANES; l++)
		sum += lane[l];
	return sum;
}

int main(int argc, char *argv[])
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 1, begin = now_s(), at, took, best = 0;
	uint64_t *p = malloc(BYTES), sum = 0;

	if (!p) {
		fprintf(stderr, "read_peak: out of memory\n");
		return 1;
	}
	memset(p, 1, BYTES);
	do {
		at = now_s();
		sum += read_all(p, BYTES / sizeof(*p));
		took = now_s() - at;
		best = (double)BYTES / took > best ? (double)BYTES / took : best;
	} while (now_s() - begin < seconds);
	free(p);
	printf("%.2f\n", 1e-9 * best);
	return sum == 0; /* ones were read */
}
