/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.c: times nodes of several shapes while all ranks compute; plans interpolate between them. All
 * measurements are repeated in turn, and the seconds of a node are the median, because other processes take cores now
 * and then. */
#include "trainer/tools/subcommands.h"

#include <stdio.h>
#include <string.h>

#include "tracker/base/file.h"
#include "tracker/base/json_print.h"
#include "tracker/base/log.h"
#include "trainer/advise/hardware.h"
#include "trainer/launch/machine.h"
#include "trainer/tools/child.h"

#define OUTPUT_MAX ((size_t)64 << 20)
#define WORDS_MAX 40
#define NODES_MOST (HARDWARE_NODES / 2)
#define REPEATS 3 /* repeats of each measurement */

/* The measured models: shapes that cover small and large runs. */
static const char *const workloads[] = {
	"--model gpt2-124m --n-layer 2 --n-embd 256 --n-head 4 --vocab-size 4096 --seq-len 128 -b 4",
	"--model gpt2-124m --n-layer 2 --n-embd 768 --n-head 12 --vocab-size 8192 --seq-len 128 -b 1",
	"--model gpt2-124m --n-layer 2 --n-embd 512 --n-head 8 --vocab-size 4096 --seq-len 256 -b 4",
	"--model gpt2-124m --n-layer 2 --n-embd 128 --n-head 4 --vocab-size 512 --seq-len 64 -b 8 --opt adamw",
	"--model resnet20 --image-size 32 --classes 10 -b 32",
	"--model resnet18 --image-size 64 --classes 100 -b 8",
	"--model resnet50 --image-size 64 --classes 100 -b 4 --opt adamw",
};

struct calibration {
	const struct job *job;
	char path[4096]; /* of the file to write */
	/* "seconds" of a node are a sorted list until all are measured. lone: of a rank alone on the machine. */
	json_t *nodes, *lone, *bandwidth, *products;
	json_t *collectives, *unheld; /* curves, with --link and without it */
	json_t *process_bytes;	      /* sorted: bytes of a run's process in addition to its plan */
	json_t *overhead;	 /* sorted: seconds of a step without communication divided by the sum of its nodes */
	double steps_s[REPEATS]; /* times of the first measurement, for the spread of equal runs */
};

struct measurement {
	const char *workload, *precision;
	int64_t ranks;
	bool linked; /* with --link, if given */
};

/* Builds the words of a child's command line, stored in text. */
static void build_bench_words(const struct calibration *c, const struct measurement *m, char *text, size_t n,
			      char **argv)
{
	const struct run_config *cfg = c->job->cfg;
	char *save = NULL, threads[40] = "", link[100] = "";
	int argc = 0;

	if (config_given(cfg, FLAG_threads) || m->ranks < cfg->nproc_per_node)
		snprintf(threads, sizeof(threads), "--threads %lld", (long long)cfg->threads);
	if (config_given(cfg, FLAG_link) && m->linked)
		snprintf(link, sizeof(link), "--link %s", cfg->link);
	snprintf(text, n, "%s bench %s --precision %s --nproc-per-node %lld %s %s --steps 5 --profile node --json",
		 c->job->argv[0], m->workload, m->precision, (long long)m->ranks, threads, link);
	for (char *w = strtok_r(text, " ", &save); w && argc < WORDS_MAX - 1; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	argv[argc] = NULL;
}

/* Returns the node of that shape, or NULL. */
static json_t *find_timed_node(json_t *nodes, const json_t *like, double flops, double bytes)
{
	const char *op = json_string_value(json_object_get(like, "op"));
	json_t *o;
	size_t i;

	json_array_foreach(nodes, i, o)
		if (!strcmp(json_string_value(json_object_get(o, "op")), op) &&
		    json_equal(json_object_get(o, "dtype"), json_object_get(like, "dtype")) &&
		    json_number_value(json_object_get(o, "flops")) == flops &&
		    json_number_value(json_object_get(o, "bytes")) == bytes)
			return o;
	return NULL;
}

/* Inserts into a sorted list. */
static void insert_sorted(json_t *list, double value)
{
	size_t at = json_array_size(list);

	while (at && json_real_value(json_array_get(list, at - 1)) > value)
		at--;
	json_array_insert_new(list, at, json_real(value));
}

static double sorted_median(const json_t *list)
{
	const size_t n = json_array_size(list);

	return (json_real_value(json_array_get(list, (n - 1) / 2)) + json_real_value(json_array_get(list, n / 2))) / 2;
}

/* Nodes of equal blocks are recorded as one node. */
static void add_timed_node(json_t *nodes, const json_t *row)
{
	const double calls = json_number_value(json_object_get(row, "calls"));
	const double seconds = json_number_value(json_object_get(row, "seconds")) / calls;
	const double flops = json_number_value(json_object_get(row, "flops")) / calls;
	const double bytes = json_number_value(json_object_get(row, "bytes")) / calls;
	const char *op = json_string_value(json_object_get(row, "op"));
	json_t *node;

	if (!op || calls < 1 || seconds <= 0 || bytes < 1)
		return;
	node = find_timed_node(nodes, row, flops, bytes);
	if (node)
		insert_sorted(json_object_get(node, "seconds"), seconds);
	else if (json_array_size(nodes) < NODES_MOST)
		json_array_append_new(nodes, json_pack("{s:s, s:O, s:f, s:f, s:[f]}", "op", op, "dtype",
						       json_object_get(row, "dtype"), "flops", flops, "bytes", bytes,
						       "seconds", seconds));
}

/* Replaces the lists by their medians times `overhead`. */
static void settle_medians(json_t *nodes, double overhead)
{
	json_t *o;
	size_t i;

	json_array_foreach(nodes, i, o)
		json_object_set_new(o, "seconds", json_real(overhead * sorted_median(json_object_get(o, "seconds"))));
}

/* A step takes longer than the sum of its nodes' medians: calls between them, and random interruptions. */
static void add_step_overhead(struct calibration *c, const json_t *root)
{
	const double exposed_s = json_number_value(json_object_get(json_object_get(root, "phases"), "comm_exposed"));
	double nodes_s = 0;
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, "profile"), i, row)
		if (strcmp(json_string_value(json_object_get(row, "op")), "allreduce"))
			nodes_s += json_number_value(json_object_get(row, "seconds"));
	if (nodes_s > 0)
		insert_sorted(c->overhead,
			      (json_number_value(json_object_get(root, "step_seconds")) - exposed_s) / nodes_s);
}

static void add_process_bytes(struct calibration *c, const json_t *root)
{
	insert_sorted(c->process_bytes, fmax(0, json_number_value(json_object_get(root, "peak_bytes")) -
							json_number_value(json_object_get(root, "planned_bytes"))));
}

/* Keeps the bandwidth and curves of the first run, and one product per type. */
static void keep_roofs(struct calibration *c, const json_t *root, const struct measurement *m)
{
	const char *dtype = !strcmp(m->precision, "fp32") ? "f32" : m->precision;
	json_t **curves = m->linked ? &c->collectives : &c->unheld;
	json_t *roof = json_object_get(root, "roof"), *row;
	size_t i;
	bool known = false;

	if (!c->bandwidth)
		c->bandwidth = json_incref(json_object_get(roof, "bandwidth"));
	if (!*curves)
		*curves = json_incref(json_object_get(root, "collectives"));
	json_array_foreach(c->products, i, row)
		known |= !strcmp(json_string_value(json_object_get(row, "dtype")), dtype);
	if (!known && json_is_number(json_object_get(roof, "gflops")))
		json_array_append_new(c->products, json_pack("{s:s, s:i, s:O}", "dtype", dtype, "size", 1024, "gflops",
							     json_object_get(roof, "gflops")));
}

static void keep_measurement(struct calibration *c, const json_t *root, const struct measurement *m)
{
	const bool alone = m->ranks < c->job->cfg->nproc_per_node;
	json_t *row;
	size_t i;

	json_array_foreach(m->linked ? NULL : json_object_get(root, "profile"), i, row)
		add_timed_node(alone ? c->lone : c->nodes, row);
	if (!alone)
		keep_roofs(c, root, m);
	if (!alone && !m->linked)
		add_step_overhead(c, root);
	if (m->ranks == 1) /* the resident memory of several has pages of each other */
		add_process_bytes(c, root);
}

/* Runs `dptrain bench` once and keeps its results. */
static int run_measurement(struct calibration *c, const struct measurement *m, double *ret_step_s, struct err *err)
{
	char text[1000], *argv[WORDS_MAX];
	struct buf out;
	json_t *root = NULL;
	int rc, code = 0;

	build_bench_words(c, m, text, sizeof(text), argv);
	buf_init(&out, OUTPUT_MAX);
	rc = child_run(argv, &out, &code, err);
	if (!rc && code)
		rc = err_set(err, ERR_USAGE, "a measurement failed (exit code %d): dptrain bench %s --precision %s",
			     code, m->workload, m->precision);
	if (!rc)
		root = json_loadb(out.data ? out.data : "", out.len, 0, NULL);
	if (!rc && !root)
		rc = err_set(err, ERR_CORRUPT, "dptrain bench printed no JSON");
	if (!rc) {
		keep_measurement(c, root, m);
		*ret_step_s = json_number_value(json_object_get(root, "step_seconds"));
	}
	json_decref(root);
	buf_done(&out);
	return rc;
}

static bool cpu_takes_bf16(void)
{
	const struct precision bf16 = { DTYPE_BF16, DTYPE_F32, NULL };
	struct backend_choice b;
	struct err ignored = ERR_INIT;
	char why[256];

	return !backend_load(&b, "cpu", &ignored) && (!b.backend->probe || !b.backend->probe(why, sizeof(why))) &&
	       b.backend->takes && b.backend->takes(&bf16);
}

/* Measures each workload once without --link; the first one also on a single rank (if there are several) and with
 * --link. */
static int run_calibration_round(struct calibration *c, int round, bool bf16, struct err *err)
{
	const size_t n = sizeof(workloads) / sizeof(workloads[0]);
	const int64_t ranks = c->job->cfg->nproc_per_node;
	const struct measurement lone = { workloads[0], "fp32", 1, false };
	const struct measurement linked = { workloads[0], "fp32", ranks, true };
	double ignored;
	int rc = ranks > 1 ? run_measurement(c, &lone, &ignored, err) : 0;

	for (int p = 0; !rc && p <= bf16; p++)
		for (size_t i = 0; !rc && i < n; i++) {
			const struct measurement m = { workloads[i], p ? "bf16" : "fp32", ranks, false };

			log_info("calibrating, %d of %d: %s in %s", round + 1, REPEATS, m.workload, m.precision);
			rc = run_measurement(c, &m, &ignored, err);
		}
	return rc ? rc : run_measurement(c, &linked, &c->steps_s[round], err);
}

static int run_calibration(struct calibration *c, struct err *err)
{
	const bool bf16 = cpu_takes_bf16();
	double overhead;
	int rc = 0;

	for (int i = 0; !rc && i < REPEATS; i++)
		rc = run_calibration_round(c, i, bf16, err);
	overhead = rc ? 1 : fmax(1, sorted_median(c->overhead));
	settle_medians(c->nodes, overhead);
	settle_medians(c->lone, overhead);
	return rc;
}

/* Returns the seconds of nodes of a lone rank divided by those of the same nodes while all ranks compute. */
static double alone_ratio(const struct calibration *c)
{
	double lone_s = 0, busy_s = 0;
	json_t *o;
	size_t i;

	json_array_foreach(c->lone, i, o) {
		const json_t *busy = find_timed_node(c->nodes, o, json_number_value(json_object_get(o, "flops")),
						     json_number_value(json_object_get(o, "bytes")));

		if (!busy)
			continue;
		lone_s += json_number_value(json_object_get(o, "seconds"));
		busy_s += json_number_value(json_object_get(busy, "seconds"));
	}
	return busy_s > 0 ? fmin(1, lone_s / busy_s) : 1;
}

/* Returns the standard deviation of equal runs divided by their mean. */
static double relative_spread(const double *seconds)
{
	double mean = 0, squares = 0;

	for (int i = 0; i < REPEATS; i++)
		mean += seconds[i] / REPEATS;
	for (int i = 0; i < REPEATS; i++)
		squares += (seconds[i] - mean) * (seconds[i] - mean);
	return sqrt(squares / (REPEATS - 1)) / mean;
}

/* Fits a link to the curve of sums, for other numbers of ranks. held: with --link, which limits each ring
 * separately. */
static json_t *fit_link(json_t *collectives, bool held)
{
	double latency_s = 1e-5, rate = 1;
	json_t *o;
	size_t i;

	json_array_foreach(collectives, i, o) {
		const double bytes = json_number_value(json_object_get(o, "bytes"));
		const double seconds = json_number_value(json_object_get(o, "seconds"));
		const double ranks = json_number_value(json_object_get(o, "ranks"));

		if (strcmp(json_string_value(json_object_get(o, "op")), "allreduce"))
			continue;
		latency_s = i ? latency_s : seconds / 2 / (ranks - 1);
		rate = 2 * bytes * (ranks - 1) / ranks / seconds;
	}
	return json_pack("{s:f, s:f, s:f}", "latency_s", latency_s, "gbs", 1e-9 * rate, "rings", held ? 2.0 : 1.0);
}

/* Returns the seconds of the largest sum; 0: none. */
static double largest_sum_s(const json_t *curves)
{
	double seconds = 0;
	json_t *o;
	size_t i;

	json_array_foreach(curves, i, o)
		if (!strcmp(json_string_value(json_object_get(o, "op")), "allreduce"))
			seconds = json_number_value(json_object_get(o, "seconds"));
	return seconds;
}

/* Communication threads need cores that do not compute; while --link delays them, they sleep. */
static double overlap_share(const struct calibration *c)
{
	const struct run_config *cfg = c->job->cfg;
	const double held_s = largest_sum_s(c->collectives), unheld_s = largest_sum_s(c->unheld);

	if (cfg->threads + 1 <= config_cores(cfg))
		return 1;
	return config_given(cfg, FLAG_link) && held_s > unheld_s ? 1 - unheld_s / held_s : 0;
}

/* Builds the hardware file. */
static json_t *hardware_json(const struct calibration *c)
{
	const struct run_config *cfg = c->job->cfg;
	char cpu[200], host[100], name[HARDWARE_TEXT];
	json_t *o = json_object();

	machine_cpu(cpu, sizeof(cpu));
	machine_host(host, sizeof(host));
	snprintf(name, sizeof(name), "%.40s x%lld", host, (long long)cfg->nproc_per_node);
	json_object_set_new(o, "name", json_string(name));
	json_object_set_new(o, "source",
			    json_sprintf("dptrain bench --calibrate on %s, %lld ranks of %lld threads", cpu,
					 (long long)cfg->nproc_per_node, (long long)cfg->threads));
	json_object_set_new(o, "memory_bytes", json_integer(machine_available_bytes()));
	json_object_set_new(o, "shared_memory", json_true());
	json_object_set_new(o, "ranks_per_node", json_integer(cfg->nproc_per_node));
	json_object_set_new(o, "threads_per_rank", json_integer(cfg->threads));
	json_object_set_new(o, "alone", json_real(alone_ratio(c)));
	json_object_set_new(o, "process_bytes", json_real(sorted_median(c->process_bytes)));
	json_object_set_new(o, "overlap", json_real(overlap_share(c)));
	json_object_set_new(o, "spread", json_real(relative_spread(c->steps_s)));
	if (c->collectives)
		json_object_set_new(o, "within", fit_link(c->collectives, config_given(cfg, FLAG_link)));
	json_object_set(o, "products", c->products);
	json_object_set(o, "bandwidth", c->bandwidth);
	json_object_set(o, "nodes", c->nodes);
	if (c->collectives)
		json_object_set(o, "collectives", c->collectives);
	return o;
}

/* Names the file, and fails if it cannot be written: measuring takes minutes. */
static int place_calibration(struct calibration *c, struct err *err)
{
	int rc = c->job->cfg->out ? 0 : hardware_place(c->path, sizeof(c->path), err);

	if (c->job->cfg->out)
		snprintf(c->path, sizeof(c->path), "%s", c->job->cfg->out);
	if (!rc)
		rc = file_make_parents(c->path, 0777, err);
	return rc ? rc : file_check_target(c->path, err);
}

static int write_calibration(const struct calibration *c, struct err *err)
{
	struct buf text;
	int rc;

	buf_init(&text, OUTPUT_MAX);
	json_append(hardware_json(c), JSON_INDENT(1) | JSON_REAL_PRECISION(6), &text);
	rc = buf_failed(&text) ? err_nomem(err, "the hardware file") : file_replace(c->path, text.data, text.len, err);
	buf_done(&text);
	if (!rc)
		printf("%s: %zu nodes, %zu points of collectives; equal runs differ by %.1f %%\n", c->path,
		       json_array_size(c->nodes), json_array_size(c->collectives), 100 * relative_spread(c->steps_s));
	return rc;
}

int calibrate_main(const struct job *job, struct err *err)
{
	struct calibration c = { .job = job, .nodes = json_array(), .lone = json_array(),
				 .products = json_array(), .overhead = json_array(),
				 .process_bytes = json_array() };
	int rc = place_calibration(&c, err);

	if (!rc)
		rc = run_calibration(&c, err);
	if (!rc)
		rc = write_calibration(&c, err);
	json_decref(c.nodes);
	json_decref(c.lone);
	json_decref(c.overhead);
	json_decref(c.process_bytes);
	json_decref(c.products);
	json_decref(c.bandwidth);
	json_decref(c.collectives);
	json_decref(c.unheld);
	return rc;
}
