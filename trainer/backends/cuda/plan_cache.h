/* plan_cache.h: what took long to find out (plans of the libraries), kept for layers alike and, on disk, for later runs:
 * bytes by key, a file each, in a folder of this device and these libraries (dptrain/cuda-plans-1/<digest> of
 * cache_home.h). A file appears whole or not at all, so ranks may share the folder. Nothing here fails a run: what
 * cannot be kept, or was damaged, is found out again. */
#ifndef DPT_BACKENDS_CUDA_PLAN_CACHE_H
#define DPT_BACKENDS_CUDA_PLAN_CACHE_H

#include <stddef.h>

#include "tracker/base/err.h"

struct plan_cache;

/* Reads what the folder holds. owner: whose it is, in a line: device and versions; NULL: nothing is kept on disk.
 * NULL: no memory. err: a line about files of the folder that are none of ours; "" else. */
struct plan_cache *plan_cache_open(const char *owner, struct err *err);
void plan_cache_close(struct plan_cache *k); /* NULL is fine, here and below */

/* The kept's own. key: a line. NULL: nothing is known of it. */
const void *plan_cache_find(const struct plan_cache *k, const char *key, size_t *ret_bytes);
void plan_cache_put(struct plan_cache *k, const char *key, const void *bytes, size_t n);

#endif
