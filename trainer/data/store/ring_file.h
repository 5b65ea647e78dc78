/* ring_file.h: bytes that memory has no room for, in a file without a name that is written around and around: what was put
 * there long ago is overwritten. The system holds it in memory as far as that is free. Any thread. */
#ifndef DPT_DATA_RING_FILE_H
#define DPT_DATA_RING_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring_file;

/* Of at most so many bytes, and a 16th of what is free on the disk of the folder. NULL: none can be had there (nor in
 * memory itself). */
struct ring_file *ring_file_open(const char *folder, uint64_t bytes);
void ring_file_close(struct ring_file *a); /* NULL is fine */

/* Where they lie from now on, > 0; 0: they are too many, or the disk is full. */
uint64_t ring_file_put(struct ring_file *a, const void *bytes, size_t n);

bool ring_file_holds(struct ring_file *a, uint64_t place); /* whether what was put there is not overwritten */

/* n bytes from `skip` on of what was put there. False: they are not there any more, and *to is undefined. */
bool ring_file_read(struct ring_file *a, uint64_t place, size_t skip, void *to, size_t n);

#endif
