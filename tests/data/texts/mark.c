/* SPDX-License-Identifier: Apache-2.0 */
/* mark.c: makes tokens of chat data, for tests in Python:
 *   mark FOLDER TEMPLATE|- TRAIN ALLOW <records    TRAIN: a number of enum chat_train; ALLOW: 0, 1: special tokens
 * Each line is a record of the form of the first; answers a line: tokens, trained and missed; or why; or error. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/data/chat/chat.h"

static json_t *describe_sample(const struct chat_sample *s)
{
	json_t *tokens = json_array(), *trained = json_array();

	for (size_t i = 0; i < s->marked.len; i += sizeof(int32_t)) {
		int32_t marked;

		memcpy(&marked, s->marked.data + i, sizeof(marked));
		json_array_append_new(tokens, json_integer(CHAT_TOKEN_OF(marked)));
		json_array_append_new(trained, json_integer(CHAT_IS_TRAINED(marked)));
	}
	return json_pack("{s:o, s:o, s:I, s:s}", "tokens", tokens, "trained", trained, "missed", (json_int_t)s->missed,
			 "why", s->why);
}

int main(int argc, char **argv)
{
	enum conversation_form form = CONVERSATION_FORMS;
	struct chat_opts o = { .tokenizer = argc > 4 ? argv[1] : "" };
	struct chat_sample sample;
	struct err err = ERR_INIT;
	struct chat *chat;
	char *line = NULL;
	size_t cap = 0;

	if (argc > 4) {
		o.template_name = strcmp(argv[2], "-") ? argv[2] : NULL;
		o.train = (enum chat_train)strtol(argv[3], NULL, 10);
		o.allow_special = !strcmp(argv[4], "1");
	}
	if (chat_open(&chat, &o, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	buf_init(&sample.marked, SIZE_MAX);
	while (getline(&line, &cap, stdin) > 0) {
		json_t *record = json_loads(line, 0, NULL), *answer;
		char *said;

		form = form == CONVERSATION_FORMS ? conversation_form_of(record) : form;
		answer = form == CONVERSATION_FORMS || chat_encode(chat, form, record, &sample, &err)
				 ? json_pack("{s:s}", "error", err.text)
				 : describe_sample(&sample);
		said = json_dumps(answer, JSON_COMPACT);
		puts(said ? said : "{}");
		free(said);
		json_decref(answer);
		json_decref(record);
	}
	free(line);
	buf_done(&sample.marked);
	chat_close(chat);
	return 0;
}
