/* SPDX-License-Identifier: Apache-2.0 */
/* report.c: params, environment and series of a run. */
#include "trainer/run/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "tracker/base/log.h"
#include "tracker/mem/mem.h"
#include "trainer/launch/machine.h"
#include "trainer/program/memory.h"

#define NEW_LOCK_WAIT_S 1.0 /* wait for a folder that no other process can know yet */
#define SYSTEM_LEAST_S 0.1
#define FINAL_WAIT_S 2.0 /* a failed job ends within 5 s, even without a server */

/* ---- the run ---- */

struct report {
	struct engine *e;
	struct dptrack_run *run;
	int rank;
	int lock_fd;			/* rank 0 */
	bool has_params;		/* an earlier process of the run reached a checkpoint */
	int64_t broken;			/* unreadable images, as last logged */
	struct dataset_traffic traffic; /* … as last logged */
	int workers;			/* threads of the loader, as last logged; -1: not yet */
	int64_t steps;			/* steps of this process */
};

static void log_tracker_warning(void *user, const char *text)
{
	(void)user;
	log_warn("%s", text);
}

/* Returns the server's address; "": no server, whatever DPTRACK_URL is. */
static const char *choose_server(const struct run_config *cfg)
{
	return cfg->report_to && !strcmp(cfg->report_to, "none") ? "" : cfg->report_to;
}

static struct dptrack_run_opts run_opts(const struct run_config *cfg, const char *id, int rank, int world)
{
	return (struct dptrack_run_opts){ .runs_dir = cfg->runs_dir,
					  .experiment = cfg->experiment,
					  .run_name = cfg->run_name,
					  .run_id = id,
					  .rank = rank,
					  .world_size = world,
					  .url = choose_server(cfg),
					  .warn = log_tracker_warning };
}

/* Records numbers as numbers: TensorBoard sorts its columns by them. */
static void record_as_number(struct report *r, const struct config_item *item)
{
	char *end;
	long long whole = strtoll(item->value, &end, 10);
	double real;

	if (!*end) {
		dptrack_param_i64(r->run, item->name, whole);
		return;
	}
	real = strtod(item->value, &end);
	if (*end)
		dptrack_param(r->run, item->name, item->value);
	else
		dptrack_param_f64(r->run, item->name, real);
}

static void record_config_item(void *user, const struct config_item *item)
{
	struct report *r = user;

	if (!item->value[0] || (r->has_params && !(item->traits & CONFIG_SEGMENT)) ||
	    (item->id == FLAG_goal && !r->e->rank.cfg->auto_plan)) /* of a plan; a run is judged by another goal */
		return;
	if (item->traits & CONFIG_SEGMENT)
		dptrack_segment_param(r->run, item->name, item->value);
	else if (item->is_number)
		record_as_number(r, item);
	else
		dptrack_param(r->run, item->name, item->value);
}

static void record_number(struct report *r, const char *key, int64_t v)
{
	dptrack_param_i64(r->run, key, v);
}

static void record_run_params(struct report *r)
{
	const struct engine *e = r->e;
	char text[32];

	config_each(e->rank.cfg, record_config_item, r);
	snprintf(text, sizeof(text), "%d", e->rank.context->world);
	dptrack_segment_param(r->run, "world_size", text);
	if (r->has_params)
		return;
	if (e->train_schedule.steps_per_epoch != INT64_MAX)
		record_number(r, "steps_per_epoch", e->train_schedule.steps_per_epoch);
	record_number(r, "parameters", model_parameter_count(e->prepared.model));
	if (e->workload.identity[0])
		dptrack_param(r->run, "data_hash", e->workload.identity);
	dptrack_param(r->run, "backend_used", e->rank.backend->name);
}

/* Describes the largest program, which is that of a training step. */
static void describe_program(const struct engine *e, char *text, size_t n)
{
	int most = 0;

	for (int i = 0; i < e->prepared.n_programs; i++)
		if (e->prepared.program[i]->graph->n_nodes > most)
			most = e->prepared.program[i]->graph->n_nodes;
	snprintf(text, n, "%d nodes", most);
}

/* Records host, CPU, system, commit, command, version, program and backend. */
static void record_environment(struct report *r)
{
	static const struct {
		const char *key;
		void (*read)(char *text, size_t n);
	} facts[] = { { "host", machine_host },
		      { "cpu", machine_cpu },
		      { "system", machine_system },
		      { "git_commit", machine_commit } };
	char text[4000];

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		facts[i].read(text, 400);
		if (text[0])
			dptrack_environment(r->run, facts[i].key, text);
	}
	machine_command(r->e->job->argc, r->e->job->argv, text, sizeof(text));
	dptrack_environment(r->run, "command", text);
	dptrack_environment(r->run, "dptrain", PACKAGE_VERSION);
	describe_program(r->e, text, sizeof(text));
	dptrack_environment(r->run, "program", text);
	text[0] = '\0';
	if (r->e->rank.backend->version)
		r->e->rank.backend->version(text, 400);
	if (text[0])
		dptrack_environment(r->run, "backend", text);
}

/* Result of rank 0's opening of the run, sent to all ranks. */
struct run_opening {
	int code, segment;
	int64_t first_step, first_epoch;
	char id[33], text[504];
};

/* Rank 0: opens or reopens the run and locks its folder. */
static int open_root_run(struct report *r, const struct resume *resume, struct run_opening *o)
{
	struct dptrack_error error = { 0, "" };
	struct dptrack_run_opts opts;
	struct err err = ERR_INIT;

	if (resume->reopens)
		memcpy(o->id, resume->run_id, sizeof(o->id));
	else if (dptrack_draw_id(o->id))
		return -1;
	opts = run_opts(r->e->rank.cfg, o->id, 0, r->e->rank.context->world);
	opts.reopen = resume->reopens;
	opts.first_step = o->first_step;
	opts.first_epoch = o->first_epoch;
	o->code = dptrack_run_open(&r->run, &opts, &error);
	snprintf(o->text, sizeof(o->text), "%s", error.text);
	if (o->code)
		return o->code;
	o->segment = dptrack_run_segment(r->run);
	if (r->lock_fd < 0 && resume_lock(&r->lock_fd, dptrack_run_dir(r->run), NEW_LOCK_WAIT_S, &err))
		log_warn("%s", err.text); /* a filesystem without locks */
	return 0;
}

/* Publishes what the launcher needs to set the run's status after the ranks have ended. */
static void publish_run(struct shared_status *b, const struct run_opening *o)
{
	memcpy(b->run_id, o->id, sizeof(b->run_id));
	b->segment = o->segment;
	b->first_step = o->first_step;
	b->first_epoch = o->first_epoch;
	atomic_store(&b->run_open, 1);
}

static int join_open_run(struct report *r, const struct run_opening *o, struct err *err)
{
	struct dptrack_run_opts opts = run_opts(r->e->rank.cfg, o->id, r->rank, r->e->rank.context->world);
	struct dptrack_error error = { 0, "" };

	opts.segment = o->segment;
	opts.first_step = o->first_step;
	opts.first_epoch = o->first_epoch;
	if (dptrack_run_open(&r->run, &opts, &error))
		return err_set(err, ERR_IO, "rank %d cannot record: %s", r->rank, error.text);
	return 0;
}

/* Opens the run on rank 0, then on the other ranks; rank 0 records params, inputs and environment. */
static int open_report_run(struct report *r, const struct resume *resume, struct err *err)
{
	struct comm *c = rank_comm(&r->e->rank);
	struct run_opening o = { .code = 0 };
	int rc;

	if (resume->reopens || resume->loads) {
		o.first_step = resume->at.step + 1;
		o.first_epoch = resume->at.epoch + 1;
	}
	if (r->rank == 0 && open_root_run(r, resume, &o) && !o.code)
		o.code = DPTRACK_IO;
	rc = c->ops->broadcast(c, &o, sizeof(o), 0, err);
	if (rc)
		return rc;
	if (o.code)
		return err_set(err, o.code == DPTRACK_USAGE ? ERR_USAGE : ERR_IO, "the run cannot be recorded: %s",
			       o.text);
	if (r->rank > 0)
		return join_open_run(r, &o, err);
	record_run_params(r);
	rc = log_datasets_record(r->run, r->e, r->has_params, err);
	if (rc)
		return rc;
	record_environment(r);
	publish_run(r->e->rank.context->shared_status, &o);
	return 0;
}

/* Describes this rank's device; false: none. */
static bool describe_own_device(const struct rank *r, struct backend_device *ret)
{
	struct err ignored = ERR_INIT;

	return r->backend->describe && !r->backend->describe(r->backend->device(r->module), ret, &ignored);
}

static void record_system(struct report *r)
{
	double interval_s = r->e->rank.cfg->system_interval;
	struct backend_device device;

	if (describe_own_device(&r->e->rank, &device)) {
		dptrack_gpu(r->run, device.uuid);
		if (r->rank == 0)
			dptrack_segment_param(r->run, "gpu", device.name);
	}
	if (interval_s > 0)
		dptrack_system(r->run, fmax(interval_s, SYSTEM_LEAST_S));
}

int report_open(struct report **ret, struct engine *e, struct resume *resume, struct err *err)
{
	struct report *r = mem_zalloc(sizeof(*r));
	int rc;

	r->e = e;
	r->rank = e->rank.context->rank;
	r->has_params = resume->reopens && resume->loads;
	r->workers = -1;
	r->lock_fd = resume->lock_fd;
	resume->lock_fd = -1;
	rc = open_report_run(r, resume, err);
	if (rc) {
		report_close(r, DPTRACK_FAILED);
		return rc;
	}
	record_system(r);
	*ret = r;
	return 0;
}

struct dptrack_run *report_run(struct report *r)
{
	return r->run;
}

const char *report_dir(const struct report *r)
{
	return dptrack_run_dir(r->run);
}

const char *report_run_id(const struct report *r)
{
	return dptrack_run_id(r->run);
}

int report_segment(const struct report *r)
{
	return dptrack_run_segment(r->run);
}

void report_flush(struct report *r, double wait_s)
{
	dptrack_flush(r->run, wait_s);
}

/* ---- series ---- */

/* step: of the optimiser or the epoch, as the series is numbered. Rank 0 writes the series of the run as a whole. */
static void log_series_point(struct report *r, enum series_id id, int64_t step, double value)
{
	const struct series *s = series_get(id);

	if (s->of != SERIES_OF_RUN) {
		dptrack_log_rank(r->run, r->rank, step, s->key, value);
		return;
	}
	dptrack_log(r->run, step, s->key, value);
}

void report_saved(struct report *r, int64_t step, double copy_s, double cpu_s, double wall_s)
{
	log_series_point(r, SERIES_checkpoint_copy, step, copy_s);
	log_series_point(r, SERIES_checkpoint_cpu, step, cpu_s);
	log_series_point(r, SERIES_checkpoint_seconds, step, wall_s);
}

void report_waited(struct report *r, int64_t step, double wait_s)
{
	log_series_point(r, SERIES_checkpoint_wait, step, wait_s);
}

/* Records what was read since the step before; a kind that the set never read has no points. */
static void report_traffic(struct report *r, int64_t step)
{
	struct dataset_traffic now = dataset_traffic(r->e->workload.data), *before = &r->traffic;
	const struct {
		enum series_id series;
		uint64_t now, before;
	} part[] = { { SERIES_data_remote_bytes, now.remote_bytes, before->remote_bytes },
		     { SERIES_data_cache_bytes, now.cache_bytes, before->cache_bytes },
		     { SERIES_data_refetched_bytes, now.refetched_bytes, before->refetched_bytes },
		     { SERIES_data_peer_bytes, now.peer_bytes, before->peer_bytes },
		     { SERIES_data_peer_failures, now.peer_failures, before->peer_failures },
		     { SERIES_data_local_bytes, now.local_bytes, before->local_bytes },
		     { SERIES_data_requests, now.requests, before->requests },
		     { SERIES_data_retries, now.retries, before->retries } };

	for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++)
		if (part[i].now)
			log_series_point(r, part[i].series, step, (double)(part[i].now - part[i].before));
	*before = now;
}

void report_notices(const struct engine *e)
{
	char text[512];

	while (e && dataset_notice(e->workload.data, text, sizeof(text)))
		log_warn("%s", text);
}

static void report_data(struct report *r, int64_t step)
{
	int64_t broken = dataset_broken(r->e->workload.data);

	report_notices(r->e);
	report_traffic(r, step);
	if (broken == r->broken)
		return;
	r->broken = broken;
	log_series_point(r, SERIES_data_unreadable, step, (double)broken);
}

static void record_device_memory(struct report *r, int64_t step)
{
	if (r->e->rank.backend->room)
		log_series_point(r, SERIES_memory_device_bytes, step, (double)memory_on_device(&r->e->rank));
}

void report_step(struct report *r, const struct step_result *s)
{
	bool scaling = r->e->prepared.opts.optimizer.scaling;

	if (r->rank == 0) {
		log_series_point(r, SERIES_train_loss, s->step, s->loss);
		log_series_point(r, SERIES_train_lr, s->step, s->lr);
		log_series_point(r, SERIES_train_grad_norm, s->step, s->grad_norm);
		if (scaling)
			log_series_point(r, SERIES_train_loss_scale, s->step, s->loss_scale);
		if (scaling || s->skipped)
			log_series_point(r, SERIES_train_skipped_steps, s->step, (double)s->skipped);
	}
	for (int t = 0; t < TIME_COUNT; t++)
		if (step_phase_known(r->e, (enum step_phase)t))
			log_series_point(r, step_phase_series((enum step_phase)t), s->step, s->seconds[t]);
	if (r->rank == 0 && r->e->job->planned_step_s > 0)
		log_series_point(r, SERIES_plan_step, s->step, r->e->job->planned_step_s);
	if (r->e->rank.context->world > 1)
		log_series_point(r, SERIES_comm_bytes, s->step, (double)s->sent);
	if (r->e->rank.context->nodes > 1)
		log_series_point(r, SERIES_comm_bytes_nodes, s->step, (double)s->sent_nodes);
	log_series_point(r, SERIES_data_load, s->step, s->load_s);
	log_series_point(r, SERIES_data_load_cpu, s->step, s->load_cpu_s);
	log_series_point(r, SERIES_data_ready, s->step, s->ready);
	if (r->e->rank.cfg->workers < 0 && s->workers != r->workers)
		log_series_point(r, SERIES_data_workers, s->step, s->workers);
	r->workers = s->workers;
	if (++r->steps == 2)
		record_device_memory(r, s->step);
	report_data(r, s->step);
}

void report_cached_step(struct report *r, int64_t step, double seconds)
{
	log_series_point(r, SERIES_doctor_bare_step, step, seconds);
}

void report_memory(struct report *r, int64_t step)
{
	log_series_point(r, SERIES_memory_planned_bytes, step, (double)memory_planned(&r->e->prepared.plan));
	log_series_point(r, SERIES_memory_used_bytes, step, (double)memory_used(r->e->resident_before));
	record_device_memory(r, step);
}

void report_points(struct report *r, const struct eval_metrics *p)
{
	for (int i = 0; r->rank == 0 && i < p->n; i++)
		log_series_point(r, p->point[i].id, p->at, p->point[i].value);
}

void report_epoch(struct report *r, const struct eval_metrics *p)
{
	log_series_point(r, SERIES_memory_peak_bytes, p->at, (double)machine_peak_bytes());
	report_data(r, r->e->step);
	report_points(r, p);
}

void report_close(struct report *r, enum dptrack_status status)
{
	if (!r)
		return;
	dptrack_run_close(r->run, r->rank == 0 ? status : DPTRACK_RUNNING);
	if (r->lock_fd >= 0)
		close(r->lock_fd);
	free(r);
}

void report_final(const struct run_config *cfg, const struct shared_status *shared_status, enum dptrack_status status,
		  const char *reason)
{
	struct dptrack_run_opts o = run_opts(cfg, shared_status->run_id, 0, cfg->world);
	struct dptrack_error error = { 0, "" };
	struct dptrack_run *run;

	o.role = DPTRACK_LAUNCHER;
	o.segment = shared_status->segment;
	o.first_step = shared_status->first_step;
	o.first_epoch = shared_status->first_epoch;
	o.close_wait_s = FINAL_WAIT_S;
	if (dptrack_run_open(&run, &o, &error)) {
		log_warn("the run's final status is not recorded: %s", error.text);
		return;
	}
	if (reason[0])
		dptrack_set_status(run, status, reason);
	dptrack_run_close(run, status);
}
