/* file_nameless.h: files that nobody else finds, gone with whoever holds them open. */
#ifndef DPT_BASE_FILE_NAMELESS_H
#define DPT_BASE_FILE_NAMELESS_H

/* A new, empty one on the folder's disk, to be read and written by this user alone: its descriptor. Where the file
 * system knows no files without a name, one that has had a name for a moment. -1 with errno: there can be none. */
int file_nameless(const char *folder);

#endif
