/* SPDX-License-Identifier: Apache-2.0 */
/* bench_loader.c: passes over a set with the loader of training. The consumer releases batches at once or, with
 * --consume-rate, at a rate. */
#include "trainer/tools/subcommands.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "tracker/base/json_print.h"
#include "tracker/base/log.h"
#include "tracker/mem/mem.h"
#include "trainer/tools/child.h"

struct loader_pass { /* over the set, or --steps of it; of one rank, then of all */
	double seconds, wait_s, cpu_s;
	double samples, bytes;		/* stored bytes; 0: unknown */
	double workers;			/* loader threads at the end */
	struct dataset_traffic traffic; /* since the pass before, also what this rank fetched for other nodes */
};

struct loader_bench {
	struct rank rank;
	struct shared_cache *shared_cache; /* NULL: none */
	struct workload workload;
	struct train_schedule train_schedule;
	struct loader *loader;
	struct workers workers;		/* result of --workers auto */
	_Atomic uint64_t raw_bytes;	/* read with --no-decode */
	struct dataset_traffic counted; /* up to the last pass */
	struct loader_pass *pass;
	int n;
	int64_t passes, steps; /* wanted passes; steps of each, 0: an epoch of the set */
};

static double process_cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static int open_loader(struct loader_bench *b, struct err *err)
{
	const struct run_config *cfg = b->rank.cfg;
	struct loading_opts o = { .rank = &b->rank,
				  .workload = &b->workload,
				  .train_schedule = &b->train_schedule,
				  .split = SPLIT_TRAIN,
				  .raw_bytes = cfg->no_decode ? &b->raw_bytes : NULL };

	if (cfg->no_decode && !b->workload.data->ops->file)
		return err_set(err, ERR_USAGE, "--no-decode: %.200s holds no files of samples", b->workload.data->path);
	b->train_schedule.steps_end = b->passes * (b->steps ? b->steps : b->train_schedule.steps_per_epoch);
	workers_init(&b->workers, cfg->workers < 0 ? loading_workers(cfg) : 1);
	return loading_open(&b->loader, &o, err);
}

/* Prints the notices of this rank; with quiet drops them. */
static void print_set_notices(const struct loader_bench *b, bool quiet)
{
	char text[512];

	while (b->workload.data && dataset_notice(b->workload.data, text, sizeof(text)))
		if (!quiet)
			log_warn("%s", text);
}

static int open_bench(struct loader_bench *b, const struct job *job, struct err *err)
{
	int rc = 0;

	if (!job->cfg->data_path)
		return err_set(err, ERR_USAGE, "dptrain bench --loader needs --data-path");
	rc = rank_meet(&b->rank, err);
	if (!rc)
		rc = shared_cache_open(&b->shared_cache, &b->rank, err);
	if (!rc)
		rc = workload_open(&b->workload, job->cfg, job->batch, shared_cache_peers(b->shared_cache), err);
	if (!rc)
		rc = train_schedule_make(&b->train_schedule, job->cfg, b->workload.data, err);
	if (b->workload.data && rank_is_root(&b->rank)) /* the first one speaks for all */
		workload_warn(b->workload.data);
	print_set_notices(b, true);
	return rc;
}

/* Sleeps until the consumer needs the next batch. */
static void pace_consumer(const struct run_config *cfg, double from_s, double samples)
{
	double left = cfg->consume_rate > 0 ? from_s + samples / cfg->consume_rate - clock_mono_s() : 0;
	struct timespec t = { .tv_sec = (time_t)left };

	if (left <= 0)
		return;
	t.tv_nsec = (long)(1e9 * (left - (double)t.tv_sec));
	nanosleep(&t, NULL);
}

static void adjust_workers(struct loader_bench *b, double wait_s, double all_s)
{
	if (b->rank.cfg->workers < 0 && !b->workers.done && workers_batch(&b->workers, wait_s, all_s))
		loader_set_active(b->loader, b->workers.n);
}

/* Adds `sign` times t; sign: 1 or -1. */
static void add_dataset_traffic(struct dataset_traffic *to, const struct dataset_traffic *t, int sign)
{
	const uint64_t factor = (uint64_t)(int64_t)sign; /* unsigned sums wrap */

	to->remote_bytes += factor * t->remote_bytes;
	to->cache_bytes += factor * t->cache_bytes;
	to->local_bytes += factor * t->local_bytes;
	to->requests += factor * t->requests;
	to->retries += factor * t->retries;
	to->refetched_bytes += factor * t->refetched_bytes;
	to->peer_bytes += factor * t->peer_bytes;
	to->peer_failures += factor * t->peer_failures;
}

/* Counts what was read since the pass before. Call when all ranks have ended the pass: until then one may fetch blocks
 * for another. */
static void count_pass_traffic(struct loader_bench *b, struct loader_pass *p)
{
	struct dataset_traffic now = dataset_traffic(b->workload.data);

	p->traffic = now;
	add_dataset_traffic(&p->traffic, &b->counted, -1);
	b->counted = now;
}

/* Returns the stored bytes of a pass's samples. With --no-decode those read since the pass before. */
static double count_stored_bytes(struct loader_bench *b, const struct loader_pass *p)
{
	const struct dataset *d = b->workload.data;
	struct dataset_facts f = dataset_facts(d, SPLIT_TRAIN);

	if (b->rank.cfg->no_decode)
		return (double)atomic_exchange(&b->raw_bytes, 0);
	return (double)f.bytes / (double)d->n_samples[SPLIT_TRAIN] * p->samples;
}

/* Makes one pass; steps 0: an epoch of the set. */
static int run_pass(struct loader_bench *b, int64_t steps, struct loader_pass *p, struct err *err)
{
	const struct run_config *cfg = b->rank.cfg;
	double begin = clock_mono_s(), last = begin;
	int rc = 1;

	*p = (struct loader_pass){ .cpu_s = -process_cpu_seconds() };
	if (!b->loader && open_loader(b, err)) /* starts reading immediately */
		return err->code;
	for (int64_t i = 0; rc == 1 && (!steps || i < steps) && !rank_context_stop(b->rank.context); i++) {
		struct loader_batch batch;
		double now;
		bool ends;

		rc = loader_next(b->loader, &batch, err);
		if (rc != 1)
			break;
		p->samples += batch.blank ? 0 : (double)batch.count;
		p->wait_s += batch.wait_s;
		ends = batch.step + 1 == b->train_schedule.steps_per_epoch && batch.micro + 1 == batch.n_micro;
		loader_release(b->loader, &batch);
		pace_consumer(cfg, begin, p->samples);
		now = clock_mono_s();
		adjust_workers(b, batch.wait_s, now - last);
		last = now;
		if (!steps && ends)
			break;
	}
	p->seconds = clock_mono_s() - begin;
	p->cpu_s += process_cpu_seconds();
	p->bytes = count_stored_bytes(b, p);
	p->workers = cfg->workers < 0 ? b->workers.n : (double)cfg->workers;
	return rc < 0 ? rc : 0;
}

/* Sums over the ranks; times take the maximum, as ranks work in parallel. */
static int sum_pass_over_ranks(const struct loader_bench *b, struct loader_pass *p, struct err *err)
{
	struct comm *c = rank_comm(&b->rank);
	struct loader_pass *all = mem_array((size_t)c->world, sizeof(*all)), sum = { 0 };
	int rc;

	all[c->rank] = *p;
	rc = c->ops->all_gather(c, all, sizeof(*all), err);
	for (int r = 0; !rc && r < c->world; r++) {
		const struct loader_pass *one = &all[r];

		sum.seconds = one->seconds > sum.seconds ? one->seconds : sum.seconds;
		sum.wait_s = one->wait_s > sum.wait_s ? one->wait_s : sum.wait_s;
		sum.workers = one->workers > sum.workers ? one->workers : sum.workers;
		sum.cpu_s += one->cpu_s;
		sum.samples += one->samples;
		sum.bytes += one->bytes;
		add_dataset_traffic(&sum.traffic, &one->traffic, 1);
	}
	if (!rc)
		*p = sum;
	free(all);
	return rc;
}

/* Makes the wanted passes, and counts each when all ranks have ended it. */
static int run_loader_passes(struct loader_bench *b, struct err *err)
{
	const struct run_config *cfg = b->rank.cfg;
	int64_t steps = config_given(cfg, FLAG_steps) ? cfg->steps : 0;
	int64_t n = config_given(cfg, FLAG_epochs) ? cfg->epochs : 1;
	struct comm *c = rank_comm(&b->rank);
	int rc = 0;

	b->passes = n;
	b->steps = steps;
	b->counted = dataset_traffic(b->workload.data);
	b->pass = mem_array((size_t)n, sizeof(*b->pass));
	for (; !rc && b->n < n && !rank_context_stop(b->rank.context); b->n++) {
		rc = c->ops->barrier(c, err);
		if (!rc)
			rc = run_pass(b, steps, &b->pass[b->n], err);
		if (!rc)
			rc = c->ops->barrier(c, err);
		if (!rc)
			count_pass_traffic(b, &b->pass[b->n]);
		if (!rc)
			rc = sum_pass_over_ranks(b, &b->pass[b->n], err);
	}
	return rc;
}

static void set_json_count(json_t *o, const char *name, uint64_t n)
{
	json_object_set_new(o, name, json_real((double)n));
}

/* Prints all passes as one JSON object. */
static void print_loader_json(const struct loader_bench *b)
{
	json_t *o = json_object(), *list = json_array();

	for (int i = 0; i < b->n; i++) {
		const struct loader_pass *p = &b->pass[i];
		json_t *j = json_object();

		json_object_set_new(j, "samples_per_s", real_or_null(p->samples / p->seconds));
		json_object_set_new(j, "seconds", real_or_null(p->seconds));
		json_object_set_new(j, "wait_seconds", real_or_null(p->wait_s));
		json_object_set_new(j, "cpu_seconds", real_or_null(p->cpu_s));
		json_object_set_new(j, "samples", real_or_null(p->samples));
		json_object_set_new(j, "bytes", real_or_null(p->bytes));
		set_json_count(j, "remote_bytes", p->traffic.remote_bytes);
		set_json_count(j, "refetched_bytes", p->traffic.refetched_bytes);
		set_json_count(j, "cache_bytes", p->traffic.cache_bytes);
		set_json_count(j, "peer_bytes", p->traffic.peer_bytes);
		set_json_count(j, "peer_failures", p->traffic.peer_failures);
		set_json_count(j, "local_bytes", p->traffic.local_bytes);
		set_json_count(j, "requests", p->traffic.requests);
		set_json_count(j, "retries", p->traffic.retries);
		json_object_set_new(j, "workers", real_or_null(p->workers));
		json_array_append_new(list, j);
	}
	json_object_set_new(o, "ranks", json_integer(b->rank.context->world));
	json_object_set_new(o, "passes", list);
	json_print(o, JSON_PRINT_PAGE);
}

static void print_loader_table(const struct loader_bench *b)
{
	const struct dataset *d = b->workload.data;
	const struct dataset_facts f = dataset_facts(d, SPLIT_TRAIN);

	printf("%s: %lld samples (%s), format %s, %d rank(s)%s\n", d->path, (long long)d->n_samples[SPLIT_TRAIN],
	       sample_kind_name(d->kind), f.format, b->rank.context->world,
	       b->rank.cfg->no_decode ? ", not decoded" : "");
	printf("  %4s %12s %10s %10s %8s %12s %12s %12s %12s %9s %8s\n", "pass", "samples/s", "MB/s", "CPU us",
	       "waiting", "remote bytes", "refetched", "from cache", "from peers", "requests", "workers");
	for (int i = 0; i < b->n; i++) {
		const struct loader_pass *p = &b->pass[i];
		const struct dataset_traffic *t = &p->traffic;

		printf("  %4d %12.1f %10.1f %10.1f %6.1f %% %12.0f %12.0f %12.0f %12.0f %9.0f %8.0f\n", i + 1,
		       p->samples / p->seconds, 1e-6 * p->bytes / p->seconds, 1e6 * p->cpu_s / p->samples,
		       100 * p->wait_s / p->seconds, (double)t->remote_bytes, (double)t->refetched_bytes,
		       (double)t->cache_bytes, (double)t->peer_bytes, (double)t->requests, p->workers);
	}
}

int bench_loader_main(const struct job *job, struct rank_context *context)
{
	struct loader_bench b = { .rank = rank_of(job->cfg, context) };
	struct err err = ERR_INIT;
	int rc = open_bench(&b, job, &err), code = 0;

	if (!rc)
		rc = run_loader_passes(&b, &err);
	print_set_notices(&b, false);
	if (!rc && rank_is_root(&b.rank)) {
		if (job->cfg->json)
			print_loader_json(&b);
		else
			print_loader_table(&b);
	}
	if (rc)
		code = rank_context_fail(context, &err);
	else if (rank_context_stop(context))
		code = 130;
	loader_close(b.loader);
	workload_close(&b.workload);
	shared_cache_close(b.shared_cache);
	rank_close(&b.rank);
	free(b.pass);
	return code;
}
