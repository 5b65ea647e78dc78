/* SPDX-License-Identifier: Apache-2.0 */
/* fma_peak.c: GFLOP/s of multiply-adds on registers: the upper limit for any program that computes a product of m x k
 * and k x n matrices with 2 m n k operations in that type on these cores. f32: vfmadd; bf16: vdpbf16ps, pairs of bf16
 * added to f32. The best of windows of 10 ms, all threads together. fma_peak f32|bf16 THREADS [SECONDS] (0.3); exits
 * with 77 and a reason if this loop is not the fastest way on the processor. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define SKIP 77
#define WINDOW_S 0.01
#define THREADS_MOST 1024

typedef double burst_fn(long rounds); /* returns floating-point operations */

static int no_peak(const char *why)
{
	fprintf(stderr, "fma_peak: %s\n", why);
	return SKIP;
}

#if defined(__x86_64__)
/* Enough independent sums to hide the latency of two units; in assembly, so that they stay in registers whatever the
 * compiler decides. Register 15 holds ones. */
#define BURST(insn, reg)                                                                                               \
	__asm__ volatile("vbroadcastss %1, %%" reg "15\n"                                                              \
			 ".irp n," SUMS "\n vxorps %%xmm\\n, %%xmm\\n, %%xmm\\n\n .endr\n"                             \
			 "1:\n .irp n," SUMS "\n " insn " %%" reg "15, %%" reg "15, %%" reg "\\n\n .endr\n"            \
			 "dec %0\n jnz 1b\n"                                                                           \
			 : "+r"(rounds)                                                                                \
			 : "m"(ones)                                                                                   \
			 : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",       \
			   "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")
#define SUMS "0,1,2,3,4,5,6,7,8,9,10,11,12,13"
#define SUM_COUNT 14

__attribute__((target("avx512f"))) static double burst_avx512(long rounds)
{
	const float ones = 1;
	double done = 2.0 * 16 * SUM_COUNT * (double)rounds;

	BURST("vfmadd231ps", "zmm");
	return done;
}

__attribute__((target("avx512f,avx512bf16"))) static double burst_bf16(long rounds)
{
	const uint32_t ones = 0x3f803f80;
	double done = 4.0 * 16 * SUM_COUNT * (double)rounds;

	BURST("vdpbf16ps", "zmm");
	return done;
}

__attribute__((target("avx2,fma"))) static double burst_avx2(long rounds)
{
	const float ones = 1;
	double done = 2.0 * 8 * SUM_COUNT * (double)rounds;

	BURST("vfmadd231ps", "ymm");
	return done;
}

/* AMX-BF16; compilers before gcc 13 do not know its name. */
static int has_tiles(void)
{
	unsigned r[4];

	return __get_cpuid_count(7, 0, &r[0], &r[1], &r[2], &r[3]) && (r[3] >> 22 & 1);
}

static int choose(int bf16, burst_fn **ret)
{
	__builtin_cpu_init();
	if (bf16 && has_tiles())
		return no_peak("this processor multiplies bf16 in tiles, which no loop here measures");
	if (bf16 && !__builtin_cpu_supports("avx512bf16"))
		return no_peak("this processor has no arithmetic on bf16");
	if (bf16)
		*ret = burst_bf16;
	else if (__builtin_cpu_supports("avx512f"))
		*ret = burst_avx512;
	else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		*ret = burst_avx2;
	else
		return no_peak("this processor has no fused multiply-add");
	return 0;
}
#else
static int choose(int bf16, burst_fn **ret)
{
	(void)bf16, (void)ret;
	return no_peak("known for x86-64 only");
}
#endif

/* The thread's processor time, so that other programs on the core do not lower the limit. */
static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct runner {
	pthread_t thread;
	pthread_barrier_t *start;
	burst_fn *burst;
	double seconds, best; /* best: operations per second */
};

static void *run(void *arg)
{
	struct runner *r = arg;
	double begin, at, done;

	pthread_barrier_wait(r->start);
	for (begin = now_s(); now_s() - begin < r->seconds;) {
		done = 0;
		at = now_s();
		do
			done += r->burst(10000);
		while (now_s() - at < WINDOW_S);
		done /= now_s() - at;
		r->best = done > r->best ? done : r->best;
	}
	return NULL;
}

int main(int argc, char *argv[])
{
	int bf16 = argc > 1 && strcmp(argv[1], "bf16") == 0, threads = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
	double seconds = argc > 3 ? strtod(argv[3], NULL) : 0.3, sum = 0;
	static struct runner all[THREADS_MOST];
	pthread_barrier_t start;
	burst_fn *burst = NULL;
	int rc = choose(bf16, &burst);

	if (rc)
		return rc;
	threads = threads < 1 ? 1 : threads > THREADS_MOST ? THREADS_MOST : threads;
	pthread_barrier_init(&start, NULL, (unsigned)threads);
	for (int i = 0; i < threads; i++) {
		all[i] = (struct runner){ .start = &start, .burst = burst, .seconds = seconds };
		if (pthread_create(&all[i].thread, NULL, run, &all[i])) {
			fprintf(stderr, "fma_peak: cannot start thread %d of %d\n", i + 1, threads);
			return 1; /* waiting threads end with the process */
		}
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(all[i].thread, NULL);
		sum += all[i].best;
	}
	printf("%.1f\n", 1e-9 * sum);
	return 0;
}
