/* SPDX-License-Identifier: Apache-2.0 */
/* onednn_memory.h: the memory that oneDNN allocates while it executes a primitive. Each call builds a map of its
 * arguments from a dozen small pieces, and its gemm packs operands into up to 10 MB; its interface accepts no memory
 * for either. What it frees is therefore kept here for its next call: a step that has run once allocates nothing from
 * the system. tests/backends/allocations.py counts, tests/backends/dnn_memory_test.c tests the pool. */
#ifndef DPT_BACKENDS_CPU_ONEDNN_MEMORY_H
#define DPT_BACKENDS_CPU_ONEDNN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Redirects the allocations of the library that contains `code` to this module. Returns false if that is not possible;
 * the library then keeps using the system's allocator. The first call decides for the process; this module then stays
 * loaded. */
bool dnn_memory_serve(const void *code);

/* Between these two calls, in any thread, requests are served from kept memory; other allocations are long-lived. of:
 * memory of this call, which serves large requests as far as they fit; NULL: none. */
void dnn_memory_begin(void *of, size_t bytes);
void dnn_memory_end(const void *of);

/* Returns the most bytes of such memory that all large blocks in use needed at a time, since the last call; 0: none. */
size_t dnn_memory_most(void);

/* Serve and free the requests of the library's operator new and posix_memalign. Any thread. NULL: use the system's
 * allocator; false: the memory is the system's. */
void *dnn_memory_piece(size_t bytes);
void *dnn_memory_block(size_t bytes);
bool dnn_memory_give_piece(void *p);
bool dnn_memory_give_block(void *p);

#endif
