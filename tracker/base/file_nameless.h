/* file_nameless.h: unnamed temporary files, which disappear with their descriptor. */
#ifndef DPT_BASE_FILE_NAMELESS_H
#define DPT_BASE_FILE_NAMELESS_H

/* Creates an empty file on the folder's disk, readable and writable by this user; returns its descriptor. If the file
 * system does not support unnamed files, the file has a name for a moment. Returns -1 with errno on failure. */
int file_nameless(const char *folder);

#endif
