/* artifact_path.c: validates paths from clients. */
#include <string.h>

#include "tracker/base/utf8.h"
#include "web/store/files/artifacts.h"
#include "web/store/files/files.h"

#define DEPTH_MAX 64
#define PATH_BYTES 4000

static bool segment_ok(const char *s, size_t n)
{
	size_t i;

	if (!n || n > 255 || (n <= 2 && !memcmp(s, "..", n)))
		return false;
	for (i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f || s[i] == '\\')
			return false;
	return true;
}

static bool segments_ok(const char *path)
{
	size_t depth = 0, n;

	for (;; path += n + 1) {
		n = strcspn(path, "/");
		if (!segment_ok(path, n) || ++depth > DEPTH_MAX)
			return false;
		if (!path[n])
			return true;
	}
}

static int percent_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F'
		? c - 'A' + 10 : -1;
}

/* Decodes percent escapes in place; a percent sign without two hex digits stays. False: there was none. */
static bool decode_percent(char *text)
{
	char *to = text;
	bool any = false;

	for (; *text; text++) {
		int high = *text == '%' ? percent_digit(text[1]) : -1, low = high >= 0 ? percent_digit(text[2]) : -1;

		if (low < 0) {
			*to++ = *text;
			continue;
		}
		any = true;
		*to = (char)(high * 16 + low);
		if (!*to)
			*to = '\\'; /* rejected like a NUL, without ending the text */
		to++;
		text += 2;
	}
	*to = '\0';
	return any;
}

bool artifact_path_ok(const char *path)
{
	char copy[PATH_BYTES + 1];
	size_t n = strlen(path);

	if (!n || n > PATH_BYTES || !segments_ok(path) || !utf8_valid(path, n))
		return false;
	memcpy(copy, path, n + 1);
	while (decode_percent(copy))
		if (!segments_ok(copy))
			return false;
	return strncmp(path, FILES_UPLOADS, sizeof FILES_UPLOADS - 1) != 0 ||
		(path[sizeof FILES_UPLOADS - 1] && path[sizeof FILES_UPLOADS - 1] != '/');
}
