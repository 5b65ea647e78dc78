/* merge.c: merges in a hash table by pair, a word as a linked list of tokens, its pairs in a heap. */
#include "trainer/data/tokenizer/merge.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/crc32c.h"
#include "tracker/base/err.h"

#define CACHED_WORDS 65536 /* a power of two */
#define CACHED_BYTES 24
#define CACHED_TOKENS 8

struct merge_entry {
	struct merge m; /* to < 0: unused slot */
	int32_t rank;
};

struct merges {
	struct merge_entry *slot;
	size_t n_slots, used;
};

struct merge_node {		      /* token of a word; positions are those of first bytes */
	int32_t token, before, after; /* positions; -1: none */
};

struct pair { /* of the node at `place` and its successor, when it was pushed */
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

static int grow_merges(struct merges *s, size_t n_slots)
{
	struct merges bigger = { .slot = malloc(n_slots * sizeof(struct merge_entry)),
				 .n_slots = n_slots,
				 .used = s->used };

	if (!bigger.slot)
		return ERR_NOMEM;
	for (size_t i = 0; i < n_slots; i++)
		bigger.slot[i].m.to = -1;
	for (size_t i = 0; i < s->n_slots; i++)
		if (s->slot[i].m.to >= 0)
			*find_merge(&bigger, s->slot[i].m.left, s->slot[i].m.right) = s->slot[i];
	free(s->slot);
	*s = bigger;
	return 0;
}

int merges_new(struct merges **ret, int32_t vocab)
{
	struct merges *s = calloc(1, sizeof(*s));
	size_t n = 1024;

	while (n < 2 * (size_t)vocab)
		n *= 2;
	if (!s || grow_merges(s, n)) {
		free(s);
		return ERR_NOMEM;
	}
	*ret = s;
	return 0;
}

int merges_add(struct merges *s, const struct merge *m)
{
	struct merge_entry *e;

	if (2 * s->used >= s->n_slots && grow_merges(s, 2 * s->n_slots))
		return ERR_NOMEM;
	e = find_merge(s, m->left, m->right);
	if (e->m.to < 0)
		*e = (struct merge_entry){ *m, (int32_t)s->used++ };
	return 0;
}

void merges_free(struct merges *s)
{
	if (!s)
		return;
	free(s->slot);
	free(s);
}

int merger_new(struct merger **ret, const struct merges *s)
{
	struct merger *m = calloc(1, sizeof(*m));

	if (!m || !(m->cached = calloc(CACHED_WORDS, sizeof(*m->cached)))) {
		free(m);
		return ERR_NOMEM;
	}
	m->merges = s;
	*ret = m;
	return 0;
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
static bool reserve_merger(struct merger *m, size_t n)
{
	size_t want = n < 256 ? 256 : n;
	void *nodes, *heap, *tokens;

	if (want <= m->capacity)
		return true;
	if (want > INT32_MAX / 4)
		return false;
	nodes = realloc(m->nodes, want * sizeof(*m->nodes));
	m->nodes = nodes ? nodes : m->nodes;
	heap = realloc(m->heap, 3 * want * sizeof(*m->heap));
	m->heap = heap ? heap : m->heap;
	tokens = realloc(m->tokens, want * sizeof(*m->tokens));
	m->tokens = tokens ? tokens : m->tokens;
	if (!nodes || !heap || !tokens)
		return false;
	m->capacity = want;
	return true;
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
	if (!reserve_merger(m, n))
		return NULL;
	*ret_n = merge_word(m, of_byte, bytes, n);
	if (k && *ret_n <= CACHED_TOKENS) {
		memcpy(k->bytes, bytes, n);
		memcpy(k->tokens, m->tokens, *ret_n * sizeof(*m->tokens));
		k->n_bytes = (uint8_t)n;
		k->n_tokens = (uint8_t)*ret_n;
	}
	return m->tokens;
}
