/* SPDX-License-Identifier: Apache-2.0 */
/* api_audit.c: /audit: pages of the audit log, for administrators; and what it knows of other objects' authors. */
#include "web/store/audit/audit.h"

#include <inttypes.h>

#include "web/api/native/native_inside.h"

#define ENTRIES_DEFAULT 100 /* default limit */
#define ENTRIES_MAX 1000

static void write_audit_entry(struct js *j, const struct audit_entry *e)
{
	js_open(j, '{');
	js_key_int(j, "seq", e->seq);
	js_key_int(j, "time", e->time_ms);
	js_key_str(j, "via", e->via);
	js_key_str(j, "author", e->author);
	js_key_str(j, "action", e->action);
	js_key_str(j, "object", e->object);
	js_key_str(j, "id", e->id);
	js_key_str(j, "name", e->name);
	js_key_str(j, "experiment", e->experiment);
	js_key_str(j, "detail", e->detail);
	js_key_str(j, "hash", e->hash);
	js_close(j, '}');
}

static const char *read_text_arg(struct call *c, const char *name)
{
	const char *text = call_arg(c, name);

	return text ? text : "";
}

/* Reads the arguments. Returns false after failing the call. */
static bool read_audit_args(struct call *c, struct audit_select *s)
{
	static const char *const orders[] = { "desc", "asc", NULL };
	int64_t limit = ENTRIES_DEFAULT, token = 0;
	int order = 0;

	*s = (struct audit_select){ .author = read_text_arg(c, "author"),
				    .action = read_text_arg(c, "action"),
				    .object = read_text_arg(c, "object"),
				    .id = read_text_arg(c, "id"),
				    .experiment = read_text_arg(c, "experiment"),
				    .until_ms = INT64_MAX,
				    .before = INT64_MAX };
	if (!call_arg_int(c, "from", &s->from_ms, 0, INT64_MAX) ||
	    !call_arg_int(c, "until", &s->until_ms, 0, INT64_MAX) ||
	    !call_arg_int(c, "limit", &limit, 1, ENTRIES_MAX) || !call_arg_int(c, "page_token", &token, 1, INT64_MAX) ||
	    !call_arg_word(c, "order", orders, &order) || !call_args_done(c))
		return false;
	s->limit = (size_t)limit;
	s->oldest_first = order;
	if (token && order)
		s->after = token;
	else if (token)
		s->before = token;
	return true;
}

enum call_next on_audit_list(struct call *c)
{
	struct js j = { .out = &c->out };
	struct err err = ERR_INIT;
	struct audit_select sel;
	struct audit_list l;

	if (!read_audit_args(c, &sel))
		return CALL_DONE;
	if (audit_list(c->api->store, &sel, c->arena, &l, &err))
		return call_fail_err(c, NULL, &err);
	c->reply.cache = "no-store";
	js_open(&j, '{');
	js_key_open(&j, "entries", '[');
	for (size_t i = 0; i < l.count; i++)
		write_audit_entry(&j, &l.items[i]);
	js_close(&j, ']');
	js_key_str(&j, "next_page_token", l.more ? arena_printf(c->arena, "%" PRId64, l.items[l.count - 1].seq) : NULL);
	js_key_open(&j, "head", '{');
	js_key_int(&j, "seq", l.head.seq);
	js_key_str(&j, "hash", l.head.hash);
	js_close(&j, '}');
	return js_reply(c, &j);
}

bool audit_read_authors(struct call *c, const struct audit_objects *o, struct audit_authors **ret)
{
	struct err err = ERR_INIT;

	*ret = c->client.share ? NULL : arena_array(c->arena, o->count + 1, sizeof(**ret));
	if (*ret && audit_authors(c->api->store, o, c->arena, *ret, &err))
		return call_fail_err(c, NULL, &err), false;
	return true;
}

void audit_write_authors(struct js *j, const struct audit_authors *at)
{
	if (!at)
		return;
	js_key_str(j, "created_by", at->created_by);
	js_key_str(j, "changed_by", at->changed_by);
}
