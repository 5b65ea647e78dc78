/* file_name.c: makes file names from texts, and the folders above a file. */
#include "tracker/base/file_name.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_BYTES_MAX = 100, PATH_BYTES_MAX = 4096 };

static bool is_file_name_char(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
	       c == '-';
}

void file_name_of(char ret[FILE_NAME_BYTES], const char *text)
{
	size_t n = 0;

	for (; text[n] && n < NAME_BYTES_MAX; n++)
		ret[n] = is_file_name_char(text[n]) ? text[n] : '_';
	if (!n)
		ret[n++] = '_';
	ret[n] = '\0';
	if (ret[0] == '.' || ret[0] == '-')
		ret[0] = '_';
	if (!strncmp(ret, "dptrack.", 8))
		ret[7] = '_';
}

void file_name_folder(const char *path, char *ret, size_t n)
{
	char *slash;

	snprintf(ret, n, "%s", path);
	slash = strrchr(ret, '/');
	if (slash)
		slash[slash == ret] = '\0';
	else
		snprintf(ret, n, ".");
}

int file_name_folders(const char *path, struct err *err)
{
	char part[PATH_BYTES_MAX];
	size_t n = strlen(path);

	if (n >= sizeof(part))
		return err_set(err, ERR_USAGE, "%.100s…: path is too long", path);
	for (size_t i = 1; i < n; i++) {
		if (path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, 0777) && errno != EEXIST)
			return err_set_errno(err, errno, "cannot create the folder %s", part);
	}
	return 0;
}
