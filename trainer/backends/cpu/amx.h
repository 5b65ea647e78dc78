/* amx.h: the tile registers of AMX (Intel's instruction set reference: TDPBF16PS), and plain loops that stand in for
 * them. A tile is 16 rows of a line each: of sums 16 floats, of a left operand 16 pairs of bf16 terms, of a right
 * operand the pairs of 16 columns. Knows nothing of matrices that are larger than a few tiles. */
#ifndef DPT_BACKENDS_CPU_AMX_H
#define DPT_BACKENDS_CPU_AMX_H

#include "trainer/backends/cpu/cpu.h"

/* Whether this process may use tiles: the processor has them for bf16 and the system gives their registers.
 * $DPTRAIN_CPU_TILES=no says that it may not, emulate that plain loops stand in for them, for tests and comparisons. */
enum cpu_tiles cpu_tiles_detect(enum cpu_isa isa);

/* Around a thread's products: sets the registers up, and gives them back. */
void amx_begin(enum cpu_tiles how);
void amx_end(enum cpu_tiles how);

/* Adds to one tile of sums the products of one tile of either side, rows so many bytes apart, by plain loops. */
struct amx_side {
	const void *tile;
	int64_t row;
};

void amx_add_plainly(struct amx_side a, struct amx_side b, float *sums, int64_t sums_row);

/* c [32][32] (+)= a b over `steps` times 32 terms. a: 32 rows of pairs of terms; b: 16 rows a step, each a pair of
 * terms of 32 columns. Rows lie so many bytes apart. */
struct amx_product {
	const void *a, *b;
	int64_t a_row, b_row, steps;
	float *c;
	int64_t c_row;
	bool add;
};

void amx_multiply(enum cpu_tiles how, const struct amx_product *p);

#endif
