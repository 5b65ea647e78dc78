/* changes.c: /changes (polling) and /events (server-sent events): ids of runs that changed, not the changes. */
#include "web/api/api.h"

#include <stdlib.h>
#include <string.h>

#include "web/api/handlers.h"

static void write_changes(struct buf *out, const struct query_changes *ch)
{
	struct js j = { .out = out };
	size_t i;

	js_open(&j, '{');
	js_key_str(&j, "token", ch->token);
	js_key(&j, "runs");
	js_open(&j, '[');
	for (i = 0; i < ch->run_count; i++)
		js_str(&j, ch->runs[i]);
	js_close(&j, ']');
	js_key(&j, "more");
	js_bool(&j, ch->more);
	js_key(&j, "reset");
	js_bool(&j, ch->reset);
	js_close(&j, '}');
}

enum call_next on_changes_get(struct call *c)
{
	const char *since = call_arg(c, "since");
	struct query_changes ch;
	struct err err = ERR_INIT;

	if (!call_args_done(c))
		return CALL_DONE;
	if (query_changes(c->api->store, since, c->arena, &ch, &err))
		return call_fail_err(c, "since", &err);
	write_changes(&c->out, &ch);
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

struct event_feed {
	struct store *store;
	char token[256]; /* "": the first event has not been sent */
};

/* Sends an event when runs changed since the token, or at the start; a comment line at a tick without change. */
static int fill_event_feed(void *state, struct buf *out, bool tick, struct err *err)
{
	struct event_feed *e = state;
	struct arena *arena = arena_new();
	struct query_changes ch;
	int rc = arena ? query_changes(e->store, e->token, arena, &ch, err) : err_set(err, ERR_NOMEM, "out of memory");

	if (rc) {
		arena_free(arena);
		return rc;
	}
	rc = STREAM_IDLE;
	if (!e->token[0] || ch.run_count || ch.reset) {
		buf_addf(out, "event: changes\nid: %s\ndata: ", ch.token);
		write_changes(out, &ch);
		buf_adds(out, "\n\n");
		snprintf(e->token, sizeof(e->token), "%s", ch.token);
		rc = STREAM_MORE;
	} else if (tick) {
		buf_adds(out, ": still here\n\n");
	}
	arena_free(arena);
	return rc;
}

enum call_next on_events_get(struct call *c)
{
	const char *since = call_arg(c, "since"), *last = c->host->header(c, "Last-Event-ID");
	struct query_changes ch;
	struct err err = ERR_INIT;
	struct event_feed *e;

	if (!call_args_done(c))
		return CALL_DONE;
	if (last && *last)
		since = last;
	if (query_changes(c->api->store, since, c->arena, &ch, &err))
		return call_fail_err(c, "since", &err);
	e = calloc(1, sizeof(*e));
	if (!e)
		return call_fail(c, CALL_busy, NULL, "out of memory");
	e->store = c->api->store;
	snprintf(e->token, sizeof(e->token), "%s", since && !ch.reset ? since : "");
	c->type = "text/event-stream";
	c->cache = "no-store";
	c->stream = (struct call_stream){ .fill = fill_event_feed, .release = free, .state = e, .events = true };
	return CALL_DONE;
}
