/* engine.c: from a configuration to an engine that can step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "trainer/program/kernels.h"
#include "trainer/program/loading.h"
#include "trainer/program/memory.h"
#include "trainer/program/subject.h"
#include "trainer/state/draw.h"
#include "trainer/state/initial.h"
#include "trainer/state/resume.h"
#include "trainer/weights/weights.h"

#define SETUP_LIMIT_S 600.0 /* rank 0 may time kernels and read data meanwhile */

bool engine_is_root(const struct engine *e)
{
	return e->seat->rank == 0;
}

struct precision engine_precision(const struct run_config *cfg)
{
	switch (cfg->precision) {
	case CONFIG_PRECISION_FP64:
		return (struct precision){ DTYPE_F64, DTYPE_F64 };
	case CONFIG_PRECISION_FP16:
		return (struct precision){ DTYPE_F16, DTYPE_F32 };
	case CONFIG_PRECISION_BF16:
		return (struct precision){ DTYPE_BF16, DTYPE_F32 };
	default:
		return (struct precision){ DTYPE_F32, DTYPE_F32 };
	}
}

bool engine_saves(const struct run_config *cfg)
{
	bool none = config_given(cfg, FLAG_save_total_limit) && !cfg->save_total_limit;

	return cfg->command != COMMAND_BENCH && !cfg->test_only && !none;
}

static int open_lanes(struct engine *e, struct err *err)
{
	const struct seat *s = e->seat;
	struct comm_shm_opts o = { .rank = s->rank, .world = s->world, .timeout_s = fmax(SETUP_LIMIT_S, e->cfg->ddp_timeout) };
	int rc = 0;

	for (int i = 0; !rc && i < SEAT_LANES; i++) {
		o.fd = s->lane_fd[i];
		rc = s->world == 1 ? comm_self_open(&e->lane[i], err) : comm_shm_open(&e->lane[i], &o, err);
	}
	return rc;
}

/* What is set for the threads of a backend's libraries before they are loaded. A user's own setting stays. A thread
 * that has spun for long at a barrier is taken for a hog by a busy machine's scheduler, which then keeps it from its
 * partner for whole time slices (a step became 20 times slower); spinning for 10 us costs an idle machine nothing. */
static void set_threads(int threads)
{
	char text[16];

	if (!getenv("OMP_WAIT_POLICY"))
		setenv("GOMP_SPINCOUNT", "1000", 0);
	snprintf(text, sizeof(text), "%d", threads);
	setenv("OMP_NUM_THREADS", text, 1);
	setenv("OMP_DYNAMIC", "false", 0);
}

static int pick_backend(struct engine *e, const struct precision *p, struct err *err)
{
	static const char *const names[] = { "auto", "ref", "cpu", "cuda" };
	const struct backend *b;
	int rc = backend_load(&e->choice, names[e->cfg->backend], err);

	if (rc)
		return rc;
	b = e->choice.backend;
	if (e->cfg->backend == CONFIG_BACKEND_AUTO && b->streams) /* device streams are not driven yet */
		rc = backend_load(&e->choice, "cpu", err);
	if (rc)
		return rc;
	b = e->choice.backend;
	if (b->takes && !b->takes(p))
		return err_set(err, ERR_USAGE,
			       "backend %s does not compute in %s on this machine; choose another --precision or "
			       "--backend",
			       b->name, dtype_name(p->low));
	e->backend = b;
	return 0;
}

/* Threads of one layer wait for each other: with fewer cores than threads every wait is as long as a time slice. */
static void warn_of_crowding(const struct engine *e)
{
	int cores = config_cores(e->cfg);
	char label[300];

	if (engine_is_root(e) && e->cfg->threads > cores)
		log_warn("%s %lld: there %s %d core%s for each rank; more threads than that make steps slower, not faster",
			 config_label(e->cfg, FLAG_threads, label, sizeof(label)), (long long)e->cfg->threads,
			 cores > 1 ? "are" : "is", cores, cores > 1 ? "s" : "");
}

static int open_backend(struct engine *e, struct err *err)
{
	struct precision p = engine_precision(e->cfg);
	int rc;

	warn_of_crowding(e);
	set_threads((int)e->cfg->threads);
	rc = pick_backend(e, &p, err);
	if (rc)
		return rc;
	return e->backend->open(&(struct backend_opts){ .threads = (int)e->cfg->threads,
							.local_rank = e->seat->local_rank,
							.deterministic = e->cfg->deterministic },
				&e->module, err);
}

static int check_data(struct engine *e, const struct model *m, struct err *err)
{
	const struct run_config *cfg = e->cfg;
	const struct dataset *d = e->data;

	if (!d->endless && d->n_samples[SPLIT_TRAIN] < cfg->global_batch_size && !cfg->test_only)
		return err_set(err, ERR_USAGE,
			       "a global batch of %lld samples is larger than the training set of %s (%lld samples); "
			       "lower --batch-size",
			       (long long)cfg->global_batch_size, d->path, (long long)d->n_samples[SPLIT_TRAIN]);
	if (cfg->eval_steps && !d->n_samples[SPLIT_VAL] && !cfg->test_only)
		return err_set(err, ERR_USAGE, "--eval-steps: %s has no samples to evaluate", d->path);
	if (cfg->test_only && !d->n_samples[SPLIT_VAL])
		return err_set(err, ERR_USAGE, "--test-only: %s has no samples to evaluate", d->path);
	return subject_settle(e, m, err);
}

static int make_samplers(struct engine *e, struct err *err)
{
	const struct run_config *cfg = e->cfg;
	const struct dataset *d = e->data;

	e->train = (struct sampler){ .n_samples = d->n_samples[SPLIT_TRAIN],
				     .global_batch = cfg->global_batch_size,
				     .micro = cfg->batch_size,
				     .world = e->seat->world,
				     .seed = (uint64_t)cfg->seed,
				     .shuffle = !d->endless,
				     .endless = d->endless };
	e->eval = (struct sampler){ .n_samples = d->n_samples[SPLIT_VAL],
				    .global_batch = cfg->batch_size * e->seat->world,
				    .micro = cfg->batch_size,
				    .world = e->seat->world };
	e->steps_per_epoch = cfg->test_only ? 1 : sampler_steps(&e->train);
	e->lr = lr_schedule_make(cfg, e->steps_per_epoch);
	e->steps_total = lr_schedule_steps_total(cfg, e->steps_per_epoch);
	return lr_schedule_check(cfg, e->steps_per_epoch, err);
}

/* Whether the run evaluates: sets without an end are only evaluated when somebody asks for it. */
static bool evaluates(const struct engine *e)
{
	const struct run_config *cfg = e->cfg;

	if (!e->data->n_samples[SPLIT_VAL] || cfg->command == COMMAND_BENCH)
		return false;
	return !e->data->endless || cfg->test_only || cfg->save_outputs;
}

/* A series that the run will never write cannot choose the best checkpoint. */
static int check_best(const struct engine *e, struct err *err)
{
	const char *series = e->cfg->save_best;

	if (!series || evaluates(e) || !strcmp(series, "epoch/train_loss"))
		return 0;
	return err_set(err, ERR_USAGE, "--save-best %s: %.200s has nothing to evaluate", series, e->data->path);
}

static int prepare_all(struct engine *e, struct err *err)
{
	const struct run_config *cfg = e->cfg;
	struct prepare_shapes shapes = { .snapshot = engine_is_root(e) && engine_saves(cfg) && (cfg->save_steps || cfg->save_best) };
	struct program_opts o = {
		.model = e->model,
		.precision = engine_precision(cfg),
		.backend = e->backend,
		.module = e->module,
		.strategy = strategies_table[cfg->strategy],
		.sharing = { .world = e->seat->world,
			     .bucket_bytes = (size_t)(cfg->bucket_cap_mb * 1048576.0),
			     .sync_bn = cfg->sync_bn },
		.optimizer = optimizer_opts_of(cfg),
		.freeze = cfg->freeze,
		.keep_grads = cfg->dump_grads != NULL,
		.recompute = (enum recompute)cfg->activation_checkpointing,
	};

	o.config = subject_config(e, e->model);
	for (int s = 0; s < STREAM_COUNT; s++)
		o.env[s] = (struct kernel_env){ .threads = (int)cfg->threads,
						.deterministic = cfg->deterministic,
						.comm = e->lane[s],
						.module = e->module };
	if (!cfg->test_only) {
		shapes.n_train = sampler_shapes(&e->train, shapes.train);
		shapes.loader_bytes[SPLIT_TRAIN] = loading_bytes(e, SPLIT_TRAIN);
	}
	if (evaluates(e)) {
		shapes.n_eval = sampler_shapes(&e->eval, shapes.eval);
		shapes.loader_bytes[SPLIT_VAL] = loading_bytes(e, SPLIT_VAL);
	}
	return prepare_programs(&e->prepared, &o, &shapes, err);
}

int engine_plan(struct engine *e, struct err *err)
{
	int rc = make_samplers(e, err);

	return rc ? rc : prepare_all(e, err);
}

static int open_described(struct engine *e, struct err *err)
{
	const struct model *m = subject_model(e->cfg->model, err);
	int rc = m ? subject_open_data(e, m, err) : err->code;

	if (!rc)
		e->norm = dataset_norm(e->data);
	if (!rc)
		rc = check_data(e, m, err);
	if (!rc)
		rc = initial_given(e, err);
	e->model = m;
	return rc;
}

static struct engine *engine_new(const struct job *job, struct seat *seat)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->job = job;
	e->cfg = job->cfg;
	e->seat = seat;
	return e;
}

int engine_open(struct engine **ret, const struct job *job, struct seat *seat, struct err *err)
{
	struct engine *e = engine_new(job, seat);
	int rc;

	if (!e)
		return err_set(err, ERR_NOMEM, "out of memory: engine");
	e->hooks = hooks_read(seat->rank);
	for (int s = 0; s < SPLIT_COUNT && e->cfg->workers < 0; s++)
		workers_init(&e->loading[s], loading_workers(e));
	rc = open_lanes(e, err); /* first: from now on a rank that ends is missed by the others */
	if (!rc)
		rc = open_described(e, err);
	if (!rc)
		rc = open_backend(e, err);
	if (!rc)
		rc = resume_kernels(e, err);
	if (!rc)
		rc = kernels_plan(e, err);
	if (!rc && e->seat->local_rank == 0)
		rc = memory_check(e, err);
	memory_begin(e);
	if (!rc)
		rc = initial_check_freeze(e, err);
	if (!rc)
		rc = check_best(e, err);
	if (!rc)
		rc = prepare_memory(&e->prepared, err);
	if (!rc && !e->cfg->resume) /* resume_open knows whether a checkpoint gives them */
		rc = draw_values(e, err);
	if (!rc)
		rc = exec_new(&e->exec, &e->prepared, err);
	if (!rc && e->cfg->init_from)
		rc = initial_load(e, err);
	if (rc) {
		engine_close(e);
		return rc;
	}
	*ret = e;
	return 0;
}

static int prepare_evaluation(struct engine *e, const struct engine_evaluation *x, struct err *err)
{
	struct prepare_shapes shapes = { .n_eval = x->n };
	struct program_opts o = { .model = e->model,
				  .config = x->config,
				  .precision = engine_precision(e->cfg),
				  .backend = e->backend,
				  .module = e->module,
				  .strategy = strategies_table[STRATEGY_single],
				  .sharing = { .world = 1 } };

	for (int i = 0; i < x->n; i++)
		shapes.eval[i] = (struct micro_shape){ .size = x->sizes[i], .last = true };
	for (int s = 0; s < STREAM_COUNT; s++)
		o.env[s] = (struct kernel_env){ .threads = (int)e->cfg->threads,
						.deterministic = e->cfg->deterministic,
						.comm = e->lane[s],
						.module = e->module };
	return prepare_programs(&e->prepared, &o, &shapes, err);
}

int engine_open_evaluation(struct engine **ret, const struct engine_evaluation *o, struct err *err)
{
	struct engine *e = engine_new(o->job, o->seat);
	int rc;

	if (!e)
		return err_set(err, ERR_NOMEM, "out of memory: engine");
	e->model = o->model;
	rc = open_lanes(e, err);
	if (!rc)
		rc = open_backend(e, err);
	if (!rc)
		rc = prepare_evaluation(e, o, err);
	if (!rc)
		rc = prepare_memory(&e->prepared, err);
	if (!rc)
		rc = exec_new(&e->exec, &e->prepared, err);
	if (!rc)
		rc = weights_load(e->prepared.program[0]->graph,
				  &(struct weights_load_opts){ .path = e->cfg->init_from },
				  &(struct weights_access){ .put = files_put, .user = e }, err);
	if (rc) {
		engine_close(e);
		return rc;
	}
	*ret = e;
	return 0;
}

int engine_open_described(struct engine **ret, const struct job *job, struct seat *seat, struct err *err)
{
	struct engine *e = engine_new(job, seat);
	int rc;

	if (!e)
		return err_set(err, ERR_NOMEM, "out of memory: engine");
	rc = open_described(e, err);
	if (rc) {
		engine_close(e);
		return rc;
	}
	*ret = e;
	return 0;
}

int engine_open_plan(struct engine **ret, const struct job *job, struct seat *seat, struct err *err)
{
	struct engine *e = engine_new(job, seat);
	int rc;

	if (!e)
		return err_set(err, ERR_NOMEM, "out of memory: engine");
	rc = open_described(e, err);
	e->cfg->deterministic = true; /* a plan times nothing: kernels are chosen by rule */
	if (!rc)
		rc = open_backend(e, err);
	if (!rc)
		rc = engine_plan(e, err);
	if (rc) {
		engine_close(e);
		return rc;
	}
	*ret = e;
	return 0;
}

int engine_begin(struct engine *e, struct err *err)
{
	int rc = loading_open(&e->loader, e, SPLIT_TRAIN, err);

	for (int i = 0; i < SEAT_LANES; i++)
		e->lane[i]->ops->limit(e->lane[i], e->cfg->ddp_timeout);
	e->mark_s = clock_mono_s();
	return rc;
}

void engine_close(struct engine *e)
{
	if (!e)
		return;
	loader_close(e->loader);
	exec_free(e->exec);
	prepare_done(&e->prepared);
	if (e->module && e->backend->close)
		e->backend->close(e->module);
	dataset_close(e->data);
	for (int i = SEAT_LANES - 1; i >= 0; i--)
		if (e->lane[i])
			e->lane[i]->ops->close(e->lane[i]);
	free(e);
}
