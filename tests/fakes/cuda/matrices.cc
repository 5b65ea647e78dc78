/* matrices.cc: a warp's operations on tensor cores, as PTX describes them (ldmatrix.m8n8.x4, mma.m16n8k16): lane 4 g +
 * t has the positions that device.h defines. Sums are in f32, in the order of k; real ones have no defined order. */
#include "tests/fakes/cuda/emulate.h"

#include <stdio.h>
#include <stdlib.h>

#define SIDE 8 /* side of a matrix */

static uint16_t element(const uint64_t *rows, int matrix, int row, int column)
{
	uint16_t bits;

	memcpy(&bits, reinterpret_cast<const uint16_t *>(rows[SIDE * matrix + row]) + column, sizeof(bits));
	return bits;
}

void emulated_matrices(uint32_t (&to)[4], const void *row, bool turned)
{
	const uint64_t *rows = emulated_met(reinterpret_cast<uint64_t>(row));
	const int g = (int)threadIdx.x % 32 / 4, two = 2 * ((int)threadIdx.x % 4);

	if (reinterpret_cast<uint64_t>(row) % 16) {
		fprintf(stderr, "fake device: a row of a matrix is not aligned to 16 bytes\n");
		abort();
	}
	for (int i = 0; i < 4; i++) {
		const uint16_t first = turned ? element(rows, i, two, g) : element(rows, i, g, two);
		const uint16_t second = turned ? element(rows, i, two + 1, g) : element(rows, i, g, two + 1);

		to[i] = (uint32_t)first | (uint32_t)second << 16;
	}
	emulated_parted();
}

struct operands {
	uint32_t a[4], b[2];
};

static uint16_t half_of(uint32_t pair, int which)
{
	return (uint16_t)(which ? pair >> 16 : pair);
}

/* A(row, k) and B(k, column), from the lanes that have them. */
static uint16_t of_a(const uint64_t *lanes, int row, int k)
{
	const operands *o = reinterpret_cast<const operands *>(lanes[row % SIDE * 4 + k % SIDE / 2]);

	return half_of(o->a[row / SIDE + 2 * (k / SIDE)], k % 2);
}

static uint16_t of_b(const uint64_t *lanes, int k, int column)
{
	const operands *o = reinterpret_cast<const operands *>(lanes[column * 4 + k % SIDE / 2]);

	return half_of(o->b[k / SIDE], k % 2);
}

void emulated_multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, float (*widened)(uint16_t))
{
	const operands mine = { { a[0], a[1], a[2], a[3] }, { b0, b1 } };
	const int g = (int)threadIdx.x % 32 / 4, two = 2 * ((int)threadIdx.x % 4);
	const uint64_t *lanes = emulated_met(reinterpret_cast<uint64_t>(&mine));

	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 2 * SIDE; k++)
			c[i] += widened(of_a(lanes, g + i / 2 * SIDE, k)) * widened(of_b(lanes, k, two + i % 2));
	emulated_parted();
}
