/* SPDX-License-Identifier: Apache-2.0 */
/* store.c: speed of the store alone, on a fresh one in a temporary folder; each row with its bound. Written data are
 * read back and counted.
 *
 *	tests/bench/store [--json] [--runs N] [--points N] [--dir DIR]
 *
 * --runs: runs of the searches (100000; 10 params and 10 metrics each). --points: points of the long series (10000000).
 * --dir: where the stores are created (default: $TMPDIR or /tmp); they are deleted at the end. */
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/bench/parts/rows.h"
#include "tracker/base/arena.h"
#include "tracker/base/clock.h"
#include "web/store/read/points.h"
#include "web/store/read/query.h"
#include "web/store/store.h"
#include "web/store/write/ingest.h"

#define KEYS 10
#define REPEATS 40

struct bench {
	struct rows rows;
	long runs, points;
	char folder[4096], db[4200];
	struct store *s;
	struct err err;
	atomic_long answered, failed;
};

static void die(struct bench *b, const char *what)
{
	fprintf(stderr, "store: %s: %s\n", what, b->err.text);
	exit(1);
}

static void answer(void *arg, const struct ingest_result *res)
{
	struct bench *b = arg;

	b->failed += res->code != 0;
	b->answered++;
}

static void submit(struct bench *b, const struct ingest_op *op)
{
	if (ingest_submit(b->s, op, &(struct ingest_done){ answer, b }, NULL, &b->err))
		die(b, "ingest");
}

static void sync_all(struct bench *b)
{
	if (ingest_submit(b->s, &(struct ingest_op){ .kind = &change_sync }, NULL, NULL, &b->err) || b->failed)
		die(b, "waiting");
}

static void open_store(struct bench *b)
{
	snprintf(b->db, sizeof b->db, "%s/dptrack.db", b->folder);
	if (store_open(&b->s, &(struct store_opts){ .db_path = b->db }, &b->err))
		die(b, "opening");
}

static void close_store(struct bench *b)
{
	store_close(b->s);
	b->s = NULL;
}

static void clear(struct bench *b)
{
	char path[4300];
	const char *ends[] = { "", "-wal", "-shm", ".lock" };
	size_t i;

	for (i = 0; i < 4; i++) {
		snprintf(path, sizeof path, "%s%s", b->db, ends[i]);
		unlink(path);
	}
}

static double noise(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(*state >> 11) / 9007199254740992.0;
}

/* --- searches ---------------------------------------------------------------------------------------------- */

static void add_run(struct bench *b, long i, uint64_t *dice)
{
	static const char *const models[] = { "resnet18", "resnet50", "gpt2", "vit" };
	struct ingest_kv params[KEYS];
	struct ingest_point points[KEYS];
	char id[33], name[32], keys[KEYS][16], values[KEYS][32], metrics[KEYS][16];
	int k;

	snprintf(id, sizeof id, "%032lx", (unsigned long)i * 2654435761u + 1);
	snprintf(name, sizeof name, "run-%ld", i);
	for (k = 0; k < KEYS; k++) {
		snprintf(keys[k], sizeof keys[k], "p%d", k);
		snprintf(metrics[k], sizeof metrics[k], "m%d", k);
		snprintf(values[k], sizeof values[k], k == 0 ? "%.6f" : "%.3f", noise(dice));
		if (k == 1)
			snprintf(values[k], sizeof values[k], "%s", models[i & 3]);
		params[k] = (struct ingest_kv){ keys[k], values[k] };
		points[k] = (struct ingest_point){ metrics[k], 1, 1.7e9 + (double)i, noise(dice), -1 };
	}
	submit(b, &(struct ingest_op){ .kind = &change_run_new, .run = id, .experiment = i % 10 ? "big" : "small",
				       .name = name,
				       .state.status = "finished", .state.start_ms = 1700000000000 + i * 1000,
				       .logged.params = params,
				       .logged.param_count = KEYS });
	submit(b, &(struct ingest_op){ .kind = &change_points, .run = id, .logged.points = points,
				       .logged.point_count = KEYS });
}

static int by_size(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

static double p95(double *seconds, int n)
{
	qsort(seconds, (size_t)n, sizeof *seconds, by_size);
	return seconds[(n * 95 + 99) / 100 - 1] * 1e3;
}

static double time_search(struct bench *b, const struct query_runs_opts *o, const char **ret_token, struct arena *keep)
{
	struct arena *a = arena_new();
	struct query_runs r;
	double began = clock_mono_s(), took;

	if (query_runs(b->s, o, a, &r, &b->err))
		die(b, "search");
	took = clock_mono_s() - began;
	if (ret_token)
		*ret_token = r.next_page_token ? arena_strdup(keep, r.next_page_token) : NULL;
	arena_free(a);
	return took;
}

static void search(struct bench *b, const char *name, const char *filter, const char *order, bool deep)
{
	struct query_runs_opts o = { .filter = filter, .order_by = order, .limit = 100 };
	struct arena *keep = arena_new();
	double took[REPEATS];
	int i;

	time_search(b, &o, NULL, keep);
	for (i = 0; i < REPEATS; i++) {
		took[i] = time_search(b, &o, deep ? &o.page_token : NULL, keep);
		if (deep && !o.page_token)
			break;
	}
	rows_print(&b->rows, name, "ms p95", p95(took, i ? i : 1), 30);
	arena_free(keep);
}

static void searches(struct bench *b)
{
	uint64_t dice = 1;
	double began = clock_mono_s();
	struct arena *a = arena_new();
	struct query_experiments e;
	long i;

	open_store(b);
	for (i = 0; i < b->runs; i++)
		add_run(b, i, &dice);
	sync_all(b);
	rows_print(&b->rows, "fill: runs/s (10 params, 10 metrics)", "runs/s",
		   (double)b->runs / (clock_mono_s() - began), 0);
	if (query_experiments(b->s, a, &e, &b->err) || e.items[1].run_count + e.items[2].run_count != (uint64_t)b->runs)
		die(b, "the runs are not all there");
	store_fold(b->s, 600);
	search(b, "search: filter on a param and a metric", "params.p1 = 'gpt2' AND metrics.m3 > 0.5", NULL, false);
	search(b, "search: order by a metric", NULL, "metrics.m1 DESC", false);
	search(b, "search: name LIKE", "attributes.name LIKE '%99%'", NULL, false);
	search(b, "search: params as numbers", "params.p0 < 0.01", "params.p0", false);
	search(b, "search: several keys", "experiment = 'big'", "params.p1, metrics.m2.min DESC, start_time", false);
	search(b, "search: deep pages by token", NULL, "metrics.m5", true);
	close_store(b);
	arena_free(a);
	began = clock_mono_s();
	open_store(b);
	rows_print(&b->rows, "open: the store with all these runs", "ms", (clock_mono_s() - began) * 1e3, 100);
	close_store(b);
	clear(b);
}

/* --- one long series --------------------------------------------------------------------------------------- */

#define LONG_RUN "00000000000000000000000000000001"

/* late: points come up to a thousand positions late or early. */
static void fill_series(struct bench *b, bool late)
{
	enum { BATCH = 50000 };
	struct ingest_point *points = calloc(BATCH, sizeof *points);
	uint64_t dice = 7;
	long at, n;
	int i;

	submit(b, &(struct ingest_op){ .kind = &change_run_new, .run = LONG_RUN, .name = "long" });
	for (at = 0; at < b->points; at += n) {
		n = b->points - at < BATCH ? b->points - at : BATCH;
		for (i = 0; i < n; i++)
			points[i] = (struct ingest_point){ "loss",
							   late ? at + i / 1000 * 1000 + i * 7919 % 1000 : at + i,
							   1.7e9 + 0.01 * (double)(at + i),
							   (double)(float)(2 + noise(&dice)), -1 };
		submit(b, &(struct ingest_op){ .kind = &change_points, .run = LONG_RUN, .logged.points = points,
					       .logged.point_count = (size_t)n });
	}
	sync_all(b);
	free(points);
}

static double view(struct bench *b, uint32_t buckets, double from, double to, enum points_x x)
{
	const char *run = LONG_RUN, *key = "loss";
	struct points_chart_opts o =
		{ .sel = { .runs = &run, .run_count = 1, .keys = &key, .key_count = 1, .rank = -1 }, .x = x,
				       .from = from, .to = to, .buckets = buckets };
	double took[REPEATS / 4];
	size_t i;

	for (i = 0; i < REPEATS / 4; i++) {
		struct arena *a = arena_new();
		struct points_chart c;
		double began = clock_mono_s();

		if (points_chart(b->s, &o, a, &c, &b->err))
			die(b, "chart");
		took[i] = clock_mono_s() - began;
		if (isnan(from) && c.lines[0].point_count != (uint64_t)b->points)
			die(b, "the points are not all there");
		arena_free(a);
	}
	qsort(took, REPEATS / 4, sizeof *took, by_size);
	return took[REPEATS / 8] * 1e3;
}

static void long_series(struct bench *b)
{
	double began = clock_mono_s(), n = (double)b->points;

	open_store(b);
	fill_series(b, false);
	rows_print(&b->rows, "one series: points/s", "pts/s", n / (clock_mono_s() - began), 0);
	store_fold(b->s, 600);
	rows_print(&b->rows, "chart of the whole: 2000 buckets", "ms p50", view(b, 2000, NAN, NAN, POINTS_X_STEP), 20);
	rows_print(&b->rows, "chart of the whole: 300 buckets", "ms p50", view(b, 300, NAN, NAN, POINTS_X_STEP), 20);
	rows_print(&b->rows, "chart of a tenth: 2000 buckets", "ms p50",
		   view(b, 2000, n * 0.45, n * 0.55, POINTS_X_STEP), 20);
	rows_print(&b->rows, "chart of a thousandth: 2000 buckets", "ms p50",
		   view(b, 2000, n * 0.5, n * 0.501, POINTS_X_STEP), 20);
	rows_print(&b->rows, "chart of the whole by time: 2000 buckets", "ms p50",
		   view(b, 2000, NAN, NAN, POINTS_X_TIME), 100);
	close_store(b);
	clear(b);
	open_store(b);
	fill_series(b, true);
	store_fold(b->s, 600);
	rows_print(&b->rows, "chart of the whole, out of order: 2000 buckets", "ms p50",
		   view(b, 2000, NAN, NAN, POINTS_X_STEP), 100);
	close_store(b);
	clear(b);
}

/* --- bytes ------------------------------------------------------------------------------------------------- */

static double file_bytes(struct bench *b)
{
	struct stat sb;

	if (stat(b->db, &sb))
		die(b, "no file");
	return (double)sb.st_size;
}

/* Growth of the file by 200 series of noisy losses, one step every 100 ms with 1 ms of jitter, all series of a step at
 * once. An empty store has a page for each table and index, which points do not use. */
static void bytes_per_point(struct bench *b, bool f32, long per_series, double bound)
{
	enum { SERIES = 200 };
	static char keys[SERIES][16];
	struct ingest_point points[SERIES];
	uint64_t dice = 3;
	double time = 1.7e9, value, empty;
	char name[80];
	long i;
	int k;

	open_store(b);
	close_store(b);
	empty = file_bytes(b);
	open_store(b);
	submit(b, &(struct ingest_op){ .kind = &change_run_new, .run = LONG_RUN, .name = "bytes" });
	for (k = 0; k < SERIES; k++)
		snprintf(keys[k], sizeof keys[k], "loss/%03d", k);
	for (i = 0; i < per_series; i++) {
		time += 0.1 + 0.001 * (noise(&dice) - 0.5);
		for (k = 0; k < SERIES; k++) {
			value = 2.5 * exp(-(double)i / 4000) + 0.2 * (noise(&dice) + noise(&dice) - 1);
			points[k] = (struct ingest_point){ keys[k], i, time, f32 ? (double)(float)value : value, -1 };
		}
		submit(b, &(struct ingest_op){ .kind = &change_points, .run = LONG_RUN, .logged.points = points,
					       .logged.point_count = SERIES });
	}
	sync_all(b);
	store_fold(b->s, 600);
	close_store(b);
	open_store(b); /* releases free pages while idle */
	clock_sleep_s(3);
	close_store(b);
	snprintf(name, sizeof name, "bytes per stored point: 200 x %ld, %s", per_series, f32 ? "f32" : "f64");
	rows_print(&b->rows, name, "bytes", (file_bytes(b) - empty) / ((double)per_series * SERIES), bound);
	clear(b);
}

int main(int argc, char **argv)
{
	static struct bench b = { .runs = 100000, .points = 10000000 };
	const char *dir = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			b.rows.json = true;
		else if (!strcmp(argv[i], "--runs") && i + 1 < argc)
			b.runs = strtol(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--points") && i + 1 < argc)
			b.points = strtol(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--dir") && i + 1 < argc)
			dir = argv[++i];
		else
			return fprintf(stderr, "usage: store [--json] [--runs N] [--points N] [--dir DIR]\n"), 2;
	}
	snprintf(b.folder, sizeof b.folder, "%s/dptrack-bench-XXXXXX", dir);
	if (b.runs < 100 || b.points < 10000 || !mkdtemp(b.folder))
		return fprintf(stderr, "store: at least 100 runs and 10000 points, in a folder that can be written\n"),
			2;
	searches(&b);
	long_series(&b);
	bytes_per_point(&b, true, 10000, 9);
	bytes_per_point(&b, false, 10000, 12);
	bytes_per_point(&b, true, 40, 0);
	rmdir(b.folder);
	if (b.rows.json)
		printf("}\n");
	return 0;
}
