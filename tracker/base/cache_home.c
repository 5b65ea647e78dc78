/* cache_home.c: see cache_home.h. */
#include "tracker/base/cache_home.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define ROOM 42 /* of the folder's name, and what callers add */

bool cache_home(char *path, size_t n)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int len = 0;

	if (xdg && xdg[0] == '/')
		len = snprintf(path, n, "%s", xdg);
	else if (home && home[0] == '/')
		len = snprintf(path, n, "%s/.cache", home);
	if (len <= 0 || (size_t)len + ROOM > n)
		return false;
	mkdir(path, 0755);
	snprintf(path + len, n - (size_t)len, "/dptrain");
	mkdir(path, 0755);
	return true;
}
