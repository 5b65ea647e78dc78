/* words.c: splits a text into words by GPT-2's pattern; merges stay within words. */
#include <stdbool.h>
#include <string.h>

#include "trainer/data/tokenizer/bpe.h"

enum char_kind { SIGN, LETTER, NUMBER, SPACE };

static const struct {
	int32_t first, last;
	enum char_kind kind;
} ranges[] = {
#define RANGE(first, last, kind) { first, last, kind },
#include "trainer/data/tokenizer/unicode.def"
#undef RANGE
};

static enum char_kind classify_char(int32_t c)
{
	size_t low = 0, high = sizeof(ranges) / sizeof(ranges[0]);

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (c > ranges[middle].last)
			low = middle + 1;
		else if (c < ranges[middle].first)
			high = middle;
		else
			return ranges[middle].kind;
	}
	return SIGN;
}

/* Number of continuation bytes after a first byte, -1: invalid. *ret_bits: the code point's bits in the first byte. */
static int count_continuation_bytes(unsigned char b, int32_t *ret_bits)
{
	int n = b < 0x80 ? 0 : b >= 0xC2 && b < 0xE0 ? 1 : b >= 0xE0 && b < 0xF0 ? 2 : b >= 0xF0 && b < 0xF5 ? 3 : -1;

	*ret_bits = n <= 0 ? b : b & (0x3F >> n);
	return n;
}

size_t words_char(const char *text, size_t n, int32_t *ret_code)
{
	static const int32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	int32_t code;
	int more = count_continuation_bytes((unsigned char)text[0], &code);

	*ret_code = -1;
	if (more < 0 || (size_t)more >= n)
		return 1;
	for (int i = 1; i <= more; i++) {
		if (((unsigned char)text[i] & 0xC0) != 0x80)
			return 1;
		code = code << 6 | (text[i] & 0x3F);
	}
	if (code < least[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
		return 1;
	*ret_code = code;
	return (size_t)more + 1;
}

static enum char_kind classify_char_at(const char *text, size_t n, size_t *ret_bytes)
{
	int32_t code;

	*ret_bytes = words_char(text, n, &code);
	return code < 0 ? SIGN : classify_char(code);
}

static size_t match_contraction(const char *text, size_t n)
{
	static const char *const tails[] = { "s", "t", "re", "ve", "m", "ll", "d" };

	for (size_t i = 0; text[0] == '\'' && i < sizeof(tails) / sizeof(tails[0]); i++) {
		size_t k = strlen(tails[i]);

		if (n > k && !memcmp(text + 1, tails[i], k))
			return k + 1;
	}
	return 0;
}

/* Measures the characters of one kind from `at` on, in bytes. *ret_last: bytes of the last one. */
static size_t measure_char_run(const char *text, size_t n, size_t at, enum char_kind kind, size_t *ret_last)
{
	size_t begin = at, bytes;

	while (at < n && classify_char_at(text + at, n - at, &bytes) == kind) {
		at += bytes;
		*ret_last = bytes;
	}
	return at - begin;
}

size_t words_next(const char *text, size_t n)
{
	size_t lead = text[0] == ' ' && n > 1, bytes, last = 0, all = match_contraction(text, n);
	enum char_kind kind;

	if (all)
		return all;
	kind = classify_char_at(text + lead, n - lead, &bytes);
	if (kind != SPACE)
		return lead + measure_char_run(text, n, lead, kind, &last);
	all = measure_char_run(text, n, 0, SPACE, &last);
	/* The last of several spaces belongs to the next word. */
	return all < n && all > last ? all - last : all;
}

static bool ends_in_space(const char *text, size_t n)
{
	size_t begin = n - 1, bytes;

	while (begin > 0 && n - begin < 4 && ((unsigned char)text[begin] & 0xC0) == 0x80)
		begin--;
	return classify_char_at(text + begin, n - begin, &bytes) == SPACE && bytes == n - begin;
}

/* A word never contains a space after another kind of character, so the text in front of such a space is complete. */
size_t words_cut(const char *text, size_t n)
{
	for (size_t at = n; at-- > 1;)
		if ((text[at] == ' ' || text[at] == '\n') && !ends_in_space(text, at))
			return at;
	return 0;
}
