/* SPDX-License-Identifier: Apache-2.0 */
/* call.c: errors and query arguments of a call. Knows no particular route. */
#include "tracker/base/text.h"
#include "web/api/call.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "web/api/api.h"

static const struct {
	const char *name;
	int status;
	const char *mlflow;
} call_errors[] = {
#define API_ERROR(name, status, mlflow) { #name, status, #mlflow },
#include "schema/api/errors.def"
#undef API_ERROR
};

struct call_cleanup {
	struct call_cleanup *next;
	void (*fn)(void *arg);
	void *arg;
};

int call_error_status(enum call_error code)
{
	return call_errors[code].status;
}

const char *call_error_name(enum call_error code)
{
	return call_errors[code].name;
}

const char *call_method_name(enum call_method method)
{
	static const char *const names[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };

	return names[method];
}

static void write_v1_error(struct call *c, enum call_error code, const char *field, const char *text)
{
	struct js j = { .out = &c->out };

	js_open(&j, '{');
	js_key_open(&j, "error", '{');
	js_key_str(&j, "code", call_error_name(code));
	js_key_str(&j, "message", text);
	js_key_str(&j, "field", field);
	js_close(&j, '}');
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
}

/* MLflow's clients retry 503 only, so a full disk is reported as 503. */
static void write_mlflow_error(struct call *c, enum call_error code, const char *text)
{
	struct js j = { .out = &c->out };

	if (code == CALL_disk_full) {
		c->status = call_error_status(CALL_busy);
		c->reply.retry_after_s = c->reply.retry_after_s ? c->reply.retry_after_s : 10;
	}
	js_open(&j, '{');
	js_key_str(&j, "error_code", call_errors[code].mlflow);
	js_key_str(&j, "message", text);
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
}

enum call_next call_fail(struct call *c, enum call_error code, const char *field, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (c->stream.release)
		c->stream.release(c->stream.state);
	c->stream = (struct call_stream){ 0 };
	c->fixed.bytes = NULL;
	c->file.set = false;
	c->reply = (struct call_reply){ .page = c->reply.page, .retry_after_s = c->reply.retry_after_s };
	c->status = call_error_status(code);
	c->type = "application/json";
	buf_reset(&c->out);
	if (c->dialect == DIALECT_MLFLOW)
		write_mlflow_error(c, code, text);
	else
		write_v1_error(c, code, field, text);
	return CALL_DONE;
}

enum call_next call_fail_err(struct call *c, const char *field, const struct err *err)
{
	static const struct {
		int err;
		enum call_error code;
	} map[] = {
		{ ERR_USAGE, CALL_bad_value }, { ERR_NOENT, CALL_not_found },
		{ ERR_EXISTS, CALL_conflict }, { ERR_NOMEM, CALL_busy },
		{ ERR_NOSPC, CALL_disk_full }, { ERR_CORRUPT, CALL_bad_value },
		{ ERR_LIMIT, CALL_bad_value }, { ERR_UNSUPPORTED, CALL_not_implemented },
		{ ERR_BUSY, CALL_busy },       { ERR_CANCELED, CALL_busy },
		{ ERR_GONE, CALL_gone },       { ERR_IO, CALL_busy }, /* a failing disk may recover */
		{ ERR_DAMAGED, CALL_damaged }, { ERR_DENIED, CALL_forbidden },
	};
	enum call_error code = CALL_internal;
	size_t i;

	for (i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (map[i].err == err->code)
			code = map[i].code;
	if (code == CALL_busy)
		c->reply.retry_after_s = err->code == ERR_IO ? 10 : 1;
	if (!field && err->field[0])
		field = err->field;
	return call_fail(c, code, field, "%s", err->text);
}

int call_stream(struct call *c, const struct call_stream *s, struct err *err)
{
	int next = s->fill(s->state, &c->out, false, err);

	if (next >= 0 && buf_failed(&c->out))
		next = err_nomem(err, NULL);
	if (next < 0 || next == STREAM_END)
		s->release(s->state);
	else
		c->stream = *s;
	return next < 0 ? next : 0;
}

static void note_asked(struct call *c, const char *name)
{
	for (size_t i = 0; i < c->asked_count; i++)
		if (!strcmp(c->asked[i], name))
			return;
	if (c->asked_count < sizeof(c->asked) / sizeof(c->asked[0]))
		c->asked[c->asked_count++] = name;
}

const char *call_arg(struct call *c, const char *name)
{
	const char *found = NULL;
	size_t i;

	note_asked(c, name);
	for (i = 0; i < c->address.arg_count; i++)
		if (!c->address.args[i].used && !strcmp(c->address.args[i].name, name)) {
			/* a second one stays unused; call_args_done reports it */
			c->address.args[i].used = true;
			found = c->address.args[i].value;
			break;
		}
	return found;
}

size_t call_arg_all(struct call *c, const char *name, const char *const **ret)
{
	const char **all = arena_array(c->arena, c->address.arg_count + 1, sizeof(*all));
	size_t i, n = 0;

	note_asked(c, name);
	*ret = all;
	for (i = 0; i < c->address.arg_count; i++)
		if (!strcmp(c->address.args[i].name, name)) {
			c->address.args[i].used = true;
			all[n++] = c->address.args[i].value;
		}
	return n;
}

bool call_arg_int(struct call *c, const char *name, int64_t *value, int64_t min, int64_t max)
{
	const char *text = call_arg(c, name);
	char *end;
	int64_t v;

	if (!text)
		return true;
	errno = 0;
	v = strtoll(text, &end, 10);
	if (errno || end == text || *end || v < min || v > max) {
		call_fail(c, CALL_bad_value, name, "%s: expected an integer from %" PRId64 " to %" PRId64, name, min,
			  max);
		return false;
	}
	*value = v;
	return true;
}

bool call_arg_double(struct call *c, const char *name, double *value, bool *ret_given)
{
	const char *text = call_arg(c, name);
	char *end;
	double v;

	if (!text)
		return true;
	v = strtod(text, &end);
	if (end == text || *end || !isfinite(v)) {
		call_fail(c, CALL_bad_value, name, "%s: expected a number", name);
		return false;
	}
	*value = v;
	*ret_given = true;
	return true;
}

bool call_arg_word(struct call *c, const char *name, const char *const *words, int *value)
{
	const char *text = call_arg(c, name);
	struct buf list;
	int i;

	if (!text)
		return true;
	for (i = 0; words[i]; i++)
		if (!strcmp(words[i], text)) {
			*value = i;
			return true;
		}
	buf_init(&list, 4096);
	for (i = 0; words[i]; i++)
		buf_addf(&list, "%s%s", i ? ", " : "", words[i]);
	call_fail(c, CALL_bad_value, name, "%s: expected one of %s", name, list.data ? list.data : "");
	buf_done(&list);
	return false;
}

static void fail_unknown_argument(struct call *c, const char *name)
{
	struct buf known;

	buf_init(&known, 4096);
	for (size_t i = 0; i < c->asked_count; i++)
		buf_addf(&known, "%s%s", i ? ", " : "", c->asked[i]);
	call_fail(c, CALL_unknown_argument, name, "%s: no such argument: expected %s", name,
		  known.len ? known.data : "none");
	buf_done(&known);
}

bool call_args_done(struct call *c)
{
	size_t i, k;

	for (i = 0; i < c->address.arg_count; i++) {
		if (c->address.args[i].used)
			continue;
		for (k = 0; k < i; k++)
			if (!strcmp(c->address.args[k].name, c->address.args[i].name)) {
				call_fail(c, CALL_bad_value, c->address.args[i].name, "%s: given twice",
					  c->address.args[i].name);
				return false;
			}
		fail_unknown_argument(c, c->address.args[i].name);
		return false;
	}
	return true;
}

bool call_is_run_id(const char *text)
{
	return text_is_hex(text, 32, 32);
}

const char *call_whole_run_id(struct call *c, const char *field, const char *prefix)
{
	struct err err = ERR_INIT;
	char *id;

	if (call_is_run_id(prefix))
		return prefix;
	id = arena_alloc(c->arena, 33);
	if (!query_run_id(c->api->store, prefix, id, &err))
		return id;
	call_fail_err(c, field, &err);
	return NULL;
}

const char *call_run_id(struct call *c, size_t var)
{
	const char *given = c->address.vars[var];

	if (text_is_hex(given, RUN_PREFIX_MIN, 32))
		return call_whole_run_id(c, "run", given);
	call_fail(c, CALL_not_found, "run", "no such run: a run id is 32 lower-case hex digits");
	return NULL;
}

void call_header(struct call *c, const char *name, const char *value)
{
	if (c->reply.more_count < CALL_HEADERS_MAX && value)
		c->reply.more[c->reply.more_count++] = (struct call_header){ name, value };
}

void call_defer(struct call *c, void (*fn)(void *arg), void *arg)
{
	struct call_cleanup *cleanup = arena_alloc(c->arena, sizeof(*cleanup));

	*cleanup = (struct call_cleanup){ .next = c->cleanups, .fn = fn, .arg = arg };
	c->cleanups = cleanup;
}

void call_finish(struct call *c)
{
	struct call_cleanup *cleanup;

	while ((cleanup = c->cleanups)) {
		c->cleanups = cleanup->next;
		cleanup->fn(cleanup->arg);
	}
}

void call_wake(struct call *c)
{
	c->host->wake(c);
}
