/* file_whole.h: files that appear complete or not at all. Until then a file has no name and disappears with its
 * process. If the file system does not support that, it is a temporary file next to its destination, which remains when
 * the process is killed. */
#ifndef DPT_BASE_FILE_WHOLE_H
#define DPT_BASE_FILE_WHOLE_H

#include <limits.h>
#include <stdbool.h>

#define FILE_WHOLE_PART (PATH_MAX + 64)

struct file_whole {
	int fd;	    /* for writing and reading; -1: kept or dropped */
	bool named; /* exists at part */
	char part[FILE_WHOLE_PART];
};

/* part: a temporary path next to the destination that no other writer uses; a leftover of a killed process there is
 * removed. Returns 0, or -1 with errno. */
int file_whole_open(struct file_whole *ret, const char *part);

/* Closes the file and moves it to path, replacing any file there. On failure nothing remains. Returns 0, or -1 with
 * errno. */
int file_whole_keep(struct file_whole *f, const char *path);

void file_whole_drop(struct file_whole *f); /* no effect after file_whole_keep */

#endif
