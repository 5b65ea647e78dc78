/* SPDX-License-Identifier: Apache-2.0 */
/* ring_file.h: the overflow ring file: bytes that do not fit into memory, in an unnamed file that overwrites its oldest
 * content. The page cache keeps it in memory as far as that is free. Thread-safe. */
#ifndef DPT_DATA_RING_FILE_H
#define DPT_DATA_RING_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring_file;

/* Opens a ring of at most `bytes`, and at most a 16th of the free space on the folder's disk. NULL: impossible
 * there, or the folder is in memory itself. */
struct ring_file *ring_file_open(const char *folder, uint64_t bytes);
void ring_file_close(struct ring_file *a); /* NULL is fine */

/* Writes n bytes and returns their position, > 0. 0: too many, or the disk is full. */
uint64_t ring_file_put(struct ring_file *a, const void *bytes, size_t n);

bool ring_file_holds(struct ring_file *a, uint64_t place); /* true if the content is not overwritten */

/* Reads n bytes of what was put at `place`, from `skip` on. False: overwritten, and *to is undefined. */
bool ring_file_read(struct ring_file *a, uint64_t place, size_t skip, void *to, size_t n);

#endif
