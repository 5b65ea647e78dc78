/* SPDX-License-Identifier: Apache-2.0 */
/* json_member.c: the input as a line of JSON: the value found equals Jansson's, wherever Jansson accepts the line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tests/fuzz/fuzz.h"
#include "trainer/data/corpus/documents.h"

enum { LIMIT = 1 << 20 };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* Jansson decodes names with escapes, which json_member does not: only values that json_member finds are compared. */
static void compare(const json_t *root, const struct buf *found)
{
	const json_t *text = json_object_get(root, "text");

	FUZZ_HOLDS(json_is_string(text) && json_string_length(text) == found->len);
	FUZZ_HOLDS(!found->len || !memcmp(json_string_value(text), found->data, found->len));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	json_t *root = json_loadb((const char *)bytes, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	enum json_member_result got;
	struct buf found;

	buf_init(&found, LIMIT);
	got = json_member((const char *)bytes, n, "text", &found);
	if (json_is_object(root) && got == JSON_MEMBER_FOUND)
		compare(root, &found);
	if (json_is_object(root) && got == JSON_MEMBER_NONE) /* or its name contains escapes */
		FUZZ_HOLDS(!json_is_string(json_object_get(root, "text")) || memchr(bytes, '\\', n));
	buf_reset(&found);
	json_member((const char *)bytes, n, "a.b.c", &found);
	buf_done(&found);
	json_decref(root);
	return 0;
}
