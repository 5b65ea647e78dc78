/* SPDX-License-Identifier: Apache-2.0 */
/* plan_cache.h: a cache of library plans that took long to find, shared by equal layers and, on disk, by later runs:
 * bytes by key, one file each, in a folder per device and library versions (dptrain/cuda-plans-1/<digest> of
 * cache_home). Files are created atomically, so ranks may share the folder. The cache never fails a run: what cannot be
 * stored or is damaged is computed again. */
#ifndef DPT_BACKENDS_CUDA_PLAN_CACHE_H
#define DPT_BACKENDS_CUDA_PLAN_CACHE_H

#include "tracker/base/err.h"

struct plan_cache;

/* Opens the cache and reads its folder. owner: one line that identifies device and versions; NULL: nothing is stored on
 * disk. Returns NULL when out of memory. err: one line about foreign or damaged files; else "". */
struct plan_cache *plan_cache_open(const char *owner, struct err *err);
void plan_cache_close(struct plan_cache *k); /* k may be NULL, here and below */

/* Returns the bytes of a key, owned by k; NULL: none. key: one line. */
const void *plan_cache_find(const struct plan_cache *k, const char *key, size_t *ret_bytes);
void plan_cache_put(struct plan_cache *k, const char *key, const void *bytes, size_t n);

#endif
