/* keys.c: an open-addressing table that is only ever added to. A grown copy replaces it; the old ones stay until the
 * end, because a reader may still be inside. */
#include "tracker/run/keys.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"
#include "tracker/event/key.h"
#include "tracker/event/limits.h"

#define FIRST_SLOTS 256u

struct table {
	struct table *older;
	size_t mask;
	_Atomic(const struct key *) slot[];
};

struct keys {
	_Atomic(struct table *) table;
	pthread_mutex_t lock; /* adding */
	struct arena *arena;
	size_t n;
};

static struct table *table_new(size_t slots)
{
	struct table *t = calloc(1, sizeof(*t) + slots * sizeof(t->slot[0]));

	if (t)
		t->mask = slots - 1;
	return t;
}

struct keys *keys_new(void)
{
	struct keys *k = calloc(1, sizeof(*k));
	struct table *t = table_new(FIRST_SLOTS);
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
	for (struct table *t = atomic_load(&k->table), *older; t; t = older) {
		older = t->older;
		free(t);
	}
	arena_free(k->arena);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

static uint64_t hash_text(const char *text, size_t len)
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

static const struct key *table_find(struct table *t, uint64_t hash, const char *text, size_t len)
{
	for (size_t i = hash & t->mask;; i = (i + 1) & t->mask) {
		const struct key *key = atomic_load_explicit(&t->slot[i], memory_order_acquire);

		if (!key)
			return NULL;
		if (key->hash == hash && key->text.len == len && !memcmp(key->text.at, text, len))
			return key;
	}
}

static void table_put(struct table *t, const struct key *key)
{
	size_t i = key->hash & t->mask;

	while (atomic_load_explicit(&t->slot[i], memory_order_relaxed))
		i = (i + 1) & t->mask;
	atomic_store_explicit(&t->slot[i], key, memory_order_release);
}

static int table_grow(struct keys *k)
{
	struct table *old = atomic_load(&k->table), *t;

	if (k->n * 2 <= old->mask)
		return 0;
	t = table_new((old->mask + 1) * 2);
	if (!t)
		return ERR_NOMEM;
	for (size_t i = 0; i <= old->mask; i++) {
		const struct key *key = atomic_load(&old->slot[i]);

		if (key)
			table_put(t, key);
	}
	t->older = old;
	atomic_store_explicit(&k->table, t, memory_order_release);
	return 0;
}

static int key_add(struct keys *k, const char *text, size_t len, const struct key **ret)
{
	uint64_t hash = hash_text(text, len);
	struct key *key;
	char *copy;

	*ret = table_find(atomic_load(&k->table), hash, text, len);
	if (*ret)
		return 0; /* another thread was faster */
	if (k->n >= LIMIT_keys_per_run)
		return ERR_LIMIT;
	key = arena_alloc(k->arena, sizeof(*key));
	copy = arena_alloc(k->arena, len + 1);
	if (!key || !copy || table_grow(k))
		return ERR_NOMEM;
	memcpy(copy, text, len);
	*key = (struct key){ hash, { copy, len } };
	table_put(atomic_load(&k->table), key);
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
	*ret = table_find(atomic_load_explicit(&k->table, memory_order_acquire), hash_text(text, len), text, len);
	if (*ret)
		return 0;
	why = key_check(text, len);
	if (why) {
		*ret_why = why;
		return ERR_USAGE;
	}
	pthread_mutex_lock(&k->lock);
	rc = key_add(k, text, len, ret);
	pthread_mutex_unlock(&k->lock);
	return rc;
}
