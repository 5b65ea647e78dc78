/* SPDX-License-Identifier: Apache-2.0 */
/* json_member.h: extracts one string member of a JSON object without parsing the rest into a tree. */
#ifndef DPT_DATA_JSON_MEMBER_H
#define DPT_DATA_JSON_MEMBER_H

#include <stddef.h>

#include "tracker/base/buf.h"

enum json_member_result {
	JSON_MEMBER_FOUND,
	JSON_MEMBER_NULL,
	JSON_MEMBER_NONE,  /* missing, or not a string */
	JSON_MEMBER_WRONG, /* not a JSON object, or nested too deeply */
	JSON_MEMBER_NOMEM, /* out of memory for ret */
};

/* name: "text", or "a.text" for nested objects. The first of equal keys counts. Appends the string to ret as UTF-8;
 * unpaired surrogates become U+FFFD. */
enum json_member_result json_member(const char *text, size_t n, const char *name, struct buf *ret);

#endif
