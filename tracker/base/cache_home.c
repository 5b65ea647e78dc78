/* cache_home.c: finds the user's cache folder. */
#include "tracker/base/cache_home.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define ROOM 42 /* for the name of the folder and the caller's suffix */

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
