/* api_journal.c: /runs/{run}/journal: ranges of a journal's own bytes in, the durable offset out. */
#include "web/api/api.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "web/api/handlers.h"

/* Kept with the call, as is its body: the rest of a range may have to be submitted again. */
struct range {
	struct ingest_op op;
	double came_s;
};

/* Where the sender goes on, and when. */
static void put_place(struct js *j, struct call *c, uint64_t durable)
{
	struct journal_pace none = { 0 };

	js_key_int(j, "durable", (int64_t)durable);
	js_key_number(j, "interval_s", journal_pace_interval_s(c->api->counters ? &c->api->counters->pace : &none));
}

static void write_durable(struct call *c, uint64_t durable)
{
	struct js j = { .out = &c->out };

	js_open(&j, '{');
	put_place(&j, c, durable);
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
}

static enum call_next journal_submit(struct call *c, struct range range);

static void note_pace(struct call *c)
{
	const struct range *r = c->own;
	double waited_s = clock_mono_s() - r->came_s;

	if (c->api->counters)
		journal_pace_note(&c->api->counters->pace, clock_mono_ns() / 1000000, (uint64_t)(waited_s * 1000));
}

static enum call_next journal_stored(struct call *c, const struct ingest_result *res)
{
	const struct range *r = c->own;
	struct js j = { .out = &c->out };

	if (res->overtaken)
		return journal_submit(c, (struct range){ ingest_rest(&r->op, res->durable), r->came_s });
	if (!res->code) {
		note_pace(c);
		write_durable(c, res->durable);
		return CALL_DONE;
	}
	if (res->code != ERR_EXISTS)
		return call_fail_err(c, res->code == ERR_NOENT ? "run" : NULL, &res->err);
	/* the sender is ahead: it goes back to where the store is */
	c->status = call_error_status(CALL_conflict);
	js_open(&j, '{');
	put_place(&j, c, res->durable);
	js_key(&j, "error");
	js_open(&j, '{');
	js_key_str(&j, "code", call_error_name(CALL_conflict));
	js_key_str(&j, "message", res->err.text);
	js_key_str(&j, "field", "offset");
	js_close(&j, '}');
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

static enum call_next journal_submit(struct call *c, struct range range)
{
	struct range *kept = arena_alloc(c->arena, sizeof(*kept));

	if (!kept)
		return call_fail(c, CALL_busy, NULL, "out of memory");
	*kept = range;
	c->own = kept;
	return api_submit(c, &(struct api_change){ .op = &kept->op, .keep_errors = true, .then = journal_stored });
}

static const char *journal_writer(struct call *c)
{
	const char *writer = call_arg(c, "writer");

	if (writer && call_is_run_id(writer))
		return writer;
	call_fail(c, CALL_bad_value, "writer", "writer: want the 32 lower-case hex digits of the journal's writer");
	return NULL;
}

enum call_next on_journal_post(struct call *c)
{
	struct ingest_op op = { .kind = &change_journal, .start_ms = INGEST_NO_TIME, .end_ms = INGEST_NO_TIME };
	int64_t offset = -1;

	op.run = call_run_id(c, 0);
	op.writer = op.run ? journal_writer(c) : NULL;
	if (!op.writer || !call_arg_int(c, "offset", &offset, 0, INT64_MAX) || !call_args_done(c))
		return CALL_DONE;
	if (offset < 0)
		return call_fail(c, CALL_bad_value, "offset", "offset: missing");
	op.offset = (uint64_t)offset;
	op.bytes = c->body;
	op.len = c->body_len;
	return journal_submit(c, (struct range){ op, clock_mono_s() });
}

enum call_next on_journal_get(struct call *c)
{
	const char *run = call_run_id(c, 0), *writer = run ? journal_writer(c) : NULL;
	struct err err = ERR_INIT;
	uint64_t durable;

	if (!writer || !call_args_done(c))
		return CALL_DONE;
	if (ingest_durable(c->api->store, run, writer, &durable, &err))
		return call_fail_err(c, "run", &err);
	write_durable(c, durable);
	return CALL_DONE;
}
