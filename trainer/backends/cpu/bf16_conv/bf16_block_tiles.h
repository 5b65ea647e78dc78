/* SPDX-License-Identifier: Apache-2.0 */
/* bf16_block_tiles.h: a block in tile registers: 0 to 3 hold the sums, 4 and 5 the rows, 6 and 7 the columns. It is
 * included once with the instructions and once with their emulation: TILE_LOAD(tile, from, row bytes), TILE_ZERO,
 * TILE_STORE, TILE_DOT(sums, rows, columns). TILE_FILE(x) makes names; TILE_DECLARE declares the registers. */

VEC_INLINE void TILE_FILE(block_tiles)(const struct bf16_block *o, const int rows, const int columns)
{
	const int64_t line = BLOCK_LINE;
	float *sums = o->sums;
	TILE_DECLARE

	if (o->add) {
		TILE_LOAD(0, sums, line);
		if (columns > 1)
			TILE_LOAD(1, sums + BLOCK_TILE, line);
		if (rows > 1)
			TILE_LOAD(2, sums + 2 * BLOCK_TILE, line);
		if (rows > 1 && columns > 1)
			TILE_LOAD(3, sums + 3 * BLOCK_TILE, line);
	} else {
		TILE_ZERO(0);
		TILE_ZERO(1);
		TILE_ZERO(2);
		TILE_ZERO(3);
	}
	for (int64_t k = 0; k < o->steps; k++) {
		TILE_LOAD(4, o->a[0] + o->a_at[k], o->a_row);
		TILE_LOAD(6, o->b[0] + o->b_at[k], o->b_row);
		TILE_DOT(0, 4, 6);
		if (columns > 1) {
			TILE_LOAD(7, o->b[1] + o->b_at[k], o->b_row);
			TILE_DOT(1, 4, 7);
		}
		if (rows > 1) {
			TILE_LOAD(5, o->a[1] + o->a_at[k], o->a_row);
			TILE_DOT(2, 5, 6);
		}
		if (rows > 1 && columns > 1)
			TILE_DOT(3, 5, 7);
	}
	TILE_STORE(0, sums, line);
	if (columns > 1)
		TILE_STORE(1, sums + BLOCK_TILE, line);
	if (rows > 1)
		TILE_STORE(2, sums + 2 * BLOCK_TILE, line);
	if (rows > 1 && columns > 1)
		TILE_STORE(3, sums + 3 * BLOCK_TILE, line);
}

static void TILE_FILE(block_in_tiles)(const struct bf16_block *o)
{
	if (o->a[1])
		o->b[1] ? TILE_FILE(block_tiles)(o, 2, 2) : TILE_FILE(block_tiles)(o, 2, 1);
	else
		o->b[1] ? TILE_FILE(block_tiles)(o, 1, 2) : TILE_FILE(block_tiles)(o, 1, 1);
}
