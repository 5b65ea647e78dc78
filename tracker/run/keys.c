/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c: an open-addressing hash table without removal. A larger copy replaces it; old tables are freed at the end,
 * because readers without a lock may still use them. */
#include "tracker/run/run_inside.h"

#include <stdlib.h>

#define FIRST_SLOTS 256u

struct key_table {
	struct key_table *older;
	size_t mask;
	_Atomic(const struct key *) slot[];
};

struct keys {
	_Atomic(struct key_table *) table;
	pthread_mutex_t lock; /* held while a key is added */
	struct arena *arena;
	size_t n;
};

static struct key_table *new_key_table(size_t slots)
{
	struct key_table *t = calloc(1, sizeof(*t) + slots * sizeof(t->slot[0]));

	if (t)
		t->mask = slots - 1;
	return t;
}

struct keys *keys_new(void)
{
	struct keys *k = calloc(1, sizeof(*k));
	struct key_table *t = new_key_table(FIRST_SLOTS);
	struct arena *a = arena_new();

	if (!k || !t || !a) {
		free(k);
		free(t);
		arena_free(a);
		return NULL;
	}
	atomic_init(&k->table, t);
	pthread_mutex_init(&k->lock, NULL);
	k->arena = a;
	return k;
}

void keys_free(struct keys *k)
{
	if (!k)
		return;
	for (struct key_table *t = atomic_load(&k->table), *older; t; t = older) {
		older = t->older;
		free(t);
	}
	arena_free(k->arena);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

static uint64_t hash_key_text(const char *text, size_t len)
{
	uint64_t h = len * 0x9e3779b97f4a7c15u, word;

	for (; len >= 8; text += 8, len -= 8) {
		memcpy(&word, text, 8);
		h = (h ^ word) * 0xff51afd7ed558ccdu;
		h ^= h >> 32;
	}
	word = 0;
	memcpy(&word, text, len);
	h = (h ^ word) * 0xc4ceb9fe1a85ec53u;
	return h ^ h >> 29;
}

static const struct key *find_in_table(struct key_table *t, uint64_t hash, const char *text, size_t len)
{
	for (size_t i = hash & t->mask;; i = (i + 1) & t->mask) {
		const struct key *key = atomic_load_explicit(&t->slot[i], memory_order_acquire);

		if (!key)
			return NULL;
		if (key->hash == hash && key->text.len == len && !memcmp(key->text.at, text, len))
			return key;
	}
}

static void insert_into_table(struct key_table *t, const struct key *key)
{
	size_t i = key->hash & t->mask;

	while (atomic_load_explicit(&t->slot[i], memory_order_relaxed))
		i = (i + 1) & t->mask;
	atomic_store_explicit(&t->slot[i], key, memory_order_release);
}

static int grow_table(struct keys *k)
{
	struct key_table *old = atomic_load(&k->table), *t;

	if (k->n * 2 <= old->mask)
		return 0;
	t = new_key_table((old->mask + 1) * 2);
	if (!t)
		return ERR_NOMEM;
	for (size_t i = 0; i <= old->mask; i++) {
		const struct key *key = atomic_load(&old->slot[i]);

		if (key)
			insert_into_table(t, key);
	}
	t->older = old;
	atomic_store_explicit(&k->table, t, memory_order_release);
	return 0;
}

static int add_new_key(struct keys *k, const char *text, size_t len, const struct key **ret)
{
	uint64_t hash = hash_key_text(text, len);
	struct key *key;
	char *copy;

	*ret = find_in_table(atomic_load(&k->table), hash, text, len);
	if (*ret)
		return 0; /* another thread has added it */
	if (k->n >= LIMIT_keys_per_run)
		return ERR_LIMIT;
	key = arena_alloc(k->arena, sizeof(*key));
	copy = arena_alloc(k->arena, len + 1);
	if (!key || !copy || grow_table(k))
		return ERR_NOMEM;
	memcpy(copy, text, len);
	*key = (struct key){ hash, { copy, len } };
	insert_into_table(atomic_load(&k->table), key);
	k->n++;
	*ret = key;
	return 0;
}

int keys_get(struct keys *k, const char *text, const struct key **ret, const char **ret_why)
{
	size_t len;
	const char *why;
	int rc;

	if (!text)
		text = "";
	len = strnlen(text, LIMIT_key_bytes + 1);
	*ret = find_in_table(atomic_load_explicit(&k->table, memory_order_acquire), hash_key_text(text, len), text,
			     len);
	if (*ret)
		return 0;
	why = key_check(text, len);
	if (why) {
		*ret_why = why;
		return ERR_USAGE;
	}
	pthread_mutex_lock(&k->lock);
	rc = add_new_key(k, text, len, ret);
	pthread_mutex_unlock(&k->lock);
	return rc;
}
