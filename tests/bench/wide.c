/* SPDX-License-Identifier: Apache-2.0 */
/* wide.c: one run with many metrics on many ranks: how fast its series are created, and how long other clients wait
 * meanwhile. Each rank sends its journal (or, with --json-batches, one JSON batch) with one point of every metric,
 * over a few connections without pauses. Meanwhile one client posts single points to another run, and one reads that
 * run, its chart, and a search. Everything is read back: the count, and a chart of one metric on every rank.
 *
 *	tests/bench/wide [--json] [--metrics 2000] [--ranks 1024] [--connections 4] [--json-batches] [--dir DIR]
 *
 * series/s: until acknowledged, and until the last one is compacted. others: the single points and the reads, until the
 * last series is acknowledged. --dir: where the store is created (default: $TMPDIR or /tmp); it is deleted at the end.
 * */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/parts/client.h"
#include "tests/bench/parts/rows.h"
#include "tracker/base/clock.h"
#include "tracker/event/event_encode.h"

#define RUN "00000000000000000000000000000d1d"
#define WORKERS_MAX 32
#define STEP_PAUSE_S 0.005 /* between requests of the others */

struct bench {
	struct rows rows;
	int metrics, ranks, connections;
	bool json_batches;
	const char *dir;
	struct client_server server;
	atomic_int next_rank, at_work;
	double acknowledged_s; /* when the last one was */
};

/* 0 .. connections-1 send the series, then one writer and one reader. */
struct worker {
	struct client c;
	struct bench *b;
	double *took;
	size_t count, cap;
};

static void write_journal(const struct bench *b, struct buf *out, int rank, const char *writer)
{
	char key[40];
	int k;

	encode_header(out, clock_wall_s(), &(struct event_header){
		.format = 1, .run_id = client_text(RUN), .writer_id = client_text(writer), .rank = rank,
		.world_size = b->ranks,
		.experiment = client_text("bench"), .run_name = client_text("wide"), .segment = 0, .first_step = 1,
		.first_epoch = 1,
		.host = client_text("here"), .version = client_text("1"),
	});
	for (k = 0; k < b->metrics; k++) {
		snprintf(key, sizeof key, "layer/%05d/grad_norm", k);
		encode_scalar(out, &(struct encode_scalar){ .key = client_text(key), .step = 1,
							    .wall_time = clock_wall_s(), .rank = rank,
							    .value = rank + k * 0.001 });
	}
}

static void write_batch(const struct bench *b, struct buf *out, int rank)
{
	int k;

	buf_adds(out, "{\"points\":[");
	for (k = 0; k < b->metrics; k++)
		buf_addf(out, "%s{\"key\":\"layer/%05d/grad_norm\",\"step\":1,\"rank\":%d,\"value\":%.17g}",
			 k ? "," : "", k, rank, rank + k * 0.001);
	buf_adds(out, "]}");
}

static void send_rank(struct worker *w, int rank, struct buf *body)
{
	char path[200], writer[40];

	buf_reset(body);
	snprintf(writer, sizeof writer, "%032x", 0xc0000 + rank);
	if (w->b->json_batches) {
		write_batch(w->b, body, rank);
		snprintf(path, sizeof path, "/api/v1/runs/%s/metrics", w->b->json_batches ? w->c.run : RUN);
	} else {
		write_journal(w->b, body, rank, writer);
		snprintf(path, sizeof path, "/api/v1/runs/" RUN "/journal?writer=%s&offset=0", writer);
	}
	if (buf_failed(body))
		client_die("bodies", "out of memory");
	client_request(&w->c, "POST", path, body, w->b->json_batches ? "application/json" : "application/octet-stream");
}

static void *bring(struct worker *w)
{
	struct buf body;
	int rank;

	buf_init(&body, (size_t)64 << 20);
	while ((rank = atomic_fetch_add(&w->b->next_rank, 1)) < w->b->ranks)
		send_rank(w, rank, &body);
	buf_done(&body);
	if (atomic_fetch_sub(&w->b->at_work, 1) == 1)
		w->b->acknowledged_s = clock_mono_s();
	return NULL;
}

static void note(struct worker *w, double took)
{
	if (w->count == w->cap) {
		w->cap = w->cap ? w->cap * 2 : 1024;
		w->took = realloc(w->took, w->cap * sizeof *w->took);
		if (!w->took)
			client_die("latencies", "out of memory");
	}
	w->took[w->count++] = took;
}

static void *disturb(struct worker *w, bool reads)
{
	static const char *const paths[] = { "/api/v1/runs/%s", "/api/v1/series?run=%s&key=loss&buckets=100",
					     "/api/v1/runs?limit=20&order_by=metrics.loss" };
	char path[200];
	struct buf body;
	long i;

	buf_init(&body, 1000);
	for (i = 0; atomic_load(&w->b->at_work) > 0; i++) {
		double began;

		buf_reset(&body);
		buf_addf(&body, "{\"points\":[{\"key\":\"loss\",\"step\":%ld,\"value\":1}]}", i);
		snprintf(path, sizeof path, reads ? paths[i % 3] : "/api/v1/runs/%s/metrics", w->c.run);
		began = clock_mono_s();
		client_request(&w->c, reads ? "GET" : "POST", path, reads ? NULL : &body, "application/json");
		note(w, clock_mono_s() - began);
		clock_sleep_s(STEP_PAUSE_S);
	}
	if (!reads && client_stored(&w->c) != (uint64_t)i)
		client_die("single points", "they are not all there");
	buf_done(&body);
	return NULL;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	return w->c.number < w->b->connections ? bring(w) : disturb(w, w->c.number > w->b->connections);
}

static void print_latency(struct bench *b, struct worker *w, const char *who)
{
	static const struct {
		const char *name;
		double part, bound;
	} rows[] = { { "p50", 0.5, 0 }, { "p99", 0.99, 250 }, { "worst", 1, 0 } };
	char name[80];
	size_t i, at;

	qsort(w->took, w->count, sizeof *w->took, client_by_size);
	for (i = 0; w->count && i < 3; i++) {
		at = (size_t)((double)w->count * rows[i].part);
		snprintf(name, sizeof name, "others, %s: %s of %zu", who, rows[i].name, w->count);
		rows_print(&b->rows, name, "ms", w->took[at < w->count ? at : w->count - 1] * 1e3, rows[i].bound);
	}
}

/* One metric on all ranks: one line each, with the value that was sent. */
static void read_back(struct bench *b, struct client *c, const char *run)
{
	char path[200], value[60];
	const char *at;
	double began = clock_mono_s();
	int lines = 0;

	snprintf(path, sizeof path, "/api/v1/series?run=%s&key=layer%%2F%05d%%2Fgrad_norm&rank=all&buckets=1", run,
		 b->metrics - 1);
	at = client_request(c, "GET", path, NULL, "text/plain");
	rows_print(&b->rows, "a chart of one metric on all ranks", "ms", (clock_mono_s() - began) * 1e3, 0);
	snprintf(value, sizeof value, "%.7g", b->ranks - 1 + (b->metrics - 1) * 0.001);
	if (!strstr(at, value))
		client_die("the last rank's value is missing", value);
	for (; (at = strstr(at, "\"rank\":")); at++)
		lines++;
	if (lines < b->ranks)
		client_die("ranks", "they are not all there");
}

static void measure(struct bench *b, struct worker *w)
{
	double began, n = (double)b->metrics * b->ranks;
	int i, all = b->connections + 2;
	uint64_t points;

	for (i = 0; i < all; i++) {
		w[i].b = b;
		client_connect(&w[i].c, &b->server, i);
		if (i == 0 || i == b->connections)
			client_make_run(&w[i].c);
		else
			snprintf(w[i].c.run, sizeof w[i].c.run, "%s", w[i > b->connections ? i - 1 : 0].c.run);
	}
	began = clock_mono_s();
	client_run_all(w, sizeof *w, all, work);
	rows_print(&b->rows, "series acknowledged", "per s", n / (b->acknowledged_s - began), 120000);
	rows_print(&b->rows, "resident then", "MB", client_resident_mb(&b->server, false), 0);
	while (client_metric(&w->c, "dptrack_store_unfolded_points") && clock_mono_s() < began + 600)
		clock_sleep_s(0.1);
	rows_print(&b->rows, "series acknowledged and compacted", "per s", n / (clock_mono_s() - began), 0);
	print_latency(b, &w[b->connections], "a point");
	print_latency(b, &w[b->connections + 1], "a read");
	points = client_metric(&w->c, "dptrack_store_points_total") - w[b->connections].count;
	if (points != (uint64_t)n)
		client_die("points", "they are not all there");
	read_back(b, &w->c, b->json_batches ? w->c.run : RUN);
	clock_sleep_s(3);
	rows_print(&b->rows, "resident 3 s later", "MB", client_resident_mb(&b->server, false), 0);
	rows_print(&b->rows, "resident at most", "MB", client_resident_mb(&b->server, true), 0);
}

int main(int argc, char **argv)
{
	static struct bench b = { .metrics = 2000, .ranks = 1024, .connections = 4 };
	struct worker *w = calloc(WORKERS_MAX, sizeof *w);
	int i;

	b.dir = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			b.rows.json = true;
		else if (!strcmp(argv[i], "--json-batches"))
			b.json_batches = true;
		else if (!strcmp(argv[i], "--metrics") && i + 1 < argc)
			b.metrics = (int)strtol(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--ranks") && i + 1 < argc)
			b.ranks = (int)strtol(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--connections") && i + 1 < argc)
			b.connections = (int)strtol(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--dir") && i + 1 < argc)
			b.dir = argv[++i];
		else
			return fprintf(stderr,
				       "usage: wide [--json] [--metrics N] [--ranks N] [--connections N] "
				       "[--json-batches] [--dir DIR]\n"), 2;
	}
	if (!w || b.metrics < 1 || b.metrics > 50000 || b.ranks < 1 || b.ranks > 100000 || b.connections < 1 ||
	    b.connections > WORKERS_MAX - 2)
		return fprintf(stderr, "wide: 1 to 50000 metrics, 1 to 100000 ranks, 1 to %d connections\n",
			       WORKERS_MAX - 2), 2;
	client_find_build(&b.server, argv[0]);
	client_start(&b.server, b.dir, false);
	b.at_work = b.connections;
	measure(&b, w);
	client_stop(&b.server);
	if (b.rows.json)
		printf("}\n");
	free(w);
	return 0;
}
