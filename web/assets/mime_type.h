/* SPDX-License-Identifier: Apache-2.0 */
/* mime_type.h: media types of the files that a browser gets. In the header, because the build tool uses it, too. */
#ifndef DPT_ASSETS_MIME_TYPE_H
#define DPT_ASSETS_MIME_TYPE_H

#include <stddef.h>
#include <string.h>

/* The type by the name's ending; application/octet-stream for others. */
static inline const char *mime_type_of(const char *path)
{
	static const char *const types[][2] = {
		{ ".html", "text/html; charset=utf-8" }, { ".js", "text/javascript; charset=utf-8" },
		{ ".css", "text/css; charset=utf-8" },   { ".svg", "image/svg+xml" },
		{ ".json", "application/json" },         { ".png", "image/png" },
		{ ".ico", "image/x-icon" },              { ".woff2", "font/woff2" },
		{ ".txt", "text/plain; charset=utf-8" }, { ".webmanifest", "application/manifest+json" },
	};
	const char *dot = strrchr(path, '.');
	size_t i;

	for (i = 0; dot && i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(dot, types[i][0]))
			return types[i][1];
	return "application/octet-stream";
}

#endif
