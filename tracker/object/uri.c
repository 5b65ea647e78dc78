/* uri.c: percent-encoding. */
#include "tracker/object/uri.h"

#include <assert.h>
#include <string.h>

static void add_encoded(struct buf *to, const char *text, const char *stays)
{
	for (; *text; text++)
		if ((*text >= 'A' && *text <= 'Z') || (*text >= 'a' && *text <= 'z') ||
		    (*text >= '0' && *text <= '9') || strchr(stays, *text))
			buf_addc(to, *text);
		else
			buf_addf(to, "%%%02X", (unsigned)(unsigned char)*text);
}

void uri_add_path(struct buf *to, const char *path)
{
	add_encoded(to, path, "-._~/");
}

void uri_add_query(struct buf *to, const struct uri_pair *pair, int n)
{
	struct uri_pair sorted[URI_PAIRS_MAX];

	assert(n <= URI_PAIRS_MAX);
	for (int i = 0; i < n; i++) {
		int at = i;

		for (; at && strcmp(sorted[at - 1].name, pair[i].name) > 0; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = pair[i];
	}
	for (int i = 0; i < n; i++) {
		buf_addf(to, "%s%s=", i ? "&" : "", sorted[i].name);
		add_encoded(to, sorted[i].value, "-._~");
	}
}
