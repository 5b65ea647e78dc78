/* SPDX-License-Identifier: Apache-2.0 */
/* chat.c: renders a conversation, finds its answers, and marks their tokens. */
#include "trainer/data/chat/chat.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tracker/base/file.h"
#include "tracker/base/sha256.h"
#include "tracker/mem/mem.h"
#include "trainer/data/chat/chat_template.h"

#define TEMPLATE_BYTES_MAX ((size_t)1 << 20)
#define CONFIG_BYTES_MAX ((size_t)64 << 20)
#define SPECIAL_BYTES_MAX 64 /* of a token that ends a turn */

static const char chatml[] =
	"{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
	"{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

struct chat {
	struct chat_opts o;
	struct tokenizer *tokenizer;
	struct token_encoder *encoder;
	struct chat_template *template; /* NULL: the folder has none */
	bool borrows;			/* tokenizer and template */
	bool marks;			/* it has {% generation %} */
	char hash[65];			/* of the template */
	char *text;			/* … */
	json_t *variables;		/* special tokens, and those of the current rendering */
	struct chat_rendering whole, part;
	struct buf tokens, ends;
};

int chat_parse_date(double *ret, const char *text, struct err *err)
{
	struct tm tm = { .tm_mday = 1 };
	const char *end = strptime(text, "%Y-%m-%d", &tm);

	if (!end || *end)
		return err_set(err, ERR_USAGE, "--template-date %.60s: expected a date like 2026-01-31", text);
	*ret = (double)timegm(&tm);
	return 0;
}

static int load_text(struct buf *to, const char *path, struct err *err)
{
	return access(path, F_OK) ? ERR_NOENT : file_load(to, path, err);
}

/* Loads a JSON file of the folder; *ret is NULL without it. */
static int load_folder_json(json_t **ret, const struct chat *c, const char *file, struct err *err)
{
	char path[4200];
	struct buf text;
	int rc;

	*ret = NULL;
	buf_init(&text, CONFIG_BYTES_MAX);
	rc = file_join(path, sizeof(path), c->o.tokenizer, file) ? load_text(&text, path, err) : ERR_NOENT;
	if (!rc) {
		/* there are numbers up to 1e30 */
		*ret = json_loadb(text.data ? text.data : "", text.len, JSON_DECODE_INT_AS_REAL, NULL);
		if (!*ret)
			rc = err_set(err, ERR_USAGE, "%.300s: is not JSON", path);
	}
	buf_done(&text);
	return rc == ERR_NOENT ? 0 : rc;
}

/* Keeps the special tokens as variables of the template, by name. */
static void read_special_tokens(struct chat *c, const json_t *config)
{
	static const char *const names[] = { "bos_token", "eos_token", "unk_token", "sep_token",
					     "pad_token", "cls_token", "mask_token" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		json_t *v = json_object_get(config, names[i]);

		v = json_is_object(v) ? json_object_get(v, "content") : v;
		if (json_is_string(v))
			json_object_set(c->variables, names[i], v);
	}
}

static const char *default_template(const json_t *config)
{
	const json_t *v = json_object_get(config, "chat_template"), *item;
	size_t i;

	json_array_foreach(v, i, item) {
		const char *name = json_string_value(json_object_get(item, "name"));

		if (name && !strcmp(name, "default"))
			return json_string_value(json_object_get(item, "template"));
	}
	return json_string_value(v);
}

static int set_template(struct chat *c, const char *name, const char *text, size_t n, struct err *err)
{
	sha256_hex(text, n, c->hash);
	c->text = mem_strndup(text, n);
	c->marks = memmem(text, n, "endgeneration", strlen("endgeneration")) != NULL;
	return chat_template_new(&c->template, name, text, n, err);
}

/* Reads tokenizer_config.json and the template: --chat-template, else chat_template.jinja, else in
 * tokenizer_config.json. */
static int read_folder(struct chat *c, struct err *err)
{
	char path[4200];
	const char *name = c->o.template_name, *in_config;
	json_t *config;
	struct buf text;
	int rc = load_folder_json(&config, c, "tokenizer_config.json", err);

	read_special_tokens(c, config);
	in_config = default_template(config);
	buf_init(&text, TEMPLATE_BYTES_MAX);
	if (!rc && name && !strcmp(name, "chatml")) {
		rc = set_template(c, name, chatml, sizeof(chatml) - 1, err);
	} else if (!rc) {
		if (!name && file_join(path, sizeof(path), c->o.tokenizer, "chat_template.jinja"))
			rc = load_text(&text, path, err);
		else if (name)
			rc = file_load(&text, name, err);
		if (!rc)
			rc = set_template(c, name ? name : path, text.data ? text.data : "", text.len, err);
		else if (rc == ERR_NOENT && !name)
			rc = in_config ? set_template(c, "chat_template", in_config, strlen(in_config), err) : 0;
	}
	json_decref(config);
	buf_done(&text);
	return rc;
}

static struct chat *allocate_chat(const struct chat_opts *o)
{
	struct chat *c = mem_zalloc(sizeof(*c));

	c->o = *o;
	buf_init(&c->whole.text, SIZE_MAX);
	buf_init(&c->whole.spans, SIZE_MAX);
	buf_init(&c->part.text, SIZE_MAX);
	buf_init(&c->part.spans, SIZE_MAX);
	buf_init(&c->tokens, SIZE_MAX);
	buf_init(&c->ends, SIZE_MAX);
	return c;
}

int chat_open(struct chat **ret, const struct chat_opts *o, struct err *err)
{
	struct chat *c = allocate_chat(o);
	int rc = tokenizer_open(&c->tokenizer, o->tokenizer, err);

	c->variables = json_pack("{s:n, s:n}", "tools", "documents");
	if (!rc)
		c->encoder = token_encoder_new(c->tokenizer);
	if (!rc)
		rc = read_folder(c, err);
	if (rc)
		chat_close(c);
	else
		*ret = c;
	return rc;
}

struct chat *chat_another(const struct chat *c)
{
	struct chat *a = allocate_chat(&c->o);

	a->tokenizer = c->tokenizer;
	a->template = c->template;
	a->borrows = true;
	a->marks = c->marks;
	a->variables = json_deep_copy(c->variables);
	a->encoder = token_encoder_new(a->tokenizer);
	return a;
}

void chat_close(struct chat *c)
{
	if (!c)
		return;
	token_encoder_free(c->encoder);
	if (!c->borrows) {
		tokenizer_close(c->tokenizer);
		chat_template_free(c->template);
	}
	free(c->text);
	json_decref(c->variables);
	buf_done(&c->whole.text);
	buf_done(&c->whole.spans);
	buf_done(&c->part.text);
	buf_done(&c->part.spans);
	buf_done(&c->tokens);
	buf_done(&c->ends);
	free(c);
}

const struct tokenizer *chat_tokenizer(const struct chat *c)
{
	return c->tokenizer;
}

const char *chat_template_text(const struct chat *c)
{
	return c->text;
}

void chat_identify(const struct chat *c, struct buf *to)
{
	char *special = json_dumps(c->variables, JSON_SORT_KEYS | JSON_COMPACT);

	buf_addf(to, "chat 1 %s %s %d %d %.0f %s", tokenizer_name(c->tokenizer), c->hash, (int)c->o.train,
		 c->o.allow_special, c->o.date, special ? special : "");
	free(special);
}

/* ---- answers ---- */

static int need_template(const struct chat *c, struct err *err)
{
	return c->template ? 0
			   : err_set(err, ERR_USAGE,
				     "%.300s: has no chat template (chat_template.jinja or tokenizer_config.json): use "
				     "--chat-template chatml, or a file",
				     c->o.tokenizer);
}

static int render_messages(struct chat *c, json_t *messages, bool prompt, struct chat_rendering *to, struct err *err)
{
	json_object_set(c->variables, "messages", messages);
	json_object_set_new(c->variables, "add_generation_prompt", json_boolean(prompt));
	return chat_template_render(c->template, c->variables, c->o.date, to, err);
}

/* Returns the length of the messages' text if it is a prefix of the whole, or -1. */
static int64_t measure_prefix(struct chat *c, json_t *messages, bool prompt)
{
	const struct buf *part = &c->part.text, *whole = &c->whole.text;
	struct err why = ERR_INIT;

	if (render_messages(c, messages, prompt, &c->part, &why) || part->len > whole->len ||
	    (part->len && memcmp(part->data, whole->data, part->len)))
		return -1;
	return (int64_t)part->len;
}

/* Ends a span with the special token that ends the turn, if only white space follows it. */
static size_t trim_answer(const struct chat *c, const struct chat_span *s)
{
	const char *text = c->whole.text.data;
	size_t end = s->end;

	while (end > s->begin && isspace((unsigned char)text[end - 1]))
		end--;
	for (size_t n = 1; n <= SPECIAL_BYTES_MAX && n <= end - s->begin; n++)
		if (tokenizer_special(c->tokenizer, text + end - n, n) == n)
			return end;
	return s->end;
}

/* Returns true if the answer of message i of n is trained. last: the last answer. */
static bool wants_answer(const struct chat *c, const struct conversation *v, size_t i, size_t last)
{
	const json_t *m = json_array_get(v->messages, i);
	const enum chat_train train = c->o.train;

	if (!conversation_is_answer(m) || !conversation_is_weighted(m))
		return false;
	return train == CHAT_TRAIN_LAST ? i == last : train == CHAT_TRAIN_ASSISTANT || i >= v->n_prompt;
}

/* Finds the answers by the prefix rule. */
static void find_answers(struct chat *c, const struct conversation *v, size_t last, struct chat_sample *ret)
{
	json_t *before = json_array();
	const size_t n = json_array_size(v->messages);

	buf_reset(&c->whole.spans);
	for (size_t i = 0; i < n; i++) {
		const bool wanted = wants_answer(c, v, i, last);
		const int64_t begin = wanted ? measure_prefix(c, before, true) : -1;
		int64_t end = (int64_t)c->whole.text.len;
		struct chat_span span;

		json_array_append(before, json_array_get(v->messages, i));
		if (begin >= 0 && i + 1 < n)
			end = measure_prefix(c, before, false);
		span = (struct chat_span){ (size_t)begin, (size_t)end };
		if (begin >= 0 && end >= begin) {
			span.end = trim_answer(c, &span);
			buf_add(&c->whole.spans, &span, sizeof(span));
		}
		ret->missed += wanted && (begin < 0 || end < begin) && i != last;
	}
	json_decref(before);
}

/* Keeps the marked answers that are trained; answers and messages of the assistant correspond one by one. */
static void choose_answers(struct chat *c, const struct conversation *v, size_t last, struct chat_sample *ret)
{
	struct chat_span *span = (struct chat_span *)(void *)c->whole.spans.data;
	const size_t n = c->whole.spans.len / sizeof(*span);
	size_t k = 0, kept = 0, plain = 0;

	for (size_t i = 0; i < json_array_size(v->messages); i++) {
		const bool answer = conversation_is_answer(json_array_get(v->messages, i)),
			   wanted = wants_answer(c, v, i, last);

		plain += answer && wanted;
		if (answer && k < n && wanted)
			span[kept++] = span[k];
		k += answer;
	}
	if (k == n)
		c->whole.spans.len = kept * sizeof(*span);
	else if (plain != k)
		snprintf(ret->why, sizeof(ret->why), "its generation marks are not one for each answer");
}

/* Renders a conversation, with the trained spans of its text. */
static int render_conversation(struct chat *c, const struct conversation *v, struct chat_sample *ret, struct err *err)
{
	const struct chat_span all = { 0, SIZE_MAX };
	struct err why = ERR_INIT;
	size_t last = 0;
	int rc = need_template(c, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < json_array_size(v->messages); i++)
		last = conversation_is_answer(json_array_get(v->messages, i)) ? i : last;
	json_object_set_new(c->variables, "tools", v->tools ? json_incref(v->tools) : json_null());
	if (render_messages(c, v->messages, false, &c->whole, &why)) {
		snprintf(ret->why, sizeof(ret->why), "%.150s", why.text);
	} else if (c->o.train == CHAT_TRAIN_ALL) {
		buf_reset(&c->whole.spans);
		buf_add(&c->whole.spans, &all, sizeof(all));
	} else if (c->marks) {
		choose_answers(c, v, last, ret);
	} else {
		find_answers(c, v, last, ret);
	}
	return 0;
}

/* Joins prompt and completion, and adds the token that ends a text. */
static void render_completion(struct chat *c, const struct conversation *v)
{
	const char *eos = json_string_value(json_object_get(c->variables, "eos_token"));
	struct chat_span span = { c->o.train == CHAT_TRAIN_ALL ? 0 : strlen(v->prompt), 0 };

	buf_reset(&c->whole.text);
	buf_reset(&c->whole.spans);
	buf_adds(&c->whole.text, v->prompt);
	buf_adds(&c->whole.text, v->completion);
	buf_adds(&c->whole.text, eos ? eos : "");
	span.end = c->whole.text.len;
	buf_add(&c->whole.spans, &span, sizeof(span));
}

/* ---- tokens ---- */

static bool spells_special(const struct chat *c, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (tokenizer_special(c->tokenizer, text + i, n - i))
			return true;
	return false;
}

/* Returns true if a text in the value spells a special token. */
static bool has_special_text(const struct chat *c, const json_t *v)
{
	const char *key;
	json_t *item;
	size_t i;
	bool found = json_is_string(v) && spells_special(c, json_string_value(v), json_string_length(v));

	json_array_foreach(v, i, item)
		found = found || has_special_text(c, item);
	json_object_foreach((json_t *)v, key, item)
		found = found || spells_special(c, key, strlen(key)) || has_special_text(c, item);
	return found;
}

static bool has_special_content(const struct chat *c, const struct conversation *v)
{
	if (c->o.allow_special)
		return false;
	if (!v->messages)
		return spells_special(c, v->prompt, strlen(v->prompt)) ||
		       spells_special(c, v->completion, strlen(v->completion));
	return has_special_text(c, v->messages) || has_special_text(c, v->tools);
}

/* Marks the tokens that overlap a span. A token that ends where the one before does is a part of the same character. */
static void mark_tokens(const struct chat *c, struct chat_sample *ret)
{
	const int32_t *token = (const int32_t *)(const void *)c->tokens.data;
	const uint32_t *end = (const uint32_t *)(const void *)c->ends.data;
	const struct chat_span *span = (const struct chat_span *)(const void *)c->whole.spans.data;
	const size_t n = c->tokens.len / sizeof(*token), n_spans = c->whole.spans.len / sizeof(*span);
	bool trained = false;

	for (size_t i = 0, s = 0; i < n; i++) {
		const size_t begin = i ? end[i - 1] : 0;
		int32_t marked;

		while (s < n_spans && span[s].end <= begin)
			s++;
		if (end[i] > begin)
			trained = s < n_spans && end[i] > span[s].begin;
		marked = CHAT_TOKEN(token[i], trained);
		buf_add(&ret->marked, &marked, sizeof(marked));
		ret->trained += trained;
	}
}

/* Encodes the rendered text; texts without a template begin as the tokenizer begins a text. */
static int encode_rendering(struct chat *c, bool plain, struct chat_sample *ret, struct err *err)
{
	const int32_t *before;
	const int n = plain ? tokenizer_before(c->tokenizer, &before) : 0;
	const struct token_request request = { .text = c->whole.text.data ? c->whole.text.data : "",
					       .n = c->whole.text.len,
					       .tokens = &c->tokens,
					       .ends = &c->ends };
	int rc;

	for (int i = 0; i < n; i++) {
		const int32_t marked = CHAT_TOKEN(before[i], c->o.train == CHAT_TRAIN_ALL);

		buf_add(&ret->marked, &marked, sizeof(marked));
	}
	buf_reset(&c->tokens);
	buf_reset(&c->ends);
	rc = token_encode(c->encoder, &request, err);
	if (!rc)
		mark_tokens(c, ret);
	if (!rc && !ret->trained)
		snprintf(ret->why, sizeof(ret->why), "no token is trained");
	return rc;
}

int chat_encode(struct chat *c, enum conversation_form form, const json_t *record, struct chat_sample *ret,
		struct err *err)
{
	struct conversation v;
	int rc = 0;

	buf_reset(&ret->marked);
	ret->trained = ret->missed = 0;
	if (c->o.train == CHAT_TRAIN_FORM)
		c->o.train = form == CONVERSATION_COMPLETION ? CHAT_TRAIN_COMPLETION : CHAT_TRAIN_ASSISTANT;
	conversation_read(&v, form, record);
	snprintf(ret->why, sizeof(ret->why), "%s", v.why);
	if (!v.why[0] && has_special_content(c, &v))
		snprintf(ret->why, sizeof(ret->why), "its content spells a special token");
	if (!ret->why[0] && v.messages)
		rc = render_conversation(c, &v, ret, err);
	else if (!ret->why[0])
		render_completion(c, &v);
	if (!rc && !ret->why[0])
		rc = encode_rendering(c, !v.messages, ret, err);
	conversation_done(&v);
	return rc;
}

/* ---- prompts ---- */

int chat_encode_prompt(struct chat *c, json_t *messages, struct buf *tokens, struct err *err)
{
	const struct buf *text = &c->whole.text;
	int rc = need_template(c, err);

	if (!rc && !c->o.allow_special && has_special_text(c, messages))
		rc = err_set(err, ERR_USAGE,
			     "the message spells a special token of %.200s: omit it, or add --allow-special",
			     c->o.tokenizer);
	if (!rc)
		rc = render_messages(c, messages, true, &c->whole, err);
	return rc ? rc
		  : token_encode(c->encoder,
				 &(struct token_request){
					 .text = text->data ? text->data : "", .n = text->len, .tokens = tokens },
				 err);
}

/* Returns the one token that a text of n bytes is, or -1. */
static int32_t single_token(struct chat *c, const char *text, size_t n)
{
	struct err ignored = ERR_INIT;
	int32_t token;

	buf_reset(&c->tokens);
	if (token_encode(c->encoder, &(struct token_request){ .text = text, .n = n, .tokens = &c->tokens }, &ignored) ||
	    c->tokens.len != sizeof(token))
		return -1;
	memcpy(&token, c->tokens.data, sizeof(token));
	return token;
}

int32_t chat_special_token(struct chat *c, const char *name)
{
	const char *text = json_string_value(json_object_get(c->variables, name));

	return text ? single_token(c, text, strlen(text)) : -1;
}

/* Returns the first special token after the last occurrence of an answer in the rendered text, or -1. */
static int32_t find_end_after(struct chat *c, const char *answer)
{
	const char *text = c->whole.text.data, *end = text + c->whole.text.len, *at = NULL;

	for (const char *p = text; p < end && (p = memmem(p, (size_t)(end - p), answer, strlen(answer))); p++)
		at = p;
	for (; at && at < end; at++) {
		const size_t n = tokenizer_special(c->tokenizer, at, (size_t)(end - at));

		if (n)
			return single_token(c, at, n);
	}
	return -1;
}

struct chat_ends chat_find_ends(struct chat *c)
{
	static const char answer[] = "Answer";
	json_t *messages = json_pack("[{s:s, s:s}, {s:s, s:s}]", "role", "user", "content", "Question", "role",
				     "assistant", "content", answer);
	struct err ignored = ERR_INIT;
	struct chat_ends ends = { -1, chat_special_token(c, "eos_token") };

	if (c->template && !render_messages(c, messages, false, &c->whole, &ignored))
		ends.of_template = find_end_after(c, answer);
	json_decref(messages);
	return ends;
}

/* Returns true if eos_token_id of a file in the folder, a number or a list, has the token. *ret_known: there is such a
 * key. */
static bool is_end_in(const struct chat *c, const char *file, int32_t token, bool *ret_known)
{
	struct err damaged = ERR_INIT;
	json_t *root, *ends, *v;
	bool found;
	size_t i;

	load_folder_json(&root, c, file, &damaged);
	ends = json_object_get(root, "eos_token_id");
	found = json_is_number(ends) && json_number_value(ends) == token;
	*ret_known = ends && !json_is_null(ends);
	json_array_foreach(ends, i, v)
		found |= json_is_number(v) && json_number_value(v) == token;
	json_decref(root);
	return found;
}

void chat_compare_ends(struct chat *c, char ret[CHAT_NOTICE_BYTES])
{
	const struct chat_ends ends = chat_find_ends(c);
	const char *file = "generation_config.json", *text;
	bool known, found;
	size_t n;

	ret[0] = '\0';
	if (ends.of_template < 0)
		return;
	found = is_end_in(c, file, ends.of_template, &known);
	if (!known) {
		file = "config.json";
		found = is_end_in(c, file, ends.of_template, &known);
	}
	if (found || (!known && ends.of_template == ends.of_tokenizer))
		return;
	text = tokenizer_bytes(c->tokenizer, ends.of_template, false, &n);
	snprintf(ret, CHAT_NOTICE_BYTES,
		 "%.200s: the template ends an answer with %.*s, token %d, which is not an end in %s: other programs "
		 "will not stop there: add it to eos_token_id of generation_config.json",
		 c->o.tokenizer, n < 60 ? (int)n : 60, text, ends.of_template, known ? file : "its configuration");
}
