/* api_trace.c: /runs/{run}/trace: the spans that ranks recorded (tables under trace/spans) as Chrome's trace events, which
 * Perfetto reads: a process a rank, a thread a row of it, one clock for all. */
#include "web/api/api.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/event/event_media.h"
#include "web/api/handlers.h"
#include "web/api/native/request.h"
#include "web/store/read/media.h"

enum { COLUMNS = 6, TABLES_MAX = 10000, THREADS_MAX = 256, NAME_MAX_BYTES = 64 };

enum column { COLUMN_THREAD, COLUMN_NAME, COLUMN_PHASE, COLUMN_NODE, COLUMN_BEGIN, COLUMN_LENGTH };

struct row {
	struct event_text cell[COLUMNS];
};

struct threads { /* of one rank, numbered from 1 as they come */
	int rank;
	char name[THREADS_MAX][NAME_MAX_BYTES];
	int n;
};

struct writing {
	struct call *c;
	struct js js;
	int64_t zero_ns; /* the trace's first moment */
	struct threads threads;
};

static int64_t number_of(struct event_text t)
{
	char text[32];

	snprintf(text, sizeof(text), "%.*s", (int)(t.len < 31 ? t.len : 31), t.at);
	return strtoll(text, NULL, 10);
}

static bool next_row(struct media *m, struct row *ret)
{
	for (int i = 0; i < COLUMNS; i++)
		if (!media_string(&m->strings, &ret->cell[i]))
			return false;
	return true;
}

static int open_table(struct call *c, const char *run, const struct stored_media *item, struct media *ret,
		      struct err *err)
{
	struct event_span content;
	int rc = media_get(c->api->store, run, item->digest, c->arena, &content, err);

	if (!rc && (media_read(content, ret) || ret->width != COLUMNS))
		rc = err_set(err, ERR_DAMAGED, "the spans of step %lld cannot be read", (long long)item->step);
	return rc;
}

/* Microseconds with their thousandths. */
static void write_us(struct js *j, const char *key, int64_t ns)
{
	char text[40];

	snprintf(text, sizeof(text), "%lld.%03d", (long long)(ns / 1000), (int)(ns % 1000));
	js_key(j, key);
	js_raw(j, text);
}

static void write_name(struct js *j, const char *what, int rank, int thread, const char *name)
{
	js_open(j, '{');
	js_key_str(j, "name", what);
	js_key_str(j, "ph", "M");
	js_key_int(j, "pid", rank);
	js_key_int(j, "tid", thread);
	js_key(j, "args");
	js_open(j, '{');
	js_key_str(j, "name", name);
	js_close(j, '}');
	js_close(j, '}');
}

static void begin_rank(struct writing *w, int rank)
{
	char name[32];

	w->threads.rank = rank;
	w->threads.n = 0;
	snprintf(name, sizeof(name), "rank %d", rank);
	write_name(&w->js, "process_name", rank, 0, name);
}

static int thread_of(struct writing *w, struct event_text name)
{
	struct threads *t = &w->threads;
	char *at;

	for (int i = 0; i < t->n; i++)
		if (event_text_equal(name, t->name[i]))
			return i + 1;
	if (t->n == THREADS_MAX)
		return THREADS_MAX;
	at = t->name[t->n++];
	snprintf(at, NAME_MAX_BYTES, "%.*s", (int)(name.len < NAME_MAX_BYTES ? name.len : NAME_MAX_BYTES - 1), name.at);
	write_name(&w->js, "thread_name", t->rank, t->n, at);
	return t->n;
}

static void write_slice(struct writing *w, const struct row *r, int64_t step)
{
	struct js *j = &w->js;
	int thread = thread_of(w, r->cell[COLUMN_THREAD]);

	js_open(j, '{');
	js_key(j, "name");
	js_strn(j, r->cell[COLUMN_NAME].at, r->cell[COLUMN_NAME].len);
	js_key(j, "cat");
	js_strn(j, r->cell[COLUMN_PHASE].at, r->cell[COLUMN_PHASE].len);
	js_key_str(j, "ph", "X");
	write_us(j, "ts", number_of(r->cell[COLUMN_BEGIN]) - w->zero_ns);
	write_us(j, "dur", number_of(r->cell[COLUMN_LENGTH]));
	js_key_int(j, "pid", w->threads.rank);
	js_key_int(j, "tid", thread);
	js_key(j, "args");
	js_open(j, '{');
	js_key_int(j, "rank", w->threads.rank);
	js_key_int(j, "step", step);
	js_key_int(j, "node", number_of(r->cell[COLUMN_NODE]));
	js_close(j, '}');
	js_close(j, '}');
}

static int by_rank(const void *a, const void *b)
{
	const struct stored_media *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->step > y->step) - (x->step < y->step);
}

/* The earliest begin; 0 without spans. */
static int find_zero(struct call *c, const char *run, const struct media_list *l, int64_t *ret, struct err *err)
{
	int64_t zero = INT64_MAX;
	struct media m;
	struct row r;
	int rc = 0;

	for (size_t i = 0; !rc && i < l->count; i++) {
		rc = open_table(c, run, &l->items[i], &m, err);
		while (!rc && next_row(&m, &r)) {
			int64_t at = number_of(r.cell[COLUMN_BEGIN]);

			zero = at < zero ? at : zero;
		}
	}
	*ret = zero == INT64_MAX ? 0 : zero;
	return rc;
}

/* Rank 0's spans are the run's: its rank is -1 there. */
static int write_trace(struct writing *w, const char *run, const struct media_list *l, struct err *err)
{
	struct media m;
	struct row r;
	int rc = 0;

	js_open(&w->js, '{');
	js_key_str(&w->js, "displayTimeUnit", "ms");
	js_key(&w->js, "traceEvents");
	js_open(&w->js, '[');
	for (size_t i = 0; !rc && i < l->count; i++) {
		int rank = l->items[i].rank < 0 ? 0 : l->items[i].rank;

		if (!i || rank != w->threads.rank)
			begin_rank(w, rank);
		rc = open_table(w->c, run, &l->items[i], &m, err);
		while (!rc && next_row(&m, &r))
			write_slice(w, &r, l->items[i].step);
	}
	js_close(&w->js, ']');
	js_close(&w->js, '}');
	buf_addc(&w->c->out, '\n');
	return rc;
}

enum call_next on_run_trace(struct call *c)
{
	struct media_opts o = { .run = call_run_id(c, 0), .key = "trace/spans", .kind = MEDIA_TABLE, .from = INT64_MIN,
				.to = INT64_MAX, .limit = TABLES_MAX };
	struct writing *w = arena_array(c->arena, 1, sizeof(*w));
	struct err err = ERR_INIT;
	struct media_list list;

	if (!o.run)
		return CALL_DONE;
	if (!call_arg_int(c, "from", &o.from, INT64_MIN, INT64_MAX) ||
	    !call_arg_int(c, "to", &o.to, INT64_MIN, INT64_MAX) || !call_args_done(c))
		return CALL_DONE;
	if (!w)
		return call_fail(c, CALL_busy, NULL, "out of memory");
	if (media_of_run(c->api->store, &o, c->arena, &list, &err))
		return call_fail_err(c, "run", &err);
	if (list.count)
		qsort(list.items, list.count, sizeof(*list.items), by_rank);
	*w = (struct writing){ .c = c, .js = { .out = &c->out } };
	if (find_zero(c, o.run, &list, &w->zero_ns, &err) || write_trace(w, o.run, &list, &err)) {
		buf_reset(&c->out);
		return call_fail_err(c, "run", &err);
	}
	return CALL_DONE;
}
