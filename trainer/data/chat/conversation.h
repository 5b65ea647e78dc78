/* SPDX-License-Identifier: Apache-2.0 */
/* conversation.h: a record of chat data as messages, or as a prompt with its completion. Knows no templates and no
 * tokens. */
#ifndef DPT_DATA_CONVERSATION_H
#define DPT_DATA_CONVERSATION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum conversation_form {
	CONVERSATION_MESSAGES,
	CONVERSATION_TURNS, /* ShareGPT's */
	CONVERSATION_INSTRUCTION,
	CONVERSATION_COMPLETION,
	CONVERSATION_FORMS
};

/* Returns the form that a record has by its members, or CONVERSATION_FORMS. */
enum conversation_form conversation_form_of(const json_t *record);

/* Returns true for the members of a record that a form may have. */
bool conversation_takes(const char *name);

/* Says how members become messages: "messages (role, content)". */
const char *conversation_mapping(enum conversation_form form);

#define CONVERSATION_WHY_BYTES 160

struct conversation {
	json_t *messages; /* objects with role and content, as templates expect them; NULL: prompt and completion are
			     texts */
	json_t *tools;	  /* a list; NULL: none */
	size_t n_prompt;  /* messages that belong to the prompt of a completion */
	const char *prompt, *completion;  /* of the record */
	char why[CONVERSATION_WHY_BYTES]; /* set if the record cannot be used */
};

/* Reads a record; done frees what it made. */
void conversation_read(struct conversation *ret, enum conversation_form form, const json_t *record);
void conversation_done(struct conversation *c);

bool conversation_is_answer(const json_t *message);   /* by the assistant */
bool conversation_is_weighted(const json_t *message); /* its weight, if it has one, is not 0 */

#endif
