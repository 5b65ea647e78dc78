/* SPDX-License-Identifier: Apache-2.0 */
/* gzip.c: the input as a compressed body: decompressed at once and in pieces it gives the same result, within the
 * limit; compressed data decompresses to the original. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tracker/base/buf.h"
#include "web/server/gzip.h"

enum { LIMIT = 1 << 20 };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static int inflate_all(struct buf *out, const uint8_t *bytes, size_t n, size_t piece, int *ret_complete)
{
	struct gunzip *u = gunzip_new();
	size_t at, len;
	int rc = 0;

	buf_init(out, LIMIT);
	for (at = 0; u && at < n && !rc; at += len) {
		len = n - at < piece ? n - at : piece;
		rc = gunzip_feed(u, bytes + at, len, out);
	}
	FUZZ_HOLDS(out->len <= LIMIT);
	*ret_complete = u && gunzip_complete(u);
	gunzip_free(u);
	return rc;
}

static void round_trip(const uint8_t *bytes, size_t n)
{
	struct gzip *z = gzip_new(1);
	struct buf packed, back;
	int complete;

	buf_init(&packed, LIMIT);
	FUZZ_HOLDS(z && gzip_feed(z, bytes, n / 2, false, &packed) &&
		   gzip_feed(z, bytes + n / 2, n - n / 2, true, &packed));
	gzip_free(z);
	FUZZ_HOLDS(!inflate_all(&back, (const uint8_t *)packed.data, packed.len, 7, &complete) && complete);
	FUZZ_HOLDS(back.len == n && (!n || !memcmp(back.data, bytes, n)));
	buf_done(&packed);
	buf_done(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct buf whole, pieces;
	int a, b, whole_rc = inflate_all(&whole, bytes, n, n ? n : 1, &a),
		pieces_rc = inflate_all(&pieces, bytes, n, 3, &b);

	FUZZ_HOLDS(whole_rc == pieces_rc && (whole_rc || (a == b && whole.len == pieces.len)));
	buf_done(&whole);
	buf_done(&pieces);
	if (n < LIMIT / 2)
		round_trip(bytes, n);
	return 0;
}
