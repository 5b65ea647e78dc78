/* SPDX-License-Identifier: Apache-2.0 */
/* map.c: open addressing over an index of entries, which are in an arena in order of insertion. Each map hashes with a
 * secret of its own, because clients choose many of the keys. */
#include "tracker/base/hash.h"
#include "tracker/base/round.h"
#include "tracker/mem/mem.h"
#include "web/store/base/map.h"

#include <stdlib.h>
#include <sys/random.h>

struct map_entry {
	uint64_t hash;
	size_t len;
	/* the value follows, then the key */
};

struct map {
	struct arena *arena;
	struct map_entry **entries; /* in order of insertion */
	uint32_t *slots;	    /* index into entries + 1; 0: free */
	size_t count, cap, slot_count, value_bytes;
	uint64_t secret[2];
};

#define ENTRY_VALUE(e) ((char *)(e) + sizeof(struct map_entry))

struct map *map_new(size_t value_bytes)
{
	struct map *m = mem_zalloc(sizeof(*m));

	m->value_bytes = round_up_bytes(value_bytes, 16);
	m->arena = arena_new();
	if (getrandom(m->secret, sizeof(m->secret), 0) != sizeof(m->secret))
		abort(); /* never: the kernel's generator is ready before programs start */
	return m;
}

void map_free(struct map *m)
{
	if (!m)
		return;
	arena_free(m->arena);
	free(m->entries);
	free(m->slots);
	free(m);
}

void map_clear(struct map *m)
{
	arena_free(m->arena);
	m->arena = arena_new();
	free(m->entries);
	free(m->slots);
	m->entries = NULL;
	m->slots = NULL;
	m->count = m->cap = m->slot_count = 0;
}

size_t map_count(const struct map *m)
{
	return m->count;
}

static const char *map_entry_key(const struct map *m, const struct map_entry *e)
{
	return (const char *)e + sizeof(*e) + m->value_bytes;
}

static size_t find_map_slot(const struct map *m, uint64_t h, const void *key, size_t len)
{
	size_t at = h & (m->slot_count - 1);

	while (m->slots[at]) {
		const struct map_entry *e = m->entries[m->slots[at] - 1];

		if (e->hash == h && e->len == len && !memcmp(map_entry_key(m, e), key, len))
			break;
		at = (at + 1) & (m->slot_count - 1);
	}
	return at;
}

void *map_get(const struct map *m, const void *key, size_t len)
{
	size_t at;

	if (!m->count)
		return NULL;
	at = find_map_slot(m, hash_sip(m->secret, key, len), key, len);
	return m->slots[at] ? ENTRY_VALUE(m->entries[m->slots[at] - 1]) : NULL;
}

/* Doubles the index and inserts all entries again. */
static void grow_map(struct map *m)
{
	size_t cap = m->cap ? m->cap * 2 : 32, slot_count = cap * 2, i, at;
	uint32_t *slots = mem_array(slot_count, sizeof(*slots));

	m->entries = mem_realloc(m->entries, cap * sizeof(*m->entries));
	free(m->slots);
	m->slots = slots;
	m->cap = cap;
	m->slot_count = slot_count;
	for (i = 0; i < m->count; i++) {
		for (at = m->entries[i]->hash & (slot_count - 1); slots[at]; at = (at + 1) & (slot_count - 1))
			;
		slots[at] = (uint32_t)i + 1;
	}
}

void *map_put(struct map *m, const void *key, size_t len)
{
	uint64_t h = hash_sip(m->secret, key, len);
	struct map_entry *e;
	size_t at;

	if (m->count == m->cap)
		grow_map(m);
	at = find_map_slot(m, h, key, len);
	if (m->slots[at])
		return ENTRY_VALUE(m->entries[m->slots[at] - 1]);
	e = arena_alloc(m->arena, sizeof(*e) + m->value_bytes + len + 1);
	e->hash = h;
	e->len = len;
	memcpy((char *)e + sizeof(*e) + m->value_bytes, key, len);
	m->entries[m->count++] = e;
	m->slots[at] = (uint32_t)m->count;
	return ENTRY_VALUE(e);
}

const char *map_text(struct map *m, const char *text)
{
	return (const char *)map_put(m, text, strlen(text)) + m->value_bytes;
}

void *map_at(const struct map *m, size_t i)
{
	return ENTRY_VALUE(m->entries[i]);
}

const void *map_key_at(const struct map *m, size_t i, size_t *ret_len)
{
	*ret_len = m->entries[i]->len;
	return map_entry_key(m, m->entries[i]);
}

size_t map_longest_probe(const struct map *m)
{
	size_t longest = 0, run = 0, i;

	for (i = 0; i < m->slot_count; i++) {
		run = m->slots[i] ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}
