/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h: memory of the fake device, which the host can access only while the device works (mprotect), and pinned
 * memory of the host. */
#ifndef DPT_TESTS_FAKES_CUDA_MEMORY_H
#define DPT_TESTS_FAKES_CUDA_MEMORY_H

#include <stddef.h>

/* Returns zeroed pages; NULL if the device is full ($DPTRAIN_FAKE_MEMORY bytes, by default 8 GiB). */
void *memory_device_new(size_t bytes);
void *memory_pinned_new(size_t bytes);
bool memory_free(void *p); /* false: unknown address */

bool memory_is_device(const void *p);
bool memory_is_pinned(const void *p);
void memory_room(size_t *ret_free, size_t *ret_total);

/* Around everything that the device does. Calls nest. */
void memory_open(void);
void memory_shut(void);

/* Within those, around what the host does in between. */
void memory_hide(void);
void memory_show(void);

#endif
