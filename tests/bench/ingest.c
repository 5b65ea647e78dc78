/* SPDX-License-Identifier: Apache-2.0 */
/* ingest.c: how many points per second a server stores durably over HTTP, with a cheap client: JSON batches (v1 and
 * MLflow's log-batch), the same with a slow disk (10 ms more in every fdatasync), and journals in ranges of 1 MiB from
 * 4 writers of 200 series. Acknowledged points are read back and counted; each row is printed with its bound.
 *
 *	tests/bench/ingest [--json] [--seconds 60] [--batches 100] [--only TEXT] [--dir DIR]
 *
 * --seconds: duration of the journals. --only: rows whose name contains TEXT. --dir: where the stores are created
 * (default: $TMPDIR or /tmp); they are deleted at the end. The slow disk needs tests/tracker/failio.la (make check
 * builds it). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/parts/client.h"
#include "tests/bench/parts/rows.h"
#include "tracker/base/clock.h"
#include "tracker/event/event_encode.h"

#define RANGE_BYTES ((size_t)1 << 20)
#define SERIES 200
#define JOURNAL_WRITERS 4

struct bench {
	struct rows rows;
	double seconds;
	int batches;
	const char *only, *dir;
	struct client_server server;
};

struct worker {
	struct client c;
	struct bench *b;
	struct buf *bodies; /* one per request */
	double *took;
	const char *path;
	/* journals */
	double begin_s;
	uint64_t points, points_early;
};

static struct worker *make_workers(struct bench *b, int n)
{
	struct worker *w = calloc((size_t)n, sizeof *w);
	int i;

	if (!w)
		client_die("clients", "out of memory");
	for (i = 0; i < n; i++) {
		w[i].b = b;
		client_connect(&w[i].c, &b->server, i);
	}
	return w;
}

/* --- batches of JSON --------------------------------------------------------------------------------------- */

static void write_batch(struct worker *w, struct buf *body, bool mlflow, int size, int number)
{
	int i;

	buf_init(body, (size_t)64 << 20);
	if (mlflow)
		buf_addf(body, "{\"run_id\":\"%s\",\"metrics\":[", w->c.run);
	else
		buf_adds(body, "{\"points\":[");
	for (i = number * size; i < (number + 1) * size; i++)
		buf_addf(body, mlflow ? "%s{\"key\":\"loss\",\"value\":%.17g,\"timestamp\":%lld,\"step\":%d}"
				      : "%s{\"key\":\"loss\",\"value\":%.17g,\"wall_time\":%lld.125,\"step\":%d}",
			 i > number * size ? "," : "", 1.0 / (1 + i), (mlflow ? 1795000000000LL : 1795000000LL) + i, i);
	buf_adds(body, mlflow ? "],\"params\":[],\"tags\":[]}" : "]}");
	if (buf_failed(body))
		client_die("out of memory", "bodies");
}

static void *send_batches(void *arg)
{
	struct worker *w = arg;
	int i;

	for (i = 0; i < w->b->batches; i++) {
		double began = clock_mono_s();

		client_request(&w->c, "POST", w->path, &w->bodies[i], "application/json");
		w->took[i] = clock_mono_s() - began;
	}
	return NULL;
}

static void prepare(struct worker *w, bool mlflow, int size, double *took)
{
	char path[100];
	int i;

	client_make_run(&w->c);
	snprintf(path, sizeof path, "/api/v1/runs/%s/metrics", w->c.run);
	w->path = mlflow ? "/api/2.0/mlflow/runs/log-batch" : strdup(path);
	w->bodies = calloc((size_t)w->b->batches, sizeof *w->bodies);
	w->took = took;
	for (i = 0; i < w->b->batches; i++)
		write_batch(w, &w->bodies[i], mlflow, size, i);
}

static void batches(struct bench *b, bool mlflow, int clients, int size, bool slow)
{
	int n = b->batches, i, k;
	double *took = calloc((size_t)(clients * n), sizeof *took), seconds, bound = clients > 1 ? 100000 : 0;
	struct worker *w;
	char name[80], p[100];

	snprintf(name, sizeof name, "%s %d x %d%s", mlflow ? "log-batch" : "metrics", clients, size,
		 slow ? ", slow disk" : "");
	if (b->only && !strstr(name, b->only))
		return;
	client_start(&b->server, b->dir, slow);
	w = make_workers(b, clients);
	for (i = 0; i < clients; i++)
		prepare(&w[i], mlflow, size, took + i * n);
	seconds = client_run_all(w, sizeof *w, clients, send_batches);
	for (i = 0; i < clients; i++)
		if (client_stored(&w[i].c) != (uint64_t)n * (uint64_t)size)
			client_die(name, "the points are not all there");
	rows_print(&b->rows, name, "pts/s", (double)clients * n * size / seconds, bound);
	qsort(took, (size_t)(clients * n), sizeof *took, client_by_size);
	snprintf(p, sizeof p, "%s: p50", name);
	rows_print(&b->rows, p, "ms", took[clients * n / 2] * 1e3, 0);
	snprintf(p, sizeof p, "%s: p99", name);
	rows_print(&b->rows, p, "ms", took[clients * n * 99 / 100] * 1e3, 250);
	for (i = 0; i < clients; i++) {
		for (k = 0; k < n; k++)
			buf_done(&w[i].bodies[k]);
		free(w[i].bodies);
		client_close(&w[i].c);
	}
	free(w);
	free(took);
	client_stop(&b->server);
}

/* --- journals ---------------------------------------------------------------------------------------------- */

static void begin_journal(struct worker *w, struct buf *b, const char *writer)
{
	snprintf(w->c.run, sizeof w->c.run, "%032x", 0xa00 + w->c.number);
	encode_header(b, clock_wall_s(), &(struct event_header){
		.format = 1, .run_id = client_text(w->c.run), .writer_id = client_text(writer), .rank = 0,
		.world_size = 1, .experiment = client_text("bench"),
		.run_name = client_text("journal"), .segment = 0, .first_step = 1, .first_epoch = 1,
		.host = client_text("here"), .version = client_text("1"),
	});
}

/* One step of all series. */
static void encode_step(struct buf *b, int64_t step)
{
	double now = clock_wall_s();
	char key[32];
	int k;

	for (k = 0; k < SERIES; k++) {
		snprintf(key, sizeof key, "layer/%03d/norm", k);
		encode_scalar(b, &(struct encode_scalar){ .key = client_text(key), .step = step, .wall_time = now,
							  .rank = EVENT_RANK_RUN,
							  .value = (double)(float)(1.0 / (double)(step + k)) });
	}
}

static void *send_journal(void *arg)
{
	struct worker *w = arg;
	char writer[40], path[200];
	uint64_t offset = 0, pending = 0;
	int64_t step = 0;
	struct buf b;

	buf_init(&b, RANGE_BYTES * 2);
	snprintf(writer, sizeof writer, "%032x", 0xb00 + w->c.number);
	begin_journal(w, &b, writer);
	while (clock_mono_s() < w->begin_s + w->b->seconds) {
		while (b.len + 100 * SERIES < RANGE_BYTES) {
			encode_step(&b, ++step);
			pending += SERIES;
		}
		snprintf(path, sizeof path, "/api/v1/runs/%s/journal?writer=%s&offset=%llu", w->c.run, writer,
			 (unsigned long long)offset);
		client_request(&w->c, "POST", path, &b, "application/octet-stream");
		offset += b.len;
		w->points += pending;
		if (clock_mono_s() < w->begin_s + 10)
			w->points_early = w->points;
		pending = 0;
		buf_reset(&b);
	}
	buf_done(&b);
	return NULL;
}

static void journals(struct bench *b)
{
	uint64_t points = 0, early = 0;
	double seconds, ended;
	struct worker *w;
	int i;

	if (b->only && !strstr("journals", b->only))
		return;
	client_start(&b->server, b->dir, false);
	w = make_workers(b, JOURNAL_WRITERS);
	for (i = 0; i < JOURNAL_WRITERS; i++)
		w[i].begin_s = clock_mono_s();
	seconds = client_run_all(w, sizeof *w, JOURNAL_WRITERS, send_journal);
	ended = clock_mono_s();
	for (i = 0; i < JOURNAL_WRITERS; i++) {
		points += w[i].points;
		early += w[i].points_early;
		if (client_stored(&w[i].c) != w[i].points)
			client_die("journals", "the points are not all there");
	}
	rows_print(&b->rows, "journals: first 10 s", "pts/s", (double)early / (b->seconds < 10 ? b->seconds : 10), 1e6);
	rows_print(&b->rows, "journals: all the time", "pts/s", (double)points / seconds, 5e5);
	while (client_metric(&w->c, "dptrack_store_unfolded_points") && clock_mono_s() < ended + 120)
		clock_sleep_s(0.1);
	rows_print(&b->rows, "journals: compacted after", "s", clock_mono_s() - ended, 60);
	free(w);
	client_stop(&b->server);
}

int main(int argc, char **argv)
{
	struct bench b = { .seconds = 60, .batches = 100, .dir = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp" };
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			b.rows.json = true;
		else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
			b.seconds = strtod(argv[++i], NULL);
		else if (!strcmp(argv[i], "--batches") && i + 1 < argc)
			b.batches = (int)strtol(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--only") && i + 1 < argc)
			b.only = argv[++i];
		else if (!strcmp(argv[i], "--dir") && i + 1 < argc)
			b.dir = argv[++i];
		else
			return fprintf(stderr,
				       "usage: ingest [--json] [--seconds S] [--batches N] [--only TEXT] [--dir "
				       "DIR]\n"), 2;
	}
	if (b.batches < 1 || b.batches > 100000 || !(b.seconds > 0))
		return fprintf(stderr, "ingest: 1 to 100000 batches, for some seconds\n"), 2;
	client_find_build(&b.server, argv[0]);
	batches(&b, false, 1, 1000, false);
	batches(&b, false, 8, 1000, false);
	batches(&b, false, 32, 100, false);
	batches(&b, true, 8, 1000, false);
	batches(&b, true, 32, 100, false);
	batches(&b, false, 8, 1000, true);
	journals(&b);
	if (b.rows.json)
		printf("}\n");
	return 0;
}
