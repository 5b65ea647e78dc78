/* spoken.c: /runs/{run}/console, code and alerts: what a run told besides numbers and settings. */
#include "web/store/read/spoken.h"

#include <limits.h>

#include "web/api/api.h"
#include "web/api/handlers.h"
#include "web/api/native/request.h"

enum { LINES = 1000, LINES_MAX = 50000 };

static void write_line(struct js *j, const struct spoken_line *l)
{
	js_open(j, '{');
	js_key_int(j, "n", l->number);
	js_key_int(j, "time", l->time_ms);
	js_key_str(j, "stream", l->stream == 2 ? "stderr" : "stdout");
	if (l->again) {
		js_key(j, "again");
		js_bool(j, true);
	}
	js_key(j, "text");
	js_strn(j, l->text, l->text_len);
	js_close(j, '}');
}

static void write_console(struct call *c, const struct spoken_console *console)
{
	struct js j = { .out = &c->out };

	js_open(&j, '{');
	js_key_int(&j, "rank", console->part.rank);
	js_key_int(&j, "segment", console->part.segment);
	js_key_int(&j, "total", console->part.lines);
	js_key(&j, "parts");
	js_open(&j, '[');
	for (size_t i = 0; i < console->part_count; i++) {
		js_open(&j, '{');
		js_key_int(&j, "rank", console->parts[i].rank);
		js_key_int(&j, "segment", console->parts[i].segment);
		js_key_int(&j, "lines", console->parts[i].lines);
		js_close(&j, '}');
	}
	js_close(&j, ']');
	js_key(&j, "lines");
	js_open(&j, '[');
	for (size_t i = 0; i < console->line_count; i++)
		write_line(&j, &console->lines[i]);
	js_close(&j, ']');
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
}

enum call_next on_console_get(struct call *c)
{
	struct spoken_console_opts o = { .run = call_run_id(c, 0), .search = call_arg(c, "search") };
	int64_t rank = INT_MIN, segment = -1, limit = LINES;
	struct spoken_console console;
	struct err err = ERR_INIT;

	o.at_ms = INT64_MIN;
	if (!o.run || !call_arg_int(c, "rank", &rank, 0, INT_MAX) ||
	    !call_arg_int(c, "segment", &segment, 0, INT_MAX) ||
	    !call_arg_int(c, "from", &o.from, INT_MIN, INT64_MAX / 2) ||
	    !call_arg_int(c, "at", &o.at_ms, 0, INT64_MAX / 2) || !call_arg_int(c, "limit", &limit, 1, LINES_MAX) ||
	    !call_args_done(c))
		return CALL_DONE;
	if (o.search && !*o.search)
		o.search = NULL;
	o.rank = (int)rank;
	o.segment = (int)segment;
	o.limit = (size_t)limit;
	if (spoken_console(c->api->store, &o, c->arena, &console, &err))
		return call_fail_err(c, "run", &err);
	write_console(c, &console);
	return CALL_DONE;
}

enum call_next on_code_get(struct call *c)
{
	const char *run = call_run_id(c, 0);
	struct spoken_code *list = NULL;
	struct js j = { .out = &c->out };
	struct err err = ERR_INIT;
	size_t n = 0;

	if (!run || !call_args_done(c))
		return CALL_DONE;
	if (spoken_code(c->api->store, run, c->arena, &list, &n, &err))
		return call_fail_err(c, "run", &err);
	js_open(&j, '{');
	js_key(&j, "code");
	js_open(&j, '[');
	for (size_t i = 0; i < n; i++) {
		js_open(&j, '{');
		js_key_int(&j, "segment", list[i].segment);
		js_key_str(&j, "name", list[i].name);
		js_key_str(&j, "text", list[i].text);
		js_close(&j, '}');
	}
	js_close(&j, ']');
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

static void write_alert(struct js *j, const struct spoken_alert *a)
{
	static const char *const levels[] = { "info", "info", "warning", "error" };

	js_open(j, '{');
	js_key_int(j, "rank", a->rank);
	js_key_int(j, "segment", a->segment);
	js_key_int(j, "step", a->step);
	js_key_int(j, "time", a->time_ms);
	js_key_str(j, "level", levels[a->level & 3]);
	js_key_str(j, "title", a->title);
	js_key_str(j, "text", a->text);
	js_close(j, '}');
}

enum call_next on_alerts_get(struct call *c)
{
	const char *run = call_run_id(c, 0);
	struct spoken_alert *list = NULL;
	struct js j = { .out = &c->out };
	struct err err = ERR_INIT;
	size_t n = 0;

	if (!run || !call_args_done(c))
		return CALL_DONE;
	if (spoken_alerts(c->api->store, run, c->arena, &list, &n, &err))
		return call_fail_err(c, "run", &err);
	js_open(&j, '{');
	js_key(&j, "alerts");
	js_open(&j, '[');
	for (size_t i = 0; i < n; i++)
		write_alert(&j, &list[i]);
	js_close(&j, ']');
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}
