/* SPDX-License-Identifier: Apache-2.0 */
/* render.c: renders a chat template, for tests in Python:
 *   render TEMPLATE <cases    each line a JSON object with the variables; answers a line with a JSON object: text and
 *                             spans (of bytes), or error */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/file.h"
#include "trainer/data/chat/chat_template.h"

static json_t *render(const struct chat_template *t, json_t *variables, struct chat_rendering *r)
{
	struct err err = ERR_INIT;
	json_t *answer, *spans = json_array();

	if (chat_template_render(t, variables, 0, r, &err)) {
		json_decref(spans);
		return json_pack("{s:s}", "error", err.text);
	}
	for (size_t i = 0; i < r->spans.len / sizeof(struct chat_span); i++) {
		const struct chat_span *s = (const struct chat_span *)(const void *)r->spans.data + i;

		json_array_append_new(spans, json_pack("[I, I]", (json_int_t)s->begin, (json_int_t)s->end));
	}
	answer = json_pack("{s:o, s:o}", "text", json_stringn(r->text.data ? r->text.data : "", r->text.len), "spans",
			   spans);
	return answer;
}

int main(int argc, char **argv)
{
	struct chat_rendering r;
	struct chat_template *t;
	struct err err = ERR_INIT;
	struct buf text;
	char *line = NULL;
	size_t cap = 0;

	buf_init(&text, 1 << 24);
	buf_init(&r.text, SIZE_MAX);
	buf_init(&r.spans, SIZE_MAX);
	if (argc < 2 || file_load(&text, argv[1], &err) ||
	    chat_template_new(&t, "template", text.data, text.len, &err)) {
		fprintf(stderr, "%s\n", err.text);
		buf_done(&text);
		return 1;
	}
	while (getline(&line, &cap, stdin) > 0) {
		json_t *variables = json_loads(line, 0, NULL), *answer = render(t, variables, &r);
		char *said = json_dumps(answer, JSON_COMPACT);

		puts(said ? said : "{}");
		free(said);
		json_decref(answer);
		json_decref(variables);
	}
	free(line);
	buf_done(&text);
	buf_done(&r.text);
	buf_done(&r.spans);
	chat_template_free(t);
	return 0;
}
