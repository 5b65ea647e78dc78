/* SPDX-License-Identifier: Apache-2.0 */
/* json_print.h: JSON as text, for stdout or a buffer. In the header, because libdptrack does not link jansson: only
 * programs include it. */
#ifndef DPT_BASE_JSON_PRINT_H
#define DPT_BASE_JSON_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "tracker/base/buf.h"

/* Prints o and a newline to stdout and releases it. flags: those of json_dumpf; JSON_PRINT_PAGE is for people and
 * programs. Doubles have 17 digits, so they read back unchanged. */
#define JSON_PRINT_PAGE JSON_INDENT(2)

static inline void json_print(json_t *o, size_t flags)
{
	json_dumpf(o, stdout, flags | JSON_REAL_PRECISION(17));
	putchar('\n');
	json_decref(o);
}

static inline int json_append_piece(const char *text, size_t n, void *out)
{
	buf_add(out, text, n);
	return 0;
}

/* Appends o and a newline to out and releases o. o NULL, or no memory: out has failed. */
static inline void json_append(json_t *o, size_t flags, struct buf *out)
{
	if (!o || json_dump_callback(o, json_append_piece, out, flags))
		out->failed = true;
	buf_addc(out, '\n');
	json_decref(o);
}

#endif
