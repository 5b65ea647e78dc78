/* SPDX-License-Identifier: Apache-2.0 */
/* plan_cache.c: see plan_cache.h. A file has the owner's line, the key's line, a line with the CRC-32C of key and
 * bytes, then the bytes. */
#include "trainer/backends/cuda/plan_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tracker/base/crc32c.h"
#include "tracker/base/file.h"
#include "tracker/base/hash.h"
#include "tracker/mem/mem.h"

#define FILES_MAX 4096
#define BYTES_MAX ((size_t)8 << 20) /* per entry; a compiled kernel has a tenth of a megabyte */
#define HALF_DONE_S 3600	    /* temporary files older than this are abandoned */

struct plan_entry {
	struct plan_entry *next;
	char *key;
	void *bytes;
	size_t n;
};

struct plan_cache {
	struct plan_entry *first;
	char *owner;
	char folder[4096]; /* "": nothing is stored on disk */
	int files;
	int strange; /* files that are foreign or damaged */
};

/* Adds a copy of key and bytes. */
static void add_plan_entry(struct plan_cache *k, const char *key, const void *bytes, size_t n)
{
	struct plan_entry *e = mem_alloc(sizeof(*e));

	*e = (struct plan_entry){ .key = mem_strdup(key), .bytes = mem_dup(bytes, n), .n = n, .next = k->first };
	k->first = e;
}

/* ---- files ---- */

/* Returns the next line, terminated by NUL; NULL: none. */
static char *cut_file_line(char **at, const char *end)
{
	char *line = *at, *stop = memchr(line, '\n', (size_t)(end - line));

	if (!stop)
		return NULL;
	*stop = '\0';
	*at = stop + 1;
	return line;
}

/* Parses a file; false if it is damaged or has another owner. */
static bool parse_plan_file(struct plan_cache *k, char *text, size_t n)
{
	char *at = text, *const end = text + n;
	const char *owner = cut_file_line(&at, end), *key = owner ? cut_file_line(&at, end) : NULL;
	const char *sum = key ? cut_file_line(&at, end) : NULL;
	const size_t bytes = (size_t)(end - at);

	if (!sum || strcmp(owner, k->owner) != 0)
		return false;
	if (strtoul(sum, NULL, 16) != crc32c(crc32c(0, key, strlen(key)), at, bytes))
		return false;
	if (!plan_cache_find(k, key, &(size_t){ 0 }))
		add_plan_entry(k, key, at, bytes);
	return true;
}

/* Reads a whole file; false if it cannot be read or is too large. */
static bool read_plan_bytes(int fd, char **ret, size_t *ret_n)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (size_t)st.st_size > BYTES_MAX)
		return false;
	*ret = mem_alloc((size_t)st.st_size);
	n = read(fd, *ret, (size_t)st.st_size);
	*ret_n = n > 0 ? (size_t)n : 0;
	return n == st.st_size;
}

static void read_plan_file(struct plan_cache *k, int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *text = NULL;
	size_t n = 0;

	k->files++;
	if (fd < 0 && errno == ENOENT) /* another rank has just replaced it */
		return;
	if (fd < 0 || !read_plan_bytes(fd, &text, &n) || !parse_plan_file(k, text, n))
		k->strange++;
	free(text);
	if (fd >= 0)
		close(fd);
}

/* Removes abandoned temporary files of killed processes. */
static void remove_abandoned_file(int folder, const char *name)
{
	struct stat st;

	if (!fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
	    st.st_mtime < time(NULL) - HALF_DONE_S)
		unlinkat(folder, name, 0);
}

static void read_plan_folder(struct plan_cache *k)
{
	DIR *d = opendir(k->folder);
	struct dirent *e;

	while (d && k->files < FILES_MAX && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			remove_abandoned_file(dirfd(d), e->d_name);
		else
			read_plan_file(k, dirfd(d), e->d_name);
	}
	if (d)
		closedir(d);
	else
		k->folder[0] = '\0';
}

static bool write_plan_file(const struct plan_cache *k, int fd, const char *key, const void *bytes, size_t n)
{
	char sum[16];
	const uint32_t crc = crc32c(crc32c(0, key, strlen(key)), bytes, n);
	const int length = snprintf(sum, sizeof(sum), "%08x\n", (unsigned)crc);

	return !file_write(fd, k->owner, strlen(k->owner)) && !file_write(fd, "\n", 1) &&
	       !file_write(fd, key, strlen(key)) && !file_write(fd, "\n", 1) && !file_write(fd, sum, (size_t)length) &&
	       !file_write(fd, bytes, n);
}

/* Writes a temporary file and renames it. On a full disk nothing is stored. */
static void store_plan_file(struct plan_cache *k, const char *key, const void *bytes, size_t n)
{
	const unsigned long long digest = hash_fnv_text(HASH_FNV_BEGIN, key);
	char path[sizeof(k->folder) + 64], begun[sizeof(k->folder) + 64];
	bool done;
	int fd;

	snprintf(path, sizeof(path), "%s/%016llx", k->folder, digest);
	snprintf(begun, sizeof(begun), "%s/.%016llx-%ld", k->folder, digest, (long)getpid());
	fd = open(begun, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	done = write_plan_file(k, fd, key, bytes, n);
	done = !close(fd) && done;
	if (!done || rename(begun, path))
		unlink(begun);
	else
		k->files++;
}

/* ---- interface ---- */

static void open_plan_folder(struct plan_cache *k)
{
	size_t n;

	if (!cache_home(k->folder, sizeof(k->folder) - 32)) {
		k->folder[0] = '\0';
		return;
	}
	n = strlen(k->folder);
	snprintf(k->folder + n, sizeof(k->folder) - n, "/cuda-plans-1/%016llx",
		 (unsigned long long)hash_fnv_text(HASH_FNV_BEGIN, k->owner));
	file_make_folders(k->folder, 0755, NULL); /* without the folder nothing is stored */
}

struct plan_cache *plan_cache_open(const char *owner, struct err *err)
{
	struct plan_cache *k = mem_zalloc(sizeof(*k));

	if (!owner)
		return k;
	k->owner = mem_strdup(owner);
	open_plan_folder(k);
	if (k->folder[0])
		read_plan_folder(k);
	if (k->strange)
		err_set(err, ERR_IO, "ignored %d files in %s that are damaged or not dptrain's", k->strange, k->folder);
	return k;
}

void plan_cache_close(struct plan_cache *k)
{
	while (k && k->first) {
		struct plan_entry *e = k->first;

		k->first = e->next;
		free(e->key);
		free(e->bytes);
		free(e);
	}
	if (k)
		free(k->owner);
	free(k);
}

const void *plan_cache_find(const struct plan_cache *k, const char *key, size_t *ret_bytes)
{
	for (const struct plan_entry *e = k ? k->first : NULL; e; e = e->next)
		if (!strcmp(e->key, key)) {
			*ret_bytes = e->n;
			return e->bytes;
		}
	return NULL;
}

void plan_cache_put(struct plan_cache *k, const char *key, const void *bytes, size_t n)
{
	if (!k)
		return;
	add_plan_entry(k, key, bytes, n);
	if (k->folder[0] && k->files < FILES_MAX)
		store_plan_file(k, key, bytes, n);
}
