/* SPDX-License-Identifier: Apache-2.0 */
/* chat_template.c: the input as a chat template: it is refused with its place, or renders a conversation within bounds,
 * or refuses it. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "trainer/data/chat/chat_template.h"

static const char values[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"a \\u00e9\"}, {\"role\": "
			     "\"assistant\", \"content\": \"b\","
			     " \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": {\"x\": 1.5}}}]}], "
			     "\"tools\": null, \"bos_token\": \"<s>\"}";

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct err err = ERR_INIT;
	struct chat_rendering r;
	struct chat_template *t;
	json_t *variables;

	if (chat_template_new(&t, "t", (const char *)bytes, n, &err)) {
		FUZZ_HOLDS(err.code == ERR_USAGE && !strncmp(err.text, "t:", 2));
		return 0;
	}
	variables = json_loads(values, 0, NULL);
	buf_init(&r.text, SIZE_MAX);
	buf_init(&r.spans, SIZE_MAX);
	if (chat_template_render(t, variables, 0, &r, &err))
		FUZZ_HOLDS(err.code == ERR_USAGE && !strncmp(err.text, "t:", 2));
	for (size_t i = 0; i < r.spans.len / sizeof(struct chat_span); i++) {
		struct chat_span s;

		memcpy(&s, r.spans.data + i * sizeof(s), sizeof(s));
		FUZZ_HOLDS(s.begin <= s.end && s.end <= r.text.len);
	}
	buf_done(&r.text);
	buf_done(&r.spans);
	json_decref(variables);
	chat_template_free(t);
	return 0;
}
