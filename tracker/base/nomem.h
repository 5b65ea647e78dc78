/* SPDX-License-Identifier: Apache-2.0 */
/* nomem.h: what happens when a buffer or an arena gets no memory: it fails, as in libdptrack, or the program ends. */
#ifndef DPT_BASE_NOMEM_H
#define DPT_BASE_NOMEM_H

#include <stddef.h>

/* For programs, before threads start: the function that is called instead of failing; it must not return. */
void nomem_set(void (*end)(size_t bytes));

/* For buffers and arenas: calls that function with the size of the failed allocation, or returns NULL without one. */
void *nomem(size_t bytes);

#endif
