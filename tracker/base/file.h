/* SPDX-License-Identifier: Apache-2.0 */
/* file.h: files and folders: complete reads and writes, mappings, files that appear complete or not at all, names that
 * are made from untrusted texts, and folders. */
#ifndef DPT_BASE_FILE_H
#define DPT_BASE_FILE_H

#include <limits.h>
#include <sys/types.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

/* ---- bytes ---- */

/* Writes n bytes at the current offset, with as many calls as needed. Returns 0, or -1 with errno; then only some of
 * them may be written. */
int file_write(int fd, const void *bytes, size_t n);

/* Reads n bytes at an offset, with as many calls as needed. Returns the number of bytes read: fewer than n only at the
 * end of the file. -1 with errno: failed. */
ssize_t file_read(int fd, uint64_t at, void *to, size_t n);

/* Appends the whole content of a file, pipes included, to a buffer whose maximum is the largest size accepted.
 * ERR_USAGE or ERR_NOMEM, naming path; errno is set, too (EFBIG: too large). Then some bytes may be appended. */
int file_load(struct buf *to, const char *path, struct err *err);

/* ERR_USAGE if the first bytes of a file, or of an object, are those of a Git LFS pointer, which is there in place of
 * the content. name: for the message. */
int file_refuse_pointer(const char *name, const void *bytes, size_t n, struct err *err);

/* The bytes of a regular file as a read-only mapping. */
struct file_map {
	const unsigned char *bytes; /* NULL: empty, or not open */
	size_t n;
};

/* ERR_USAGE, naming path, for a file that cannot be read or is not regular; does not block on a pipe. */
int file_map_open(struct file_map *ret, const char *path, struct err *err);

/* The same for an open file, which it closes; -1: the open failed with errno. */
int file_map_fd(struct file_map *ret, int fd, const char *path, struct err *err);
void file_map_close(struct file_map *m); /* a zeroed one is fine */

/* ---- names and folders ---- */

#define FILE_NAME_BYTES 128 /* a name made from a text, room for a numeric suffix, and NUL */

/* Makes a folder name for an experiment or run: [A-Za-z0-9._-] are kept, other bytes become '_'. At most 100 bytes;
 * never empty, hidden, "..", an option or a reserved name of the server (dptrack.*). */
void file_name_of(char ret[FILE_NAME_BYTES], const char *text);

/* The folder of the file at path, "." without a slash; truncated to n bytes with NUL. */
void file_name_folder(const char *path, char *ret, size_t n);

/* Writes "folder/name" (one slash, even if the folder ends in one). Returns false, with the text truncated, if it does
 * not fit in n bytes. */
bool file_join(char *ret, size_t n, const char *folder, const char *name);

/* Creates the folder at path and those above it, like mkdir -p. */
int file_make_folders(const char *path, mode_t mode, struct err *err);

/* Creates the folders above the file at path. */
int file_make_parents(const char *path, mode_t mode, struct err *err);

/* The folder "dptrain" in $XDG_CACHE_HOME, else in ~/.cache, for data that can be computed again. Creates it; path has
 * room for 32 more bytes. Returns false without a home folder, or if its name is too long. */
bool cache_home(char *path, size_t n);

/* Checks that a file can be created at path: its folder exists, and path is not a folder or device. ERR_USAGE. */
int file_check_target(const char *path, struct err *err);

/* ---- files that appear complete or not at all ---- */

/* Creates an empty file on the folder's disk, which disappears with its descriptor, readable and writable by this user;
 * returns the descriptor. If the file system does not support unnamed files, the file has a name for a moment. Returns
 * -1 with errno on failure. */
int file_nameless(const char *folder);

#define FILE_WHOLE_PART (PATH_MAX + 64)

/* Until it is kept, a file has no name and disappears with its process. If the file system does not support that, it is
 * a temporary file next to its destination, which remains when the process is killed. */
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

/* Makes path a durable file of n bytes, and its folders; a reader sees the old file or the complete new one. */
int file_replace(const char *path, const void *bytes, size_t n, struct err *err);

#endif
