/* SPDX-License-Identifier: Apache-2.0 */
/* range.c: the input as a Range header for a file whose size is in the first eight bytes: the accepted range is inside
 * the file and equals the one of a simple parser of the header. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "web/api/blob.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* Parses digits as a number, however many; anything beyond 2^100 is clamped to that. NULL: there are no digits. */
static const char *number(const char *s, unsigned __int128 *ret)
{
	const unsigned __int128 huge = (unsigned __int128)1 << 100;

	if (!isdigit((unsigned char)*s))
		return NULL;
	for (*ret = 0; isdigit((unsigned char)*s); s++)
		*ret = *ret > huge / 16 ? huge : *ret * 10 + (unsigned)(*s - '0');
	return s;
}

/* The same, following RFC 9110 §14 literally; false: not a single valid range. */
static bool plain(const char *s, uint64_t bytes, unsigned __int128 *from, unsigned __int128 *end)
{
	unsigned __int128 n;

	if (strncmp(s, "bytes=", 6))
		return false;
	s += 6;
	if (*s == '-') {
		s = number(s + 1, &n);
		*from = n < bytes ? bytes - n : 0;
		*end = bytes;
		return s && !*s;
	}
	s = number(s, from);
	if (!s || *s++ != '-')
		return false;
	*end = bytes;
	if (!*s)
		return true;
	s = number(s, &n);
	if (!s || *s || n < *from)
		return false;
	*end = n + 1 < bytes ? n + 1 : bytes;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	unsigned __int128 want_from = 0, want_end = 0;
	uint64_t size, from = 0, count = 0;
	enum blob_range got;
	char *text;

	if (n < sizeof(size))
		return 0;
	memcpy(&size, bytes, sizeof(size));
	size >>= 1; /* the size of a file */
	text = strndup((const char *)bytes + sizeof(size), n - sizeof(size));
	if (!text)
		return 0;
	got = blob_range(text, size, &from, &count);
	if (got == BLOB_PART) {
		FUZZ_HOLDS(count && from < size && count <= size - from);
		FUZZ_HOLDS(plain(text, size, &want_from, &want_end));
		FUZZ_HOLDS(from == want_from && from + count == want_end);
	} else if (got == BLOB_BAD) {
		FUZZ_HOLDS(plain(text, size, &want_from, &want_end) && want_from >= want_end);
	} else {
		FUZZ_HOLDS(!plain(text, size, &want_from, &want_end) || want_from > UINT64_MAX || want_end == size);
	}
	free(text);
	return 0;
}
