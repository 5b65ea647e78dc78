/* map.h: a hash table from short byte keys (copied) to values of one fixed size (stored inside). One thread. */
#ifndef DPT_STORE_MAP_H
#define DPT_STORE_MAP_H

#include <stddef.h>

struct map;

struct map *map_new(size_t value_bytes); /* NULL when out of memory */
void map_free(struct map *m);            /* NULL is fine */
void map_clear(struct map *m);
size_t map_count(const struct map *m);

/* The value, or NULL. Addresses are valid until map_clear or map_free. */
void *map_get(const struct map *m, const void *key, size_t len);

/* The value of key, zeroed if new; NULL when out of memory. */
void *map_put(struct map *m, const void *key, size_t len);

/* A copy of the text, valid as long as values are; equal texts share one copy. */
const char *map_text(struct map *m, const char *text);

/* Values in order of insertion: 0 .. count-1. */
void *map_at(const struct map *m, size_t i);
const void *map_key_at(const struct map *m, size_t i, size_t *ret_len);

#endif
