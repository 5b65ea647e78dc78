/* caches.h: puts data where a program would find it, and moves it as fast as this machine can from there: what memory
 * and caches allow, for benches. */
#ifndef DPT_BENCH_CACHES_H
#define DPT_BENCH_CACHES_H

#include <stdbool.h>
#include <stddef.h>

struct piece { /* of memory */
	char *at;
	size_t bytes;
};

void caches_open(int threads); /* before anything else here; of OpenMP's team, of which each thread has its share */

/* So much must be read before nothing of what was there is left in any cache. */
size_t caches_bytes(void);

void caches_empty(void);
void caches_read(const struct piece *p, int n); /* afterwards as much of it is near as caches hold */

/* Reads the first n_in pieces and writes the others, all at once; past: what is written goes past the caches. */
void caches_move(const struct piece *p, int n_in, int n, bool past);

#endif
