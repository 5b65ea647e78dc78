/* SPDX-License-Identifier: Apache-2.0 */
/* caches.h: for benchmarks: brings data into the caches as a program would find them, and moves them from there as
 * fast as this machine can: the limit set by memory and caches. */
#ifndef DPT_BENCH_CACHES_H
#define DPT_BENCH_CACHES_H

#include <stdbool.h>
#include <stddef.h>

struct piece { /* of memory */
	char *at;
	size_t bytes;
};

void caches_open(int threads); /* called first; work is shared by the threads of OpenMP's team */

/* Bytes that must be read until nothing of the previous data is left in any cache. */
size_t caches_bytes(void);

void caches_empty(void);
void caches_read(const struct piece *p, int n); /* afterwards the caches contain as much of it as fits */

/* Reads the first n_in pieces and writes the others, all at once; past: with non-temporal stores. */
void caches_move(const struct piece *p, int n_in, int n, bool past);

#endif
