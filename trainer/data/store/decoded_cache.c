/* SPDX-License-Identifier: Apache-2.0 */
/* decoded_cache.c: a block of the cache for each entry. */
#include "trainer/data/store/decoded_cache.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "trainer/data/store/cache.h"

struct decoded_cache {
	struct cache *cache;
	_Atomic uint64_t bytes;
};

int decoded_cache_open(struct decoded_cache **ret, const struct decoded_cache_opts *o, struct err *err)
{
	struct decoded_cache *d = calloc(1, sizeof(*d));
	int rc = d ? 0 : err_nomem(err, NULL);

	if (!rc)
		rc = cache_open(&d->cache, &(struct cache_opts){ o->cache, o->cache_bytes }, err);
	if (!rc)
		rc = cache_fits(d->cache, o->keeps_bytes, o->memory_bytes, err);
	if (rc) {
		decoded_cache_close(d);
		return rc;
	}
	*ret = d;
	return 0;
}

void decoded_cache_close(struct decoded_cache *d)
{
	if (!d)
		return;
	cache_close(d->cache);
	free(d);
}

static struct cache_block make_derived_block(const struct decoded_cache_name *name)
{
	struct cache_block b;

	cache_name(&(struct cache_key){ .address = name->of,
					.version = name->how,
					.bytes = name->bytes,
					.begin = name->at },
		   &b);
	return b;
}

bool decoded_cache_read(struct decoded_cache *d, const struct decoded_cache_name *name, void *to, size_t n)
{
	const struct cache_block b = make_derived_block(name);

	if (!cache_has(d->cache, &b) || !cache_read(d->cache, &b, 0, to, n))
		return false;
	atomic_fetch_add_explicit(&d->bytes, n, memory_order_relaxed);
	return true;
}

void decoded_cache_keep(struct decoded_cache *d, const struct decoded_cache_name *name, const void *bytes, size_t n)
{
	const struct cache_block b = make_derived_block(name);

	cache_keep(d->cache, &b, bytes, n);
}

bool decoded_cache_holds(const struct decoded_cache *d, const struct decoded_cache_name *name)
{
	const struct cache_block b = make_derived_block(name);

	return cache_holds(d->cache, &b);
}

uint64_t decoded_cache_bytes(const struct decoded_cache *d)
{
	return atomic_load_explicit(&d->bytes, memory_order_relaxed);
}

bool decoded_cache_notice(struct decoded_cache *d, char *ret, size_t bytes)
{
	return cache_notice(d->cache, ret, bytes);
}
