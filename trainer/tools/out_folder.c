/* SPDX-License-Identifier: Apache-2.0 */
/* out_folder.c: a folder with a temporary name, which is renamed when it is complete. */
#include "trainer/tools/out_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void out_folder_remove(const char *folder)
{
	DIR *d = *folder ? opendir(folder) : NULL;
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	if (*folder)
		rmdir(folder);
}

int out_folder_make(char ret[OUT_FOLDER_BYTES], const char *out, const char *what, struct err *err)
{
	char path[OUT_FOLDER_BYTES];
	size_t n;

	snprintf(path, sizeof(path), "%.4000s", out);
	for (n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	if (rmdir(path) && errno != ENOENT)
		return err_set(err, ERR_USAGE, "--out %.300s: %s%s", path,
			       errno == ENOTEMPTY || errno == EEXIST ? "is not empty: use another folder for "
								     : strerror(errno),
			       errno == ENOTEMPTY || errno == EEXIST ? what : "");
	snprintf(ret, OUT_FOLDER_BYTES, "%.4000s.XXXXXX", path);
	if (!mkdtemp(ret)) {
		ret[0] = '\0';
		return err_set_errno(err, errno, "cannot create a folder next to %.300s", path);
	}
	return chmod(ret, 0755) ? err_set_errno(err, errno, "%.300s", ret) : 0;
}

int out_folder_publish(const char *folder, const char *out, struct err *err)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	return rename(folder, out) ? err_set_errno(err, errno, "cannot rename %.300s to %.200s", folder, out) : 0;
}
