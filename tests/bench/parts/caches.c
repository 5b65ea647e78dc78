/* SPDX-License-Identifier: Apache-2.0 */
/* caches.c: a read is one load per line, the minimum of any kernel; a write uses the C library's stores, or
 * non-temporal ones. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/bench/parts/caches.h"

#define LINE 64
#define CHUNK ((size_t)4096)		  /* bytes of each piece per turn */
#define SMALL ((size_t)64 << 10)	  /* up to this size one thread does the work */
#define CACHE_LEAST ((size_t)16 << 20) /* if the size is unknown */

static struct {
	int threads;
	size_t bytes;
	struct piece other;
} caches;

typedef long long two __attribute__((vector_size(16), may_alias));

static volatile uint64_t sink; /* keeps the reads from being optimised out */

void caches_open(int threads)
{
	long reported = sysconf(_SC_LEVEL3_CACHE_SIZE);
	size_t most = reported > (long)CACHE_LEAST ? (size_t)reported : CACHE_LEAST;

	caches.threads = threads;
	caches.bytes = 2 * most;
	caches.other.bytes = caches.bytes;
	caches.other.at = mmap(NULL, caches.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (caches.other.at == MAP_FAILED) {
		fprintf(stderr, "no memory of the size of the caches\n");
		exit(1);
	}
	madvise(caches.other.at, caches.bytes, MADV_HUGEPAGE); /* keeps TLB entries */
	memset(caches.other.at, 1, caches.bytes);
}

size_t caches_bytes(void)
{
	return caches.bytes;
}

void caches_empty(void)
{
	caches_read(&caches.other, 1);
}

/* A thread's share of a piece: complete lines, except for the last. */
static struct piece share(const struct piece *p, int thread, int threads)
{
	size_t lines = (p->bytes + LINE - 1) / LINE;
	size_t begin = lines * (size_t)thread / (size_t)threads * LINE;
	size_t end = lines * (size_t)(thread + 1) / (size_t)threads * LINE;

	end = end < p->bytes ? end : p->bytes;
	return (struct piece){ p->at + begin, end > begin ? end - begin : 0 };
}

static uint64_t read_chunk(const struct piece *p, size_t from, size_t end)
{
	uint64_t sum = 0;

	end = end < p->bytes ? end : p->bytes;
	for (size_t i = from; i < end; i += LINE)
		sum += (uint64_t)p->at[i];
	return sum;
}

static void write_chunk(const struct piece *p, size_t from, size_t end, bool past)
{
	end = end < p->bytes ? end : p->bytes;
	if (from >= end)
		return;
#if defined(__x86_64__)
	if (past && (uintptr_t)p->at % 16 == 0) {
		for (size_t i = from; i + 16 <= end; i += 16)
			__builtin_ia32_movntdq((two *)(p->at + i), (two){ 0, 0 });
		return;
	}
#endif
	(void)past;
	memset(p->at + from, 0, end - from);
}

static uint64_t move_share(const struct piece *pieces, int n_in, int n, bool past, int thread, int threads)
{
	uint64_t sum = 0;
	bool more = true;

	for (size_t from = 0; more; from += CHUNK) {
		more = false;
		for (int i = 0; i < n; i++) {
			struct piece p = share(&pieces[i], thread, threads);

			if (i < n_in)
				sum += read_chunk(&p, from, from + CHUNK);
			else
				write_chunk(&p, from, from + CHUNK, past);
			more = more || from + CHUNK < p.bytes;
		}
	}
	return sum;
}

void caches_move(const struct piece *p, int n_in, int n, bool past)
{
	size_t bytes = 0;
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		bytes += p[i].bytes;
	if (caches.threads == 1 || bytes <= SMALL)
		sum = move_share(p, n_in, n, past, 0, 1);
	else
#pragma omp parallel for num_threads(caches.threads) schedule(static, 1) reduction(+ : sum)
		for (int t = 0; t < caches.threads; t++)
			sum += move_share(p, n_in, n, past, t, caches.threads);
	sink = sum;
#if defined(__x86_64__)
	__builtin_ia32_sfence();
#endif
}

void caches_read(const struct piece *p, int n)
{
	caches_move(p, n, n, false);
}
