/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.h: tells the address sanitizer about memory that it does not know: the device's, a block's shared memory, the
 * stacks of threads. Empty in other builds. */
#ifndef DPT_TESTS_FAKES_CUDA_BOUNDS_H
#define DPT_TESTS_FAKES_CUDA_BOUNDS_H

#include <stddef.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define BOUNDS_GAP 32 /* inaccessible bytes after each of a block's arrays */
#else
#define BOUNDS_GAP 0
#endif

static inline void bounds_shut(const void *p, size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
	__asan_poison_memory_region(p, bytes);
#else
	(void)p, (void)bytes;
#endif
}

static inline void bounds_open(const void *p, size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
	__asan_unpoison_memory_region(p, bytes);
#else
	(void)p, (void)bytes;
#endif
}

/* A stack: its address, and what the sanitizer stores for it while another one is in use. */
struct bounds_stack {
	const void *bottom;
	size_t bytes;
	void *kept;
};

/* Before a switch of stacks, and after it on the new one: `from` receives the address of the old stack. */
static inline void bounds_leave(struct bounds_stack *from, const struct bounds_stack *to)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_start_switch_fiber(&from->kept, to->bottom, to->bytes);
#else
	(void)from, (void)to;
#endif
}

static inline void bounds_arrive(struct bounds_stack *on, struct bounds_stack *from)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(on->kept, &from->bottom, &from->bytes);
#else
	(void)on, (void)from;
#endif
}

#endif
