/* SPDX-License-Identifier: Apache-2.0 */
/* query_test.c: search grammar, order, pages; raw points in pages; charts compared with a plain recount. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/store/helper.h"
#include "web/store/filter/filter.h"

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint64_t draw(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void put(struct helper *h, struct ingest_op op, struct ingest_result *res)
{
	struct err err = ERR_INIT;

	if (ingest_submit(h->s, &op, NULL, res, &err))
		fail_msg("%s", err.text);
}

/* Makes 60 runs r0..r59: lr i/10, model by parity, acc with last i%7 and max 100-i (none for every fifth), tag odd,
 * NaN at r8. */
static void fill(struct helper *h)
{
	struct ingest_result res;
	int i;

	for (i = 0; i < 60; i++) {
		char lr[16], name[16];
		struct ingest_kv params[2] = { { "lr", lr }, { "model", i & 1 ? "resnet" : "mlp" } },
			tag = { "odd one", "yes" };
		struct ingest_point points[2] = { { "epoch/acc", 1, 10, 100 - i, -1 },
						  { "epoch/acc", 2, 11, i % 7, -1 } };

		snprintf(lr, sizeof lr, "%.1f", i / 10.0);
		snprintf(name, sizeof name, "r%d", i);
		put(h, (struct ingest_op){ .kind = &change_run_new, .experiment = i < 50 ? "main" : "side",
					   .name = name,
					   .logged.params = params, .logged.param_count = 2, .logged.tags = &tag,
					   .logged.tag_count = i & 1,
					   .state.start_ms = 1000 + i }, &res);
		if (i == 8)
			points[1].value = NAN;
		if (i % 5)
			put(h, (struct ingest_op){ .kind = &change_points, .run = res.id, .logged.points = points,
						   .logged.point_count = 2 }, &res);
		if (i % 3 == 0)
			put(h, (struct ingest_op){ .kind = &change_run_patch, .run = res.id,
						   .state.status = i % 2 ? "failed" : "finished",
						   .state.end_ms = 2000 + i }, &res);
	}
}

static size_t search(struct helper *h, const char *filter, const char *order, size_t limit, struct query_runs *ret)
{
	static const char *const experiments[] = { "main" };
	struct query_runs_opts o = { .experiments = experiments, .experiment_count = 1, .filter = filter,
				     .order_by = order,
				     .limit = limit };
	struct err err = ERR_INIT;

	if (query_runs(h->s, &o, h->a, ret, &err))
		fail_msg("%s: %s", filter ? filter : "", err.text);
	return ret->count;
}

struct filter_case {
	const char *filter;
	size_t count; /* of runs that it finds */
};

static void check_filters(struct helper *h, const struct filter_case *cases, size_t n)
{
	struct query_runs r;

	for (size_t i = 0; i < n; i++)
		if (search(h, cases[i].filter, NULL, 1000, &r) != cases[i].count)
			fail_msg("%s: %zu runs, not %zu", cases[i].filter, r.count, cases[i].count);
}

static void check_bad_filters(struct helper *h, const char *const *bad, size_t n)
{
	struct query_runs r;
	struct err err;

	for (size_t i = 0; i < n; i++)
		if (query_runs(h->s, &(struct query_runs_opts){ .filter = bad[i] }, h->a, &r, &err) != ERR_USAGE ||
		    strncmp(err.text, "filter", 6))
			fail_msg("taken: %s", bad[i]);
}

static void filters(void **state)
{
	struct filter_mlflow text = { FILTER_RUNS, "params.lr = '0.10'", NULL, 0 };
	static const struct filter_case cases[] = {
		{ NULL, 50 },
		{ "", 50 },
		{ "  ", 50 },
		{ "params.lr = '0.1'", 1 },
		{ "params.lr = 0.10", 1 },
		{ "params.lr < 0.5", 5 },
		{ "params.lr >= '4.0'", 10 },
		{ "params.model = \"resnet\"", 25 },
		{ "params.model = 'Resnet'", 0 },
		{ "params.model LIKE 'res%'", 25 },
		{ "params.model like '%L_'", 0 },
		{ "params.model ILIKE '%L_'", 25 },
		{ "params.model NOT LIKE 'res%'", 25 },
		{ "metrics.\"epoch/acc\".max > 90", 8 },
		{ "metrics.epoch/acc.max > 90 AND params.model = 'mlp'", 4 },
		{ "metrics.`epoch/acc` = 6", 6 },
		{ "metric.\"epoch/acc\".first <= 52 and status = 'RUNNING'", 1 },
		{ "metrics.\"epoch/acc\" != 6", 34 },
		{ "metrics.\"epoch/acc\" = 'NaN'", 1 },
		{ "metrics.\"epoch/acc\" IS NULL", 10 },
		{ "metrics.\"epoch/acc\" IS NOT NULL", 40 },
		{ "metrics.nothing > 1", 0 },
		{ "tags.\"odd one\" = 'yes'", 25 },
		{ "tag.\"odd one\" IS NULL AND attributes.status = 'finished'", 9 },
		{ "name = 'r7' OR name = 'r8' AND params.lr = '0.8'", 2 },
		{ "(name = 'r7' OR name = 'r8') AND params.lr = '0.8'", 1 },
		{ "NOT (name = 'r7' OR name = 'r8')", 48 },
		{ "name IN ('r7', 'r8', 'r99')", 2 },
		{ "params.lr IN (0.1, 0.2)", 2 },
		{ "name NOT IN ('r7')", 49 },
		{ "start_time >= 1040", 10 },
		{ "end_time IS NULL", 33 },
		{ "experiment = 'main' AND run_name LIKE 'r_'", 10 },
	};
	static const char *const bad[] = {
		"params.lr =", "params.lr", "= 3", "params. = '1'", "foo = 'x'", "foo.bar = 1", "metrics.a > 'x'",
		"(name = 'a'", "name = 'a' name", "name IN ()", "name IN ('a'", "name LIKE 3", "name = 'unterminated",
		"name ~ 'a'", "NOT", "AND", "metrics.\"a\".median > 1", "name IS 3", "start_time > 'late'",
		"status = 'done'", "status IN (failed, completed)",
	};
	struct helper *h = *state;
	struct query_runs r;
	struct err err;

	fill(h);
	check_filters(h, cases, sizeof cases / sizeof cases[0]);
	check_bad_filters(h, bad, sizeof bad / sizeof bad[0]);
	assert_int_equal(query_runs(h->s, &(struct query_runs_opts){ .order_by = "metrics.a DESC,," }, h->a, &r, &err),
			 ERR_USAGE);
	assert_int_equal(query_runs(h->s, &(struct query_runs_opts){ .order_by = "name, name DESC" }, h->a, &r, &err),
			 ERR_USAGE);
	assert_int_equal(query_runs(h->s, &(struct query_runs_opts){ .mlflow = &text }, h->a, &r, &err), 0);
	assert_int_equal(r.count, 0);
}

/* Dates, durations, notes and quotes; tests/api/values/filters.py has runs with such values. */
static void more_filters(void **state)
{
	static const struct {
		const char *filter;
		size_t count;
	} cases[] = {
		{ "start_time >= '1970-01-01T00:00:01.040Z'", 10 },
		{ "start_time >= '1970-01-01T01:00:01.04+01:00'", 10 },
		{ "start_time < '1970-01-02'", 50 },
		{ "start_time < '1970-01-01 00:00'", 0 },
		{ "notes IS NULL", 50 },
		{ "name = 'r''7'", 0 },
		{ "last_step >= 0 OR last_step IS NULL", 50 },
		{ "duration >= 0 OR duration < 0 OR duration IS NULL", 50 },
	};
	static const char *const bad[] = {
		"start_time > '2026-02-30'", "start_time > '2026-1-1'", "duration > 'long'", "last_step = 'x'",
		"notes > 'a' '", "name = 'it's'",
	};
	struct helper *h = *state;
	struct query_runs r;
	struct err err;
	size_t i;

	fill(h);
	for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (search(h, cases[i].filter, NULL, 1000, &r) != cases[i].count)
			fail_msg("%s: %zu runs, not %zu", cases[i].filter, r.count, cases[i].count);
	for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (query_runs(h->s, &(struct query_runs_opts){ .filter = bad[i] }, h->a, &r, &err) != ERR_USAGE)
			fail_msg("taken: %s", bad[i]);
}

/* Names without a prefix: the run's param, else its metric. */
static void bare_names(void **state)
{
	static const struct filter_case cases[] = {
		{ "lr > 0.1", 48 },
		{ "lr>0.1 and model=mlp", 24 },
		{ "NOT lr > 0.1", 2 },
		{ "model = 'resnet'", 25 },
		{ "model LIKE 'res%'", 25 },
		{ "model NOT IN (mlp)", 25 },
		{ "model IS NULL", 0 },
		{ "epoch/acc.max > 90", 8 },
		{ "epoch/acc != 6", 34 },
		{ "\"epoch/acc\" IS NULL", 10 },
		{ "epoch/acc IS NOT NULL AND lr < 0.5", 4 },
		{ "epoch/acc NOT IN (6)", 34 },
		{ "status = finished", 9 },
	};
	static const char *const bad[] = {
		"lr = AND", "model =", "epoch/acc LIKE 'a'", "lrr > 1", "nope.min > 1", "\"odd one\" = 'yes'",
		"attributes.lr > 1",
	};
	static const char *const part[] = { "acc > 1", "epoch > 1" };
	struct helper *h = *state;
	struct query_runs r;
	struct err err;
	size_t i;

	fill(h);
	check_filters(h, cases, sizeof cases / sizeof cases[0]);
	check_bad_filters(h, bad, sizeof bad / sizeof bad[0]);
	for (i = 0; i < 2; i++) {
		assert_int_equal(query_runs(h->s, &(struct query_runs_opts){ .filter = part[i] }, h->a, &r, &err),
				 ERR_USAGE);
		assert_non_null(strstr(err.text, " (but epoch/acc), and there is no such attribute"));
	}
}

static void hostile_filters(void **state)
{
	struct helper *h = *state;
	struct query_runs r;
	struct err err;
	char deep[20000];

	memset(deep, '(', sizeof deep - 1);
	deep[sizeof deep - 1] = '\0';
	assert_int_equal(query_runs(h->s, &(struct query_runs_opts){ .filter = deep }, h->a, &r, &err), ERR_USAGE);
	deep[5000] = '\0';
	assert_int_equal(query_runs(h->s, &(struct query_runs_opts){ .filter = deep }, h->a, &r, &err), ERR_USAGE);
}

static void orders(void **state)
{
	struct helper *h = *state;
	struct query_runs r;

	fill(h);
	search(h, NULL, NULL, 3, &r);
	assert_string_equal(r.items[0].name, "r49");
	assert_string_equal(r.items[2].name, "r47");
	assert_non_null(r.next_page_token);
	search(h, NULL, "metrics.\"epoch/acc\".max DESC", 0, &r);
	assert_string_equal(r.items[0].name, "r1");
	assert_string_equal(r.items[1].name, "r2");
	assert_string_equal(r.items[49].name, "r0");
	search(h, NULL, "metrics.\"epoch/acc\"", 0, &r);
	/* numbers, then NaN, then missing values (newest first) */
	assert_string_equal(r.items[39].name, "r8");
	assert_string_equal(r.items[40].name, "r45");
	search(h, NULL, "metrics.\"epoch/acc\" DESC", 0, &r);
	assert_string_equal(r.items[39].name, "r8");
	search(h, NULL, "params.model DESC, params.lr", 0, &r);
	assert_string_equal(r.items[0].name, "r1");
	assert_string_equal(r.items[1].name, "r3");
	assert_string_equal(r.items[25].name, "r0");
	assert_int_equal(r.items[0].param_count, 2);
	assert_int_equal(r.items[0].metric_count, 1);
	assert_null(r.next_page_token);
}

/* Pages of every size return each run once, in the overall order. */
static void pages(void **state)
{
	static const char *const orders_of[] = { NULL, "metrics.\"epoch/acc\" DESC", "params.model, name DESC",
						 "end_time" };
	struct helper *h = *state;
	struct query_runs all, part;
	struct err err = ERR_INIT;
	size_t o, limit, seen;

	fill(h);
	for (o = 0; o < 4; o++) {
		assert_int_equal(query_runs(h->s, &(struct query_runs_opts){ .order_by = orders_of[o] }, h->a, &all,
					    &err), 0);
		assert_int_equal(all.count, 60);
		for (limit = 1; limit < 62; limit += 7) {
			struct query_runs_opts opts = { .order_by = orders_of[o], .limit = limit, .bare = true };

			seen = 0;
			do {
				if (query_runs(h->s, &opts, h->a, &part, &err))
					fail_msg("%s", err.text);
				for (size_t i = 0; i < part.count; i++)
					assert_string_equal(part.items[i].id, all.items[seen++].id);
				opts.page_token = part.next_page_token;
			} while (part.next_page_token);
			assert_int_equal(seen, 60);
		}
	}
	search(h, NULL, NULL, 5, &part);
	assert_int_equal(query_runs(h->s,
				    &(struct query_runs_opts){ .page_token = part.next_page_token, .order_by = "name" },
				    h->a, &all, &err), ERR_USAGE);
	assert_int_equal(query_runs(h->s, &(struct query_runs_opts){ .page_token = "00" }, h->a, &all, &err),
			 ERR_USAGE);
}

#define EVAL_METRICS_MAX 80000

struct truth {
	struct ingest_point p[EVAL_METRICS_MAX];
	size_t count;
};

static int by_step(const void *x, const void *y)
{
	const struct ingest_point *const *a = x, *const *b = y;

	if ((*a)->step != (*b)->step)
		return (*a)->step < (*b)->step ? -1 : 1;
	return *a < *b ? -1 : *a > *b;
}

static void log_points(struct helper *h, const char *run, struct truth *t, size_t n, int kind)
{
	struct ingest_result res;
	size_t from = t->count, i;

	for (i = 0; i < n; i++, t->count++) {
		int64_t step = kind == 0 || kind == 3 ? (int64_t)t->count * 2 : kind == 1 ? (int64_t)(draw() % 50) : 7;

		t->p[t->count] = (struct ingest_point){ "k", step, (double)(draw() % 1000), (double)(draw() % 97), -1 };
		if (kind != 3 && draw() % 40 == 0)
			t->p[t->count].value = draw() & 1 ? NAN : INFINITY;
	}
	put(h, (struct ingest_op){ .kind = &change_points, .run = run, .logged.points = t->p + from,
				   .logged.point_count = n }, &res);
}

static void check_rows(struct helper *h, const char *run, const struct truth *t, size_t page, bool tokens)
{
	struct points_sel sel = { .runs = &run, .run_count = 1, .rank = -1, .from_step = INT64_MIN,
				  .to_step = INT64_MAX };
	const struct ingest_point **sorted = calloc(t->count + 1, sizeof *sorted);
	struct points_row *rows = calloc(page, sizeof *rows);
	struct points_cursor *c;
	struct err err = ERR_INIT;
	size_t n = 0, got, i;
	char token[160];

	for (i = 0; i < t->count; i++)
		sorted[i] = &t->p[i];
	qsort(sorted, t->count, sizeof *sorted, by_step);
	assert_int_equal(points_open(&c, h->s, &sel, NULL, &err), 0);
	for (;;) {
		if (points_next(c, rows, page, &got, &err))
			fail_msg("%s", err.text);
		for (i = 0; i < got; i++, n++) {
			assert_true(n < t->count);
			assert_int_equal(rows[i].step, sorted[n]->step);
			assert_memory_equal(&rows[i].value, &sorted[n]->value, 8);
			assert_memory_equal(&rows[i].wall_time, &sorted[n]->wall_time, 8);
		}
		if (!got)
			break;
		if (!tokens)
			continue;
		if (!points_token(c, token, sizeof token))
			break;
		points_close(c);
		if (points_open(&c, h->s, &sel, token, &err))
			fail_msg("%s", err.text);
	}
	assert_int_equal(n, t->count);
	points_close(c);
	free(rows);
	free(sorted);
}

static void raw_points(void **state)
{
	static const size_t sizes[] = { 0, 1, 100, 2048, 2049, 5000, 9000 };
	static struct truth t;
	struct helper *h = *state;
	struct ingest_result res;
	int kind;
	size_t i;

	for (kind = 0; kind < 3; kind++)
		for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
			char run[40];

			put(h, (struct ingest_op){ .kind = &change_run_new, .name = "r" }, &res);
			memcpy(run, res.id, sizeof run);
			t.count = 0;
			if (sizes[i])
				log_points(h, run, &t, sizes[i], kind);
			if (i & 1)
				helper_reopen(h); /* folds */
			log_points(h, run, &t, 10, kind);
			check_rows(h, run, &t, 100, false);
			check_rows(h, run, &t, 777, true);
			helper_reopen(h);
			check_rows(h, run, &t, 4096, false);
		}
}

/* Computes the same buckets by brute force. */
static void check_bucket(const struct truth *t, const struct points_chart *chart, const struct points_bucket *b,
			 bool time)
{
	struct points_at first = { NAN, NAN }, last = first, low = first, high = first;
	uint32_t count = 0, bad = 0;
	double sum = 0;
	size_t i;

	for (i = 0; i < t->count; i++) {
		double x = time ? t->p[i].wall_time : (double)t->p[i].step, v = t->p[i].value;
		double cell = chart->width > 0 ? floor((x - chart->from) / chart->width) : 0;

		if (x < chart->from || x > chart->to || fmin(cell, chart->bucket_count - 1) != b->index)
			continue;
		count++;
		if (!isfinite(v)) {
			bad++;
			continue;
		}
		sum += v;
		if (isnan(first.x) || x < first.x)
			first = (struct points_at){ x, v };
		if (isnan(last.x) || x >= last.x)
			last = (struct points_at){ x, v };
		if (isnan(low.x) || v < low.value || (v == low.value && x < low.x))
			low = (struct points_at){ x, v };
		if (isnan(high.x) || v > high.value || (v == high.value && x < high.x))
			high = (struct points_at){ x, v };
	}
	assert_int_equal(b->count, count);
	assert_int_equal(b->nonfinite, bad);
	assert_true(b->sum == sum);
	if (bad == count) {
		assert_true(isnan(b->first.value) && isnan(b->max.value));
		return;
	}
	assert_true(b->first.x == first.x && b->first.value == first.value);
	assert_true(b->last.x == last.x && b->last.value == last.value);
	assert_true(b->min.x == low.x && b->min.value == low.value);
	assert_true(b->max.x == high.x && b->max.value == high.value);
}

struct view {
	uint32_t buckets;
	bool time;
	double from, to; /* NaN: the ends of the series */
};

static void check_chart(struct helper *h, const char *run, const struct truth *t, const struct view *v)
{
	struct points_chart_opts o = { .sel = { .runs = &run, .run_count = 1, .rank = -1 }, .buckets = v->buckets,
				       .x = v->time ? POINTS_X_TIME : POINTS_X_STEP, .from = v->from, .to = v->to };
	struct arena *a = arena_new();
	struct points_chart chart;
	struct err err = ERR_INIT;
	uint64_t inside = 0, want = 0;
	size_t i;

	if (points_chart(h->s, &o, a, &chart, &err))
		fail_msg("%s", err.text);
	for (i = 0; i < t->count; i++) {
		double x = v->time ? t->p[i].wall_time : (double)t->p[i].step;

		want += x >= chart.from && x <= chart.to;
		if (isnan(v->from))
			assert_true(x >= chart.from && x <= chart.to);
	}
	assert_int_equal(chart.line_count, want > 0);
	for (i = 0; chart.line_count && i < chart.lines[0].bucket_count; i++) {
		check_bucket(t, &chart, &chart.lines[0].buckets[i], v->time);
		inside += chart.lines[0].buckets[i].count;
	}
	assert_int_equal(inside, want);
	arena_free(a);
}

static void charts(void **state)
{
	static struct truth t;
	struct helper *h = *state;
	struct ingest_result res;
	int round, view;

	for (round = 0; round < 300; round++) {
		/* 3 is the kind whose groups need not be decoded */
		int kind = round % 25 ? round % 3 : round % 50 ? 3 : round / 50 % 4;
		char run[40];

		put(h, (struct ingest_op){ .kind = &change_run_new, .name = "r" }, &res);
		memcpy(run, res.id, sizeof run);
		t.count = 0;
		log_points(h, run, &t, 1 + draw() % 60, kind);
		if (round % 25 == 0) {
			log_points(h, run, &t, 3000, kind);
			helper_reopen(h);
		}
		log_points(h, run, &t, 1 + draw() % 60, kind);
		for (view = 0; view < (t.count > 1000 ? 12 : 34); view++) {
			bool cut = draw() & 1;

			check_chart(h, run, &t, &(struct view){ .buckets = 1 + (uint32_t)(draw() % 40),
								.time = draw() & 1, .from = cut ? 10 : NAN,
								.to = cut ? 33 : NAN });
		}
	}
}

/* Chunks are read one by one or with read-ahead, are cached and evicted: also in an address space that holds nearly no
 * cache. */
static void charts_of_many_chunks(void **state)
{
	static struct truth t;
	struct helper *h = *state;
	struct ingest_result res;
	char run[40];
	int view;

	put(h, (struct ingest_op){ .kind = &change_run_new, .name = "r" }, &res);
	memcpy(run, res.id, sizeof run);
	for (t.count = 0; t.count + 4000 <= sizeof t.p / sizeof t.p[0];)
		log_points(h, run, &t, 4000, 3);
	for (view = 0; view < 40; view++) {
		double a = (double)(draw() % (2 * t.count)), b = (double)(draw() % (2 * t.count));

		if (view % 20 == 0)
			helper_reopen_with(h, &(struct store_opts){ .cache_mib = view ? 1 : 64 });
		check_chart(h, run, &t, &(struct view){ .buckets = 1 + (uint32_t)(draw() % 60),
							.from = view % 5 ? fmin(a, b) : NAN,
							.to = view % 5 ? fmax(a, b) : NAN });
	}
}

static void charts_join_segments(void **state)
{
	struct helper *h = *state;
	const char *run = HELPER_RUN, *other = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
	struct event_header header = helper_header(0, 0, 0);
	struct points_chart_opts o = { .sel = { .runs = &run, .run_count = 1, .rank = -1 }, .buckets = 4, .from = NAN,
				       .to = NAN };
	struct points_chart chart;
	struct ingest_result res;
	struct buf b;
	int i;

	buf_init(&b, 1 << 20);
	encode_header(&b, 1.7e9, &header);
	encode_param(&b, 1.7e9, &(struct encode_param){ .key = helper_text("steps_per_epoch"), .type = EVENT_TYPE_I64,
							.integer = 10 });
	for (i = 1; i <= 100; i++)
		helper_scalar(&b, "loss", i, 1);
	assert_int_equal(helper_post(h, run, HELPER_WRITER, 0, &b, 0, &res), 0);
	buf_reset(&b);
	header = helper_header(0, 1, 51);
	header.writer_id = helper_text(other);
	encode_header(&b, 1.7e9, &header);
	for (i = 51; i <= 81; i++)
		helper_scalar(&b, "loss", i, 2);
	assert_int_equal(helper_post(h, run, other, 0, &b, 0, &res), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(points_chart(h->s, &o, h->a, &chart, NULL), 0);
		assert_int_equal(chart.line_count, 1);
		assert_int_equal(chart.lines[0].point_count, 81);
		assert_true(chart.from == 1 && chart.to == 81);
		assert_int_equal(chart.lines[0].segment, 1);
		assert_true(chart.lines[0].buckets[3].min.value == 2);
		helper_reopen(h);
	}
	o.x = POINTS_X_EPOCH;
	assert_int_equal(points_chart(h->s, &o, h->a, &chart, NULL), 0);
	assert_true(chart.from == 0.1 && chart.to == 8.1);
	o.sel.all_segments = true;
	assert_int_equal(points_chart(h->s, &o, h->a, &chart, NULL), 0);
	assert_int_equal(chart.line_count, 2);
	assert_int_equal(chart.lines[0].point_count, 100);
	o.buckets = 0;
	assert_int_equal(points_chart(h->s, &o, h->a, &chart, NULL), ERR_USAGE);
	buf_done(&b);
}

/* Ids may be out of order: the searches' cache must not mistake the new run for another. */
static void searches_accept_any_new_id(void **state)
{
	struct helper *h = *state;
	struct query_runs r;
	size_t before, i, early = 0, first = 0;

	fill(h);
	before = search(h, "params.model = 'mlp'", NULL, 100, &r);
	helper_execute(h, "INSERT INTO run (id, uuid, experiment_id, name, status, start_ms, rev) SELECT -5, "
		   "'eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee', experiment_id, 'early', 'running', 1, (SELECT max(rev) + 1 "
		   "FROM run) "
		   "FROM run WHERE id = 1; INSERT INTO param (run_id, key_id, segment, value) "
		   "SELECT -5, id, -1, 'mlp' FROM key WHERE name = 'model'");
	if (helper_in_database())
		helper_execute(h, "UPDATE counter SET rev = rev + 1");
	assert_int_equal(search(h, "params.model = 'mlp'", NULL, 100, &r), before + 1);
	for (i = 0; i < r.count; i++) {
		early += !strcmp(r.items[i].name, "early");
		first += !strcmp(r.items[i].name, "r0");
	}
	assert_int_equal(early, 1);
	assert_int_equal(first, 1);
}

/* Segment n logs the steps 10 n to 10 n + 14; the next segment hides the last five of them. */
static void many_restarts_hide_points(void **state)
{
	enum { SEGMENTS = 100, STEPS = 15, SHOWN = 10 * (SEGMENTS - 1) + STEPS };
	static struct points_row rows[SEGMENTS * STEPS];
	struct helper *h = *state;
	const char *run = HELPER_RUN;
	struct points_chart_opts o = { .sel = { .runs = &run, .run_count = 1, .rank = -1 }, .buckets = 4, .from = NAN,
				       .to = NAN };
	struct points_chart chart;
	struct ingest_result res;
	struct query_run r;
	char writer[33];
	struct buf b;
	int n, i;

	for (n = 0; n < SEGMENTS; n++) {
		struct event_header header = helper_header(0, n, 10 * n);

		snprintf(writer, sizeof writer, "%032x", n + 1);
		header.writer_id = helper_text(writer);
		buf_init(&b, 1 << 20);
		encode_header(&b, 1.7e9 + n, &header);
		for (i = 0; i < STEPS; i++)
			helper_scalar(&b, "loss", 10 * n + i, n);
		assert_int_equal(helper_post(h, run, writer, 0, &b, 0, &res), 0);
		buf_done(&b);
	}
	r = helper_run(h, run);
	assert_int_equal(helper_metric(&r, "loss")->count, SHOWN);
	assert_int_equal(helper_rows(h, run, "loss", -1, false, rows, SEGMENTS * STEPS), SHOWN);
	assert_int_equal(points_chart(h->s, &o, h->a, &chart, NULL), 0);
	assert_int_equal(chart.lines[0].point_count, SHOWN);
}

static void log_key(struct helper *h, const char *run, const char *key)
{
	struct ingest_point point = { key, 1, 10, 3, -1 };
	struct ingest_result res;

	put(h, (struct ingest_op){ .kind = &change_points, .run = run, .logged.points = &point,
				   .logged.point_count = 1 }, &res);
}

/* Returns how many runs have each key, as "a 2, b 1". */
static const char *key_counts(struct helper *h, const char *const *metrics, size_t n)
{
	struct query_runs_opts o = { .with_keys = true, .some_metrics = n > 0, .metrics = metrics, .metric_count = n };
	struct query_runs r;
	struct err err = ERR_INIT;
	const char *text = "";
	size_t i, k;

	if (query_runs(h->s, &o, h->a, &r, &err))
		fail_msg("%s", err.text);
	for (i = 0; i < r.key_count; i++)
		text = arena_printf(h->a, "%s%s%s %u", text, i ? ", " : "", r.keys[i].key, r.keys[i].runs);
	for (i = 0; n && i < r.count; i++)
		for (k = 0; k < r.items[i].metric_count; k++)
			assert_string_equal(r.items[i].metrics[k].key, metrics[0]);
	return text;
}

/* Sets of keys are cached: a run that gains a key, is added or deleted changes the counts. */
static void key_counts_follow_changes(void **state)
{
	static const char *const some[] = { "b" };
	struct helper *h = *state;
	struct ingest_result run[3];
	int i;

	for (i = 0; i < 3; i++) {
		put(h, (struct ingest_op){ .kind = &change_run_new, .experiment = "e", .name = "r",
					   .state.start_ms = 1000 + i }, &run[i]);
		log_key(h, run[i].id, "a");
	}
	assert_string_equal(key_counts(h, NULL, 0), "a 3");
	log_key(h, run[1].id, "b");
	assert_string_equal(key_counts(h, NULL, 0), "a 3, b 1");
	assert_string_equal(key_counts(h, some, 1), "a 3, b 1");
	log_key(h, run[2].id, "b");
	log_key(h, run[2].id, "train/loss");
	assert_string_equal(key_counts(h, some, 1), "a 3, b 2, train/loss 1");
	put(h, (struct ingest_op){ .kind = &change_run_delete, .run = run[0].id, .state = INGEST_NO_STATE }, &run[0]);
	assert_string_equal(key_counts(h, NULL, 0), "a 2, b 2, train/loss 1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(filters, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(more_filters, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(bare_names, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(hostile_filters, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(orders, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(pages, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(raw_points, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(charts, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(charts_of_many_chunks, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(charts_join_segments, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(searches_accept_any_new_id, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(many_restarts_hide_points, helper_setup, helper_teardown),
		cmocka_unit_test_setup_teardown(key_counts_follow_changes, helper_setup, helper_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
