/* SPDX-License-Identifier: Apache-2.0 */
/* bpe.c: splits a text into words by GPT-2's pattern, and merges the bytes of a word: merges in a hash table by pair,
 * the word as a linked list of tokens, its pairs in a heap. */
#include "trainer/data/tokenizer/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/base/crc32c.h"
#include "tracker/mem/mem.h"

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

#define CACHED_WORDS 65536 /* a power of two */
#define CACHED_BYTES 24
#define CACHED_TOKENS 8

struct merge_entry {
	struct merge m; /* to is negative in an unused slot */
	int32_t rank;
};

struct merges {
	struct merge_entry *slot;
	size_t n_slots, used;
};

struct merge_node {		      /* token of a word; positions are those of first bytes */
	int32_t token, before, after; /* positions; -1: none */
};

struct pair { /* the node at `place` and its successor as they were when pushed */
	int32_t rank, place, left, right, to;
};

struct cached_word {
	char bytes[CACHED_BYTES];
	int32_t tokens[CACHED_TOKENS];
	uint8_t n_bytes, n_tokens; /* n_bytes 0: empty */
};

struct merger {
	const struct merges *merges;
	struct merge_node *nodes;
	struct pair *heap;
	int32_t *tokens;
	size_t capacity, n_heap;
	struct cached_word *cached;
};

static struct merge_entry *find_merge(const struct merges *s, int32_t left, int32_t right)
{
	uint64_t key = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * UINT64_C(0x9E3779B97F4A7C15);
	size_t i = (size_t)(key >> 20) & (s->n_slots - 1);

	while (s->slot[i].m.to >= 0 && (s->slot[i].m.left != left || s->slot[i].m.right != right))
		i = (i + 1) & (s->n_slots - 1);
	return &s->slot[i];
}

static void grow_merges(struct merges *s, size_t n_slots)
{
	struct merges bigger = { .slot = mem_alloc(n_slots * sizeof(struct merge_entry)),
				 .n_slots = n_slots,
				 .used = s->used };

	for (size_t i = 0; i < n_slots; i++)
		bigger.slot[i].m.to = -1;
	for (size_t i = 0; i < s->n_slots; i++)
		if (s->slot[i].m.to >= 0)
			*find_merge(&bigger, s->slot[i].m.left, s->slot[i].m.right) = s->slot[i];
	free(s->slot);
	*s = bigger;
}

struct merges *merges_new(int32_t vocab)
{
	struct merges *s = mem_zalloc(sizeof(*s));
	size_t n = 1024;

	while (n < 2 * (size_t)vocab)
		n *= 2;
	grow_merges(s, n);
	return s;
}

void merges_add(struct merges *s, const struct merge *m)
{
	struct merge_entry *e;

	if (2 * s->used >= s->n_slots)
		grow_merges(s, 2 * s->n_slots);
	e = find_merge(s, m->left, m->right);
	if (e->m.to < 0)
		*e = (struct merge_entry){ *m, (int32_t)s->used++ };
}

void merges_free(struct merges *s)
{
	if (!s)
		return;
	free(s->slot);
	free(s);
}

struct merger *merger_new(const struct merges *s)
{
	struct merger *m = mem_zalloc(sizeof(*m));

	m->cached = mem_array(CACHED_WORDS, sizeof(*m->cached));
	m->merges = s;
	return m;
}

void merger_free(struct merger *m)
{
	free(m->nodes);
	free(m->heap);
	free(m->tokens);
	free(m->cached);
	free(m);
}

/* Reserves memory for a word of n bytes: it has at most n - 1 pairs, and each of n - 1 merges pushes at most two
 * more. */
static void reserve_merger(struct merger *m, size_t n)
{
	size_t want = n < 256 ? 256 : n;
	size_t nodes = m->capacity, heap = 3 * m->capacity, tokens = m->capacity;

	if (want <= m->capacity)
		return;
	mem_reserve(&m->nodes, &nodes, want);
	mem_reserve(&m->heap, &heap, 3 * want);
	mem_reserve(&m->tokens, &tokens, want);
	m->capacity = want;
}

static bool is_earlier_pair(const struct pair *a, const struct pair *b)
{
	return a->rank != b->rank ? a->rank < b->rank : a->place < b->place;
}

static void push_pair(struct merger *m, int32_t place)
{
	const struct merge_node *n = &m->nodes[place];
	const struct merge_entry *e = n->after < 0 ? NULL : find_merge(m->merges, n->token, m->nodes[n->after].token);
	size_t i = m->n_heap;
	struct pair p;

	if (!e || e->m.to < 0)
		return;
	p = (struct pair){ e->rank, place, e->m.left, e->m.right, e->m.to };
	m->n_heap++;
	for (; i && is_earlier_pair(&p, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = p;
}

static struct pair pop_pair(struct merger *m)
{
	struct pair first = m->heap[0], last = m->heap[--m->n_heap];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < m->n_heap) {
		child += child + 1 < m->n_heap && is_earlier_pair(&m->heap[child + 1], &m->heap[child]);
		if (!is_earlier_pair(&m->heap[child], &last))
			break;
		m->heap[i] = m->heap[child];
		i = child;
	}
	m->heap[i] = last;
	return first;
}

/* Merges a pair into one token, unless its nodes changed since it was pushed. */
static void apply_merge(struct merger *m, const struct pair *p)
{
	struct merge_node *n = &m->nodes[p->place], *gone;

	if (n->token != p->left || n->after < 0 || m->nodes[n->after].token != p->right)
		return;
	gone = &m->nodes[n->after];
	n->token = p->to;
	n->after = gone->after;
	gone->token = -1;
	if (n->after >= 0)
		m->nodes[n->after].before = p->place;
	push_pair(m, p->place);
	if (n->before >= 0)
		push_pair(m, n->before);
}

static size_t merge_word(struct merger *m, const int32_t of_byte[256], const char *bytes, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		m->nodes[i] = (struct merge_node){ of_byte[(unsigned char)bytes[i]], (int32_t)i - 1,
						   i + 1 < n ? (int32_t)i + 1 : -1 };
	m->n_heap = 0;
	for (size_t i = 0; i < n; i++)
		push_pair(m, (int32_t)i);
	while (m->n_heap) {
		struct pair p = pop_pair(m);

		apply_merge(m, &p);
	}
	for (int32_t i = 0; i >= 0 && n; i = m->nodes[i].after)
		m->tokens[count++] = m->nodes[i].token;
	return count;
}

const int32_t *merger_word(struct merger *m, const int32_t of_byte[256], const char *bytes, size_t n, size_t *ret_n)
{
	struct cached_word *k = n <= CACHED_BYTES ? &m->cached[crc32c(0, bytes, n) & (CACHED_WORDS - 1)] : NULL;

	if (k && k->n_bytes == n && n && !memcmp(k->bytes, bytes, n)) {
		*ret_n = k->n_tokens;
		return k->tokens;
	}
	reserve_merger(m, n);
	*ret_n = merge_word(m, of_byte, bytes, n);
	if (k && *ret_n <= CACHED_TOKENS) {
		memcpy(k->bytes, bytes, n);
		memcpy(k->tokens, m->tokens, *ret_n * sizeof(*m->tokens));
		k->n_bytes = (uint8_t)n;
		k->n_tokens = (uint8_t)*ret_n;
	}
	return m->tokens;
}
