/* SPDX-License-Identifier: Apache-2.0 */
/* conversation.c: the forms of chat data, each as messages. */
#include "trainer/data/chat/conversation.h"

#include <stdio.h>
#include <string.h>

#include "tracker/base/buf.h"

static const struct {
	const char *has, *and; /* members */
	const char *mapping;
} forms[] = {
	[CONVERSATION_MESSAGES] = { "messages", "messages", "messages (role, content)" },
	[CONVERSATION_TURNS] = { "conversations", "conversations", "conversations (from, value) as messages" },
	[CONVERSATION_INSTRUCTION] = { "instruction", "output", "instruction and input as user, output as assistant" },
	[CONVERSATION_COMPLETION] = { "prompt", "completion", "prompt and completion" },
};

enum conversation_form conversation_form_of(const json_t *record)
{
	int i = 0;

	while (i < CONVERSATION_FORMS &&
	       !(json_object_get(record, forms[i].has) && json_object_get(record, forms[i].and)))
		i++;
	return (enum conversation_form)i;
}

bool conversation_takes(const char *name)
{
	bool taken = !strcmp(name, "input") || !strcmp(name, "system") || !strcmp(name, "tools");

	for (int i = 0; i < CONVERSATION_FORMS; i++)
		taken |= !strcmp(name, forms[i].has) || !strcmp(name, forms[i].and);
	return taken;
}

const char *conversation_mapping(enum conversation_form form)
{
	return forms[form].mapping;
}

static const char *text_member(const json_t *o, const char *name)
{
	return json_string_value(json_object_get(o, name));
}

bool conversation_is_answer(const json_t *message)
{
	const char *role = text_member(message, "role");

	return role && !strcmp(role, "assistant");
}

bool conversation_is_weighted(const json_t *message)
{
	const json_t *weight = json_object_get(message, "weight");

	return !json_is_number(weight) || json_number_value(weight) != 0;
}

static void refuse_record(struct conversation *c, const char *why, const char *what)
{
	if (!c->why[0])
		snprintf(c->why, sizeof(c->why), "%s%.60s", why, what ? what : "");
}

/* Returns the role that templates know; NULL: unknown. */
static const char *standard_role(const char *role)
{
	static const struct {
		const char *from, *to;
	} roles[] = { { "system", "system" }, { "user", "user" },	    { "assistant", "assistant" },
		      { "tool", "tool" },     { "developer", "developer" }, { "human", "user" },
		      { "gpt", "assistant" }, { "model", "assistant" },	    { "chatgpt", "assistant" },
		      { "bot", "assistant" }, { "observation", "tool" } };

	for (size_t i = 0; role && i < sizeof(roles) / sizeof(*roles); i++)
		if (!strcmp(role, roles[i].from))
			return roles[i].to;
	return NULL;
}

/* Returns a list of {type: text} as one text; other content as it is. NULL: it has parts that are no texts. */
static json_t *flatten_content(json_t *content)
{
	const json_t *part;
	struct buf text;
	json_t *flat;
	size_t i;

	if (!json_is_array(content))
		return json_incref(content);
	buf_init(&text, SIZE_MAX);
	json_array_foreach(content, i, part) {
		const char *of = json_is_string(part) ? json_string_value(part) : text_member(part, "text");

		if (!of) {
			buf_done(&text);
			return NULL;
		}
		buf_adds(&text, of);
	}
	flat = json_stringn_nocheck(text.data ? text.data : "", text.len);
	buf_done(&text);
	return flat;
}

/* Adds a message under the names that templates know; its other members are kept. */
static void add_message(struct conversation *c, const json_t *message)
{
	const char *given = text_member(message, "role"), *role;
	json_t *content = json_object_get(message, "content"), *copy, *flat;

	if (!json_is_object(message)) {
		refuse_record(c, "a message that is not an object", NULL);
		return;
	}
	if (!given && text_member(message, "from")) {
		given = text_member(message, "from");
		content = json_object_get(message, "value");
	}
	role = standard_role(given);
	if (!role)
		refuse_record(c, given ? "unknown role " : "a message without a role", given);
	if (!content && !json_object_get(message, "tool_calls"))
		refuse_record(c, "a message without content", NULL);
	flat = flatten_content(content);
	if (content && (!flat || !(json_is_string(flat) || json_is_null(flat))))
		refuse_record(c, "a message with content that is not text", NULL);
	copy = json_copy((json_t *)message);
	json_object_del(copy, "from");
	json_object_del(copy, "value");
	json_object_set_new(copy, "role", json_string(role ? role : ""));
	json_object_set_new(copy, "content", flat ? flat : json_null());
	json_array_append_new(c->messages, copy);
}

static void add_text_message(struct conversation *c, const char *role, const char *content)
{
	json_array_append_new(c->messages, json_pack("{s:s, s:s}", "role", role, "content", content));
}

static void add_messages(struct conversation *c, const json_t *list)
{
	const json_t *message;
	size_t i;

	if (!json_is_array(list))
		refuse_record(c, "messages that are not a list", NULL);
	json_array_foreach(list, i, message)
		add_message(c, message);
}

static void read_instruction(struct conversation *c, const json_t *record)
{
	const char *instruction = text_member(record, "instruction"), *input = text_member(record, "input");
	const char *output = text_member(record, "output");
	struct buf text;

	if (!instruction || !output) {
		refuse_record(c, "instruction or output that is not a text", NULL);
		return;
	}
	buf_init(&text, SIZE_MAX);
	buf_adds(&text, instruction);
	if (input && *input)
		buf_addf(&text, "\n\n%s", input);
	add_text_message(c, "user", text.data ? text.data : "");
	add_text_message(c, "assistant", output);
	buf_done(&text);
}

static void read_completion(struct conversation *c, const json_t *record)
{
	const json_t *prompt = json_object_get(record, "prompt"), *completion = json_object_get(record, "completion");

	if (json_is_string(prompt) && json_is_string(completion)) {
		c->prompt = json_string_value(prompt);
		c->completion = json_string_value(completion);
		json_decref(c->messages);
		c->messages = NULL;
		return;
	}
	add_messages(c, prompt);
	c->n_prompt = json_array_size(c->messages);
	add_messages(c, completion);
}

void conversation_read(struct conversation *ret, enum conversation_form form, const json_t *record)
{
	json_t *tools = json_object_get(record, "tools");
	const char *system = text_member(record, "system");

	*ret = (struct conversation){ .messages = json_array() };
	ret->tools = json_is_string(tools) ? json_loads(json_string_value(tools), 0, NULL) : json_incref(tools);
	if (!json_array_size(ret->tools)) { /* an empty list means no tools */
		json_decref(ret->tools);
		ret->tools = NULL;
	}
	if (conversation_form_of(record) != form)
		refuse_record(ret, "no ", forms[form].has);
	else if (system && *system && form != CONVERSATION_COMPLETION)
		add_text_message(ret, "system", system);
	if (ret->why[0])
		return;
	if (form == CONVERSATION_INSTRUCTION)
		read_instruction(ret, record);
	else if (form == CONVERSATION_COMPLETION)
		read_completion(ret, record);
	else
		add_messages(ret, json_object_get(record, forms[form].has));
	if (ret->messages && !json_array_size(ret->messages))
		refuse_record(ret, "an empty conversation", NULL);
}

void conversation_done(struct conversation *c)
{
	json_decref(c->messages);
	json_decref(c->tools);
}
