/* grow.c: realloc on demand. */
#include "trainer/data/pictures/grow.h"

#include <stdlib.h>

int grow_to(void *buffer, size_t *have, size_t bytes, const char *what, struct err *err)
{
	void **b = buffer, *p;

	if (bytes <= *have)
		return 0;
	p = realloc(*b, bytes);
	if (!p)
		return err_set(err, ERR_NOMEM, "out of memory: %zu bytes for %.300s", bytes, what);
	*b = p;
	*have = bytes;
	return 0;
}
