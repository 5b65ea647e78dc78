/* no_memory.h: the one error of the store for memory that cannot be had. Private to web/store. */
#ifndef DPT_STORE_NO_MEMORY_H
#define DPT_STORE_NO_MEMORY_H

#include "tracker/base/err.h"

/* Sets *err (may be NULL) and returns ERR_NOMEM. */
static inline int no_memory(struct err *err)
{
	return err_set(err, ERR_NOMEM, "store: out of memory");
}

#endif
