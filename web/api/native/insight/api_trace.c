/* SPDX-License-Identifier: Apache-2.0 */
/* api_trace.c: /runs/{run}/trace: converts the spans that ranks recorded (tables under trace/spans) to Chrome's trace
 * events, which Perfetto opens. A process is a rank, a thread is one of its rows; all share one clock. */
#include "web/api/api.h"

#include <stdlib.h>

#include "web/store/read/run_records.h"

enum { SPAN_COLUMNS = 6, SPAN_TABLES_MAX = 10000, TRACE_THREADS_MAX = 256, TRACE_NAME_BYTES = 64 };

enum column { COLUMN_THREAD, COLUMN_NAME, COLUMN_PHASE, COLUMN_NODE, COLUMN_BEGIN, COLUMN_LENGTH };

struct span_row {
	struct event_text cell[SPAN_COLUMNS];
};

struct rank_threads { /* threads of one rank, numbered from 1 in order of appearance */
	int rank;
	char name[TRACE_THREADS_MAX][TRACE_NAME_BYTES];
	int n;
};

struct trace_writer {
	struct call *c;
	struct js js;
	int64_t zero_ns; /* start of the trace */
	struct rank_threads threads;
};

static int64_t parse_span_number(struct event_text t)
{
	char text[32];

	snprintf(text, sizeof(text), "%.*s", (int)(t.len < 31 ? t.len : 31), t.at);
	return strtoll(text, NULL, 10);
}

static bool read_span_row(struct media *m, struct span_row *ret)
{
	for (int i = 0; i < SPAN_COLUMNS; i++)
		if (!media_string(&m->strings, &ret->cell[i]))
			return false;
	return true;
}

static int open_span_table(struct call *c, const char *run, const struct stored_media *item, struct media *ret,
			   struct err *err)
{
	struct event_span content;
	int rc = media_get(c->api->store, &(struct media_ref){ run, item->digest }, c->arena, &content, err);

	if (!rc && (media_read(content, ret) || ret->width != SPAN_COLUMNS))
		rc = err_set(err, ERR_DAMAGED, "the spans of step %lld are damaged", (long long)item->step);
	return rc;
}

/* Writes nanoseconds as microseconds with three decimals. */
static void write_microseconds(struct js *j, const char *key, int64_t ns)
{
	char text[40];

	snprintf(text, sizeof(text), "%lld.%03d", (long long)(ns / 1000), (int)(ns % 1000));
	js_key(j, key);
	js_raw(j, text);
}

static void write_name_event(struct js *j, const char *what, int rank, int thread, const char *name)
{
	js_open(j, '{');
	js_key_str(j, "name", what);
	js_key_str(j, "ph", "M");
	js_key_int(j, "pid", rank);
	js_key_int(j, "tid", thread);
	js_key_open(j, "args", '{');
	js_key_str(j, "name", name);
	js_close(j, '}');
	js_close(j, '}');
}

static void begin_trace_rank(struct trace_writer *w, int rank)
{
	char name[32];

	w->threads.rank = rank;
	w->threads.n = 0;
	snprintf(name, sizeof(name), "rank %d", rank);
	write_name_event(&w->js, "process_name", rank, 0, name);
}

static int find_trace_thread(struct trace_writer *w, struct event_text name)
{
	struct rank_threads *t = &w->threads;
	char *at;

	for (int i = 0; i < t->n; i++)
		if (event_text_equal(name, t->name[i]))
			return i + 1;
	if (t->n == TRACE_THREADS_MAX)
		return TRACE_THREADS_MAX;
	at = t->name[t->n++];
	snprintf(at, TRACE_NAME_BYTES, "%.*s", (int)(name.len < TRACE_NAME_BYTES ? name.len : TRACE_NAME_BYTES - 1),
		 name.at);
	write_name_event(&w->js, "thread_name", t->rank, t->n, at);
	return t->n;
}

/* Writes one span as a complete event ("ph": "X"). */
static void write_trace_slice(struct trace_writer *w, const struct span_row *r, int64_t step)
{
	struct js *j = &w->js;
	int thread = find_trace_thread(w, r->cell[COLUMN_THREAD]);

	js_open(j, '{');
	js_key(j, "name");
	js_strn(j, r->cell[COLUMN_NAME].at, r->cell[COLUMN_NAME].len);
	js_key(j, "cat");
	js_strn(j, r->cell[COLUMN_PHASE].at, r->cell[COLUMN_PHASE].len);
	js_key_str(j, "ph", "X");
	write_microseconds(j, "ts", parse_span_number(r->cell[COLUMN_BEGIN]) - w->zero_ns);
	write_microseconds(j, "dur", parse_span_number(r->cell[COLUMN_LENGTH]));
	js_key_int(j, "pid", w->threads.rank);
	js_key_int(j, "tid", thread);
	js_key_open(j, "args", '{');
	js_key_int(j, "rank", w->threads.rank);
	js_key_int(j, "step", step);
	js_key_int(j, "node", parse_span_number(r->cell[COLUMN_NODE]));
	js_close(j, '}');
	js_close(j, '}');
}

static int compare_table_ranks(const void *a, const void *b)
{
	const struct stored_media *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->step > y->step) - (x->step < y->step);
}

/* Finds the earliest begin of a span; 0 without spans. */
static int find_first_begin(struct call *c, const char *run, const struct media_list *l, int64_t *ret, struct err *err)
{
	int64_t zero = INT64_MAX;
	struct media m;
	struct span_row r;
	int rc = 0;

	for (size_t i = 0; !rc && i < l->count; i++) {
		rc = open_span_table(c, run, &l->items[i], &m, err);
		while (!rc && read_span_row(&m, &r)) {
			int64_t at = parse_span_number(r.cell[COLUMN_BEGIN]);

			zero = at < zero ? at : zero;
		}
	}
	*ret = zero == INT64_MAX ? 0 : zero;
	return rc;
}

/* Writes all events. Spans of rank 0 are stored with the run, whose rank is -1. */
static int write_trace_events(struct trace_writer *w, const char *run, const struct media_list *l, struct err *err)
{
	struct media m;
	struct span_row r;
	int rc = 0;

	js_open(&w->js, '{');
	js_key_str(&w->js, "displayTimeUnit", "ms");
	js_key_open(&w->js, "traceEvents", '[');
	for (size_t i = 0; !rc && i < l->count; i++) {
		int rank = l->items[i].rank < 0 ? 0 : l->items[i].rank;

		if (!i || rank != w->threads.rank)
			begin_trace_rank(w, rank);
		rc = open_span_table(w->c, run, &l->items[i], &m, err);
		while (!rc && read_span_row(&m, &r))
			write_trace_slice(w, &r, l->items[i].step);
	}
	js_close(&w->js, ']');
	js_close(&w->js, '}');
	buf_addc(&w->c->out, '\n');
	return rc;
}

enum call_next on_run_trace(struct call *c)
{
	struct media_opts o = { .run = call_run_id(c, 0), .key = "trace/spans", .kind = MEDIA_TABLE, .from = INT64_MIN,
				.to = INT64_MAX, .limit = SPAN_TABLES_MAX };
	struct trace_writer *w = arena_array(c->arena, 1, sizeof(*w));
	struct err err = ERR_INIT;
	struct media_list list;

	if (!o.run)
		return CALL_DONE;
	if (!call_arg_int(c, "from", &o.from, INT64_MIN, INT64_MAX) ||
	    !call_arg_int(c, "to", &o.to, INT64_MIN, INT64_MAX) || !call_args_done(c))
		return CALL_DONE;
	if (media_of_run(c->api->store, &o, c->arena, &list, &err))
		return call_fail_err(c, "run", &err);
	if (list.count)
		qsort(list.items, list.count, sizeof(*list.items), compare_table_ranks);
	*w = (struct trace_writer){ .c = c, .js = { .out = &c->out } };
	if (find_first_begin(c, o.run, &list, &w->zero_ns, &err) || write_trace_events(w, o.run, &list, &err)) {
		buf_reset(&c->out);
		return call_fail_err(c, "run", &err);
	}
	return CALL_DONE;
}
