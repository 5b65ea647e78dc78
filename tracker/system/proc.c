/* proc.c: reads files and finds values; keeps no state. */
#include "tracker/system/proc.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/file.h"

bool proc_read(const char *root, const char *path, char text[PROC_TEXT_BYTES])
{
	char whole[PATH_MAX];
	ssize_t n = -1, got;
	int fd;

	text[0] = '\0';
	if (!file_join(whole, sizeof(whole), root, path))
		return false;
	fd = open(whole, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	for (n = 0; n < PROC_TEXT_BYTES - 1; n += got) { /* some files return one line per read */
		got = read(fd, text + n, (size_t)(PROC_TEXT_BYTES - 1 - n));
		if (got <= 0)
			break;
	}
	close(fd);
	text[n] = '\0';
	return n > 0;
}

static double parse_number_or_nan(const char *text)
{
	char *end;
	double v = strtod(text, &end);

	return end == text ? NAN : v;
}

double proc_number(const char *root, const char *path)
{
	char text[PROC_TEXT_BYTES];

	return proc_read(root, path, text) ? parse_number_or_nan(text) : NAN;
}

double proc_value(const char *text, const char *key, const char *mark)
{
	size_t n = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *at, *end;

		line += *line == '\n';
		if (strncmp(line, key, n) || !strchr(" :\t", line[n]))
			continue;
		end = line + strcspn(line, "\n");
		at = mark ? strstr(line, mark) : line + n + (line[n] == ':');
		return at && at < end ? parse_number_or_nan(at + (mark ? strlen(mark) : 0)) : NAN;
	}
	return NAN;
}
