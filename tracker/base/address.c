/* address.c: removes credentials from URLs. */
#include "tracker/base/address.h"

#include <string.h>

void address_hide(char *text)
{
	for (char *at = strstr(text, "://"); at; at = strstr(at, "://")) {
		size_t n;
		char *host;

		at += 3;
		n = strcspn(at, "/?# \t\r\n\"'<>");
		host = memrchr(at, '@', n);
		if (host)
			memmove(at, host + 1, strlen(host + 1) + 1);
	}
}
