/* json_member.h: the text of one member of a JSON object, without a tree of the rest. */
#ifndef DPT_DATA_JSON_MEMBER_H
#define DPT_DATA_JSON_MEMBER_H

#include <stddef.h>

#include "tracker/base/buf.h"

enum json_member_result {
	JSON_MEMBER_FOUND,
	JSON_MEMBER_NULL,
	JSON_MEMBER_NONE,  /* there is no such member, or it is no string */
	JSON_MEMBER_WRONG, /* the text is no JSON object, or nests too deeply */
	JSON_MEMBER_NOMEM, /* ret has no room */
};

/* name: "text", or "a.text" of objects within objects; the first of equal names counts. What is found is appended to
 * ret as UTF-8; halves of surrogates that stand alone become U+FFFD. */
enum json_member_result json_member(const char *text, size_t n, const char *name, struct buf *ret);

#endif
