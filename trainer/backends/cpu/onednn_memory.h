/* onednn_memory.h: the memory that oneDNN asks for while it executes a primitive. It makes a map of its arguments at every
 * call, a dozen small pieces, and its gemm lays operands out in up to 10 MB a call; the interface has no way to hand it
 * either. What it gives back is therefore kept here for its next call: a step that has run once asks the system for
 * nothing. tests/backends/allocations.py counts, tests/backends/dnn_memory_test.c tests the pool. */
#ifndef DPT_BACKENDS_CPU_ONEDNN_MEMORY_H
#define DPT_BACKENDS_CPU_ONEDNN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* From now on the library that holds `code` takes its memory here; false where that cannot be had (then it goes on
 * asking the system). Whoever calls it first decides; the module that this is part of then stays loaded. */
bool dnn_memory_serve(const void *code);

/* Between these two, in any thread, asks are served from what is kept: what is made outside lives long. of: memory of
 * this call from which large asks are served as far as they fit; NULL: none. */
void dnn_memory_begin(void *of, size_t bytes);
void dnn_memory_end(const void *of);

/* Bytes of such memory that would have served what was out at a time since this was last asked; 0: nothing large. */
size_t dnn_memory_most(void);

/* What the library's operator new and posix_memalign take, and give back. Any thread. NULL: ask the system; false: it
 * is the system's. */
void *dnn_memory_piece(size_t bytes);
void *dnn_memory_block(size_t bytes);
bool dnn_memory_give_piece(void *p);
bool dnn_memory_give_block(void *p);

#endif
