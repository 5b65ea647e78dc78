/* SPDX-License-Identifier: Apache-2.0 */
/* print.c: `dptrain config`: every value with its origin. */
#include <string.h>

#include "tracker/base/json_print.h"
#include "tracker/base/text.h"
#include "trainer/config/flags.h"

#define VALUE_BYTES_MAX (FLAG_TEXT_MAX + 1)

static bool is_numeric_value(const struct flag *f, const char *value)
{
	const char *word = flag_word(f);

	return f->kind == KIND_REAL || (f->kind == KIND_INT && !(word && value && !strcmp(value, word)));
}

void config_each(const struct run_config *cfg, void (*fn)(void *user, const struct config_item *item), void *user)
{
	struct buf value;

	buf_init(&value, VALUE_BYTES_MAX);
	for (int i = 0; i < FLAG_COUNT; i++) {
		const struct flag *f = flag_get((enum flag_id)i);

		if (!flag_known_to((enum flag_id)i, cfg->command))
			continue;
		buf_reset(&value);
		flag_text(cfg, (enum flag_id)i, &value);
		if (value.len)
			text_hide_credentials(value.data);
		fn(user, &(struct config_item){ .name = f->name,
						.value = value.len ? value.data : "",
						.origin = (enum config_origin)cfg->origin[i],
						.is_number = is_numeric_value(f, value.data),
						.traits = f->traits,
						.id = (enum flag_id)i });
	}
	buf_done(&value);
}

struct config_table {
	const struct run_config *cfg;
	struct buf *out;
	const char *group;
};

static void add_config_row(void *user, const struct config_item *item)
{
	struct config_table *t = user;
	const struct flag *f = flag_get(item->id);
	char label[300];
	size_t at;

	if (strcmp(t->group, f->group))
		buf_addf(t->out, "%s%s\n", *t->group ? "\n" : "", f->group);
	t->group = f->group;
	at = t->out->len;
	buf_addf(t->out, "  %-20s %-24s %s", item->name, *item->value ? item->value : "-",
		 config_origin_name(item->origin));
	if (item->origin == ORIGIN_ENVIRONMENT)
		buf_addf(t->out, " %s", flag_label(t->cfg, item->id, label, sizeof(label)));
	if (item->origin == ORIGIN_FILE)
		buf_addf(t->out, " %s", t->cfg->config);
	for (; at < t->out->len; at++) /* a value of a file must not move a terminal's cursor */
		if ((unsigned char)t->out->data[at] < ' ' || t->out->data[at] == 0x7f)
			t->out->data[at] = '?';
	buf_addc(t->out, '\n');
}

struct config_object {
	json_t *values, *origins;
	bool failed;
};

static void add_member(void *user, const struct config_item *item)
{
	struct config_object *o = user;
	json_t *v;

	if (!*item->value)
		v = json_null();
	else if (item->is_number)
		v = json_loads(item->value, JSON_DECODE_ANY, NULL);
	else if (flag_get(item->id)->kind == KIND_BOOL)
		v = json_boolean(!strcmp(item->value, "yes"));
	else
		v = json_string(item->value);
	if (json_object_set_new(o->values, item->name, v) ||
	    json_object_set_new(o->origins, item->name, json_string(config_origin_name(item->origin))))
		o->failed = true;
}

static void print_config_json(const struct run_config *cfg, int64_t parameters, struct buf *out)
{
	struct config_object o = { json_object(), json_object(), false };
	json_t *root;

	config_each(cfg, add_member, &o);
	root = json_pack("{s:s, s:i, s:o, s:o}", "command", config_command_name(cfg->command), "world", cfg->world,
			 "values", o.values, "origins", o.origins);
	if (root && parameters && json_object_set_new(root, "parameters", json_integer(parameters)))
		o.failed = true;
	out->failed |= o.failed;
	json_append(root, JSON_INDENT(1) | JSON_PRESERVE_ORDER, out);
}

void config_print(const struct run_config *cfg, const struct config_print_opts *o, struct buf *out)
{
	if (o->json) {
		print_config_json(cfg, o->parameters, out);
		return;
	}
	if (o->parameters)
		buf_addf(out, "%s: %lld parameters\n\n", cfg->model, (long long)o->parameters);
	config_each(cfg, add_config_row, &(struct config_table){ cfg, out, "" });
}
