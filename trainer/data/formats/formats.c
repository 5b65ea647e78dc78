/* formats.c: the table of formats, the detection of a folder's format, and the cache folders of a data set. */
#include "trainer/data/formats/formats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/buf.h"
#include "tracker/base/sha256.h"

const struct dataset_ops *const formats_table[FORMATS_COUNT] = {
#define FORMAT(name) [FORMATS_##name] = &dataset_##name,
#include "trainer/data/formats/formats.def"
#undef FORMAT
};

static int fail_not_recognised(const char *path, struct err *err)
{
	struct buf b;
	int rc;

	buf_init(&b, 400);
	for (int i = 0; i < FORMATS_COUNT; i++)
		if (formats_table[i]->expects)
			buf_addf(&b, "%s%s", b.len ? "; or " : "", formats_table[i]->expects);
	rc = err_set(err, ERR_USAGE, "%.200s: no data set recognised: expected %s", path, b.data ? b.data : "");
	buf_done(&b);
	return rc;
}

int formats_open(struct dataset **ret, const struct dataset_opts *o, struct err *err)
{
	struct stat st;
	bool folder = !stat(o->path, &st) && S_ISDIR(st.st_mode);

	if (o->mix)
		return token_mix_open(ret, o, formats_open, err);
	for (int i = 0; i < FORMATS_COUNT; i++)
		if ((folder || i == FORMATS_shards) && formats_table[i]->probe && formats_table[i]->probe(o->path))
			return o->val_path && i != FORMATS_shards ? err_set(err, ERR_USAGE,
									    "--val-path: is for shards only: %.200s "
									    "has its own validation samples; "
									    "use --val-split",
									    o->path)
								  : formats_table[i]->open(ret, o, err);
	if (stat(o->path, &st))
		return err_set(err, ERR_USAGE, "data path %.200s: %s", o->path, strerror(errno));
	if (!folder)
		return err_set(err, ERR_USAGE, "data path %.200s: is neither a folder nor a shard", o->path);
	return fail_not_recognised(o->path, err);
}

/* The two cache folders of a data set. */

static bool make_writable_folder(const char *folder)
{
	return (mkdir(folder, 0777) == 0 || errno == EEXIST) && access(folder, W_OK | X_OK) == 0;
}

bool cache_dir_join(char ret[CACHE_DIR_PATH_BYTES], const char *folder, const char *name)
{
	return snprintf(ret, CACHE_DIR_PATH_BYTES, "%s/%s", folder, name) < CACHE_DIR_PATH_BYTES;
}

bool cache_dir_beside(const char *path, char ret[CACHE_DIR_PATH_BYTES])
{
	return cache_dir_join(ret, path, ".dptrain") && make_writable_folder(ret);
}

bool cache_dir_in_cache(const char *path, char ret[CACHE_DIR_PATH_BYTES])
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *real = realpath(path, NULL), hex[65], base[CACHE_DIR_PATH_BYTES], ours[CACHE_DIR_PATH_BYTES];

	sha256_hex(real ? real : path, strlen(real ? real : path), hex);
	free(real);
	hex[16] = '\0';
	if (xdg && *xdg ? !cache_dir_join(base, xdg, "") : !cache_dir_join(base, home ? home : "", ".cache"))
		return false;
	return make_writable_folder(base) && cache_dir_join(ours, base, "dptrain") && make_writable_folder(ours) &&
	       cache_dir_join(ret, ours, hex) && make_writable_folder(ret);
}

int cache_dir_lock(const char *folder)
{
	char path[CACHE_DIR_PATH_BYTES];
	int fd, rc;

	if (!cache_dir_join(path, folder, "lock"))
		return -1;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	do
		rc = fd < 0 ? -1 : flock(fd, LOCK_EX);
	while (rc && fd >= 0 && errno == EINTR);
	if (rc && fd >= 0)
		close(fd);
	return rc ? -1 : fd;
}
