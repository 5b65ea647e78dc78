/* SPDX-License-Identifier: Apache-2.0 */
/* bpe.c: merges the tokens of a word: merges in a hash table by pair, the word as a linked list of tokens, its pairs in
 * a heap. */
#include "trainer/data/tokenizer/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/base/little.h"
#include "tracker/mem/mem.h"

#define CACHED_SETS 32768 /* a power of two; each holds two words, the newer one first */
#define CACHED_BYTES 31
#define CACHED_TOKENS 7

struct merge_entry {
	struct merge m; /* to is negative in an unused slot */
	int32_t rank;
};

struct merges {
	struct merge_entry *slot;
	size_t n_slots, used;
	int32_t next_rank;
};

struct merge_node {		      /* a token of a word; before and after are its first tokens' positions */
	int32_t token, before, after; /* -1: none */
};

struct pair { /* the node at `place` and its successor as they were when pushed */
	int32_t rank, place, left, right, to;
};

struct cached_word {	 /* a cache line */
	uint64_t key[4]; /* the bytes, padded with zeros; in the last byte their number, 0: empty */
	int32_t n_tokens;
	int32_t tokens[CACHED_TOKENS];
};

struct merger {
	const struct merges *merges;
	struct merger_start start;
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
				 .used = s->used,
				 .next_rank = s->next_rank };

	for (size_t i = 0; i < n_slots; i++)
		bigger.slot[i].m.to = -1;
	for (size_t i = 0; i < s->n_slots; i++)
		if (s->slot[i].m.to >= 0)
			*find_merge(&bigger, s->slot[i].m.left, s->slot[i].m.right) = s->slot[i];
	free(s->slot);
	*s = bigger;
}

struct merges *merges_new(void)
{
	struct merges *s = mem_zalloc(sizeof(*s));

	grow_merges(s, 1024);
	return s;
}

void merges_add(struct merges *s, const struct merge *m)
{
	struct merge_entry *e;

	if (2 * s->used >= s->n_slots)
		grow_merges(s, 2 * s->n_slots);
	e = find_merge(s, m->left, m->right);
	s->used += e->m.to < 0;
	*e = (struct merge_entry){ *m, s->next_rank++ };
}

void merges_free(struct merges *s)
{
	if (!s)
		return;
	free(s->slot);
	free(s);
}

struct merger *merger_new(const struct merges *s, const struct merger_start *start)
{
	struct merger *m = mem_zalloc(sizeof(*m));

	m->start = *start;
	m->cached = aligned_alloc(sizeof(*m->cached), 2 * CACHED_SETS * sizeof(*m->cached));
	if (!m->cached)
		mem_exhausted(2 * CACHED_SETS * sizeof(*m->cached));
	memset(m->cached, 0, 2 * CACHED_SETS * sizeof(*m->cached));
	m->merges = s;
	return m;
}

void merger_free(struct merger *m)
{
	if (!m)
		return;
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

/* Merges the n tokens at m->tokens in place; returns how many are left. */
static size_t merge_tokens(struct merger *m, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		m->nodes[i] = (struct merge_node){ m->tokens[i], (int32_t)i - 1, i + 1 < n ? (int32_t)i + 1 : -1 };
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

/* Returns n < 8 bytes as a number. Loads that overlap, instead of a copy, spare a wait for the copied bytes. */
static uint64_t load_few_bytes(const char *bytes, size_t n)
{
	const unsigned char *u = (const unsigned char *)bytes;

	if (n < 4)
		return n ? u[0] | (uint64_t)u[n / 2] << n / 2 * 8 | (uint64_t)u[n - 1] << (n - 1) * 8 : 0;
	return little_get_u32(u) | (uint64_t)little_get_u32(u + n - 4) << (n - 4) * 8;
}

/* Fills the key of a word of at most CACHED_BYTES bytes and returns its set. */
static struct cached_word *find_cached_set(struct merger *m, const char *bytes, size_t n, uint64_t key[4])
{
	uint64_t hash = 0;
	size_t i = 0;

	for (; i < n / 8; i++)
		key[i] = little_get_u64((const unsigned char *)bytes + 8 * i);
	key[i] = load_few_bytes(bytes + 8 * i, n % 8);
	key[3] |= (uint64_t)n << 56;
	for (i = 0; i < 4; i++)
		hash = (hash ^ key[i]) * UINT64_C(0x9E3779B97F4A7C15), hash ^= hash >> 29;
	return &m->cached[2 * (hash & (CACHED_SETS - 1))];
}

static bool is_cached_as(const struct cached_word *w, const uint64_t key[4])
{
	return !((w->key[0] ^ key[0]) | (w->key[1] ^ key[1]) | (w->key[2] ^ key[2]) | (w->key[3] ^ key[3]));
}

const int32_t *merger_word(struct merger *m, const char *bytes, size_t n, size_t *ret_n)
{
	struct cached_word *set = NULL;
	uint64_t key[4] = { 0 };

	if (n && n <= CACHED_BYTES)
		set = find_cached_set(m, bytes, n, key);
	for (int i = 0; set && i < 2; i++)
		if (is_cached_as(&set[i], key)) {
			*ret_n = (size_t)set[i].n_tokens;
			return set[i].tokens;
		}
	reserve_merger(m, n);
	*ret_n = merge_tokens(m, m->start.fill(m->start.user, bytes, n, m->tokens));
	if (set && *ret_n <= CACHED_TOKENS) {
		set[1] = set[0];
		set[0].n_tokens = (int32_t)*ret_n;
		memcpy(set[0].key, key, sizeof(key));
		memcpy(set[0].tokens, m->tokens, *ret_n * sizeof(*m->tokens));
	}
	return m->tokens;
}
