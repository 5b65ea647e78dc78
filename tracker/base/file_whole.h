/* file_whole.h: a file that is there whole or not at all. Until then it has no name, and is gone with its process;
 * where the file system knows no such files it lies beside, and stays there when its process is killed. */
#ifndef DPT_BASE_FILE_WHOLE_H
#define DPT_BASE_FILE_WHOLE_H

#include <limits.h>
#include <stdbool.h>

#define FILE_WHOLE_PART (PATH_MAX + 64)

struct file_whole {
	int fd;	    /* to be written, and read; -1: kept or dropped */
	bool named; /* it lies at part */
	char part[FILE_WHOLE_PART];
};

/* part: a path beside the one that it will have, which no other writer uses; what somebody who was killed left there
 * is removed. 0, or -1 with errno. */
int file_whole_open(struct file_whole *ret, const char *part);

/* In path's place, whatever lies there, once it is closed. On failure nothing is left. 0, or -1 with errno. */
int file_whole_keep(struct file_whole *f, const char *path);

void file_whole_drop(struct file_whole *f); /* one that was kept stays */

#endif
