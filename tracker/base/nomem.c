/* SPDX-License-Identifier: Apache-2.0 */
/* nomem.c: the program's function for missing memory; set once, before threads start. */
#include "tracker/base/nomem.h"

static void (*nomem_end)(size_t bytes);

void nomem_set(void (*end)(size_t bytes))
{
	nomem_end = end;
}

void *nomem(size_t bytes)
{
	if (nomem_end)
		nomem_end(bytes);
	return NULL;
}
