/* SPDX-License-Identifier: Apache-2.0 */
/* log.c: the cost of one log call for the calling thread: 10^7 calls in bursts of 10^4 from 1 and from 2 threads,
 * median over the bursts, compared with the minimum cost of a queue in the same run (read the clock, copy the point
 * into a ring of the thread). The writer catches up between bursts, outside the measurement, so that nothing is
 * dropped. Also the points per second that the writer thread writes to the file, and the bytes per point there.
 * --json: prints one object on stdout and nothing else. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/dptrack.h"

#define BURST 10000
#define CALLS 10000000
#define THREADS_MAX 2

struct cell {
	double wall_time, value;
	int64_t step;
	const char *key;
	int rank;
};

struct worker {
	struct dptrack_run *run; /* NULL: the plain ring */
	int bursts;
	double *ns; /* per call, for each burst */
	double call_s;
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Not inlined, so that the limit includes a call too. */
__attribute__((noinline)) static void ring_put(struct cell *ring, size_t *head, const struct cell *c)
{
	memcpy(&ring[*head], c, sizeof(*c));
	*head = (*head + 1) % BURST;
}

static void burst_ring(struct cell *ring, int first)
{
	size_t head = 0;

	for (int i = 0; i < BURST; i++)
		ring_put(ring, &head,
			 &(struct cell){ clock_wall_s(), (double)i * 0.1, first + i, "train/loss", -1 });
	__asm__ volatile("" : : "r"(ring) : "memory");
}

static void burst_log(struct dptrack_run *run, int first)
{
	for (int i = 0; i < BURST; i++)
		dptrack_log(run, first + i, "train/loss", (double)i * 0.1);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct cell *ring = calloc(BURST, sizeof(*ring));

	if (!ring)
		return NULL;
	for (int b = 0; b < w->bursts; b++) {
		int64_t start = clock_mono_ns();

		if (w->run)
			burst_log(w->run, b * BURST);
		else
			burst_ring(ring, b * BURST);
		w->ns[b] = (double)(clock_mono_ns() - start) / BURST;
		w->call_s += w->ns[b] * BURST * 1e-9;
		if (w->run)
			dptrack_flush(w->run, 10);
	}
	free(ring);
	return w;
}

/* Median ns per call over all bursts of n threads; negative if the measurement failed. */
static double measure(struct dptrack_run *run, int n)
{
	static double ns[CALLS / BURST];
	struct worker w[THREADS_MAX];
	pthread_t threads[THREADS_MAX];
	int bursts = CALLS / BURST / n;
	bool failed = false;
	void *done;

	for (int i = 0; i < n; i++) {
		w[i] = (struct worker){ run, bursts, ns + i * bursts, 0 };
		if (pthread_create(&threads[i], NULL, work, &w[i]))
			return -1;
	}
	for (int i = 0; i < n; i++) {
		pthread_join(threads[i], &done);
		failed |= !done;
	}
	qsort(ns, (size_t)(bursts * n), sizeof(ns[0]), by_size);
	return failed ? -1 : ns[bursts * n / 2];
}

struct result {
	double limit_ns[THREADS_MAX + 1], call_ns[THREADS_MAX + 1];
	double writer_points_per_s, bytes_per_point;
	unsigned long long dropped;
};

/* How fast the writer thread empties a half-full queue. */
static double writer_rate(struct dptrack_run *run)
{
	double start = clock_mono_s();
	int n = 1 << 19;

	for (int i = 0; i < n; i++)
		dptrack_log(run, i, "train/loss", (double)i * 0.1);
	dptrack_flush(run, 60);
	return n / (clock_mono_s() - start);
}

static int run_all(const char *dir, struct result *r)
{
	struct dptrack_error error;
	struct dptrack_run *run;
	char command[600];
	struct stat st;
	FILE *f;

	if (dptrack_run_open(&run, &(struct dptrack_run_opts){ .runs_dir = dir, .url = "" }, &error)) {
		fprintf(stderr, "log: %s\n", error.text);
		return 1;
	}
	r->writer_points_per_s = writer_rate(run); /* first: before there is much for the disk to sync */
	for (int n = 1; n <= THREADS_MAX; n++) {
		r->limit_ns[n] = measure(NULL, n);
		r->call_ns[n] = measure(run, n);
	}
	r->dropped = dptrack_dropped(run);
	snprintf(command, sizeof(command), "cat '%s'/default/*/*tfevents* | wc -c", dir);
	f = popen(command, "r");
	if (f && fscanf(f, "%lf", &r->bytes_per_point) == 1)
		r->bytes_per_point /= THREADS_MAX * (double)CALLS + (1 << 19);
	if (f)
		pclose(f);
	dptrack_run_close(run, DPTRACK_FINISHED);
	return stat(dir, &st) ? 1 : 0;
}

static void print_table(const struct result *r)
{
	printf("%-28s %10s %10s %8s\n", "cost of one log call", "ns", "limit ns", "ratio");
	for (int n = 1; n <= THREADS_MAX; n++)
		printf("from %d thread%-16s %10.1f %10.1f %8.2f\n", n, n > 1 ? "s" : "", r->call_ns[n], r->limit_ns[n],
		       r->call_ns[n] / r->limit_ns[n]);
	printf("writer thread: %.1f million points/s to the file, %.1f bytes a point; %llu dropped\n",
	       r->writer_points_per_s * 1e-6, r->bytes_per_point, r->dropped);
}

static void print_json(const struct result *r)
{
	printf("{\"calls\":%d,\"burst\":%d,\"threads\":[", CALLS, BURST);
	for (int n = 1; n <= THREADS_MAX; n++)
		printf("%s{\"threads\":%d,\"ns_per_call\":%.2f,\"limit_ns\":%.2f,\"ratio\":%.3f}", n > 1 ? "," : "", n,
		       r->call_ns[n], r->limit_ns[n], r->call_ns[n] / r->limit_ns[n]);
	printf("],\"writer_points_per_s\":%.0f,\"bytes_per_point\":%.2f,\"dropped\":%llu}\n", r->writer_points_per_s,
	       r->bytes_per_point, r->dropped);
}

int main(int argc, char **argv)
{
	const char *tmp = getenv("TMPDIR");
	char dir[512], command[600];
	struct result r = { 0 };
	int rc;

	snprintf(dir, sizeof(dir), "%s/dptrack-bench-log.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(dir)) {
		fprintf(stderr, "log: cannot make a folder in %s\n", tmp && *tmp ? tmp : "/tmp");
		return 1;
	}
	rc = run_all(dir, &r);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	if (system(command))
		fprintf(stderr, "log: cannot remove %s\n", dir);
	if (!rc && argc > 1 && !strcmp(argv[1], "--json"))
		print_json(&r);
	else if (!rc)
		print_table(&r);
	return rc;
}
