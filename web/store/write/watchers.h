/* watchers.h: the list behind store_watch: callbacks for committed changes. Private to the committer. */
#ifndef DPT_STORE_WATCHERS_H
#define DPT_STORE_WATCHERS_H

#include <stdint.h>

struct watchers;

struct watchers *watchers_new(void);    /* NULL when out of memory */
void watchers_free(struct watchers *w); /* NULL is fine */

int watchers_add(struct watchers *w, void (*fn)(void *arg, uint64_t rev), void *arg); /* a handle, or ERR_LIMIT */
void watchers_remove(struct watchers *w, int handle); /* when it returns, fn is not running and is not called again */

void watchers_tell(struct watchers *w, uint64_t rev);

#endif
