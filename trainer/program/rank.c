/* SPDX-License-Identifier: Apache-2.0 */
/* rank.c: opens the communicators and the backend of a rank. */
#include "trainer/program/rank.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/log.h"
#include "trainer/comm/hier.h"
#include "trainer/ops/cast/cast.h"

#define SETUP_LIMIT_S 600.0 /* rank 0 may measure kernels and read data during that time */

struct rank rank_of(const struct run_config *cfg, const struct rank_context *context)
{
	return (struct rank){ .cfg = cfg, .context = context, .by_rule = cfg->deterministic };
}

bool rank_is_root(const struct rank *r)
{
	return r->context->rank == 0;
}

struct comm *rank_comm(const struct rank *r)
{
	return r->comm;
}

struct precision rank_precision(const struct rank *r)
{
	switch (r->cfg->precision) {
	case CONFIG_PRECISION_FP64:
		return (struct precision){ DTYPE_F64, DTYPE_F64, NULL };
	case CONFIG_PRECISION_FP16:
		return (struct precision){ DTYPE_F16, DTYPE_F32, casts_of_level((int)r->cfg->opt_level) };
	case CONFIG_PRECISION_BF16:
		return (struct precision){ DTYPE_BF16, DTYPE_F32, NULL };
	default:
		return (struct precision){ DTYPE_F32, DTYPE_F32, NULL };
	}
}

int rank_choose_precision(struct run_config *cfg, const struct rank *r, struct err *err)
{
	const struct precision bf16 = { DTYPE_BF16, DTYPE_F32, NULL };
	const struct backend *b = r->backend;
	const bool open = cfg->decoder && !cfg->test_only && cfg->origin[FLAG_precision] == ORIGIN_DEFAULT;
	double slower = (b->takes && !b->takes(&bf16)) || (b->slow && b->slow(r->module, &bf16));
	int rc = open && r->comm ? r->comm->ops->allreduce(r->comm, &slower, 1, DTYPE_F64, err) : 0;

	if (rc || !open || slower > 0)
		return rc;
	if (rank_is_root(r))
		log_info("fine-tuning: precision bf16, in which this machine computes faster");
	return config_put(cfg, FLAG_precision, "--init-from", "bf16", err);
}

/* Pipelines shard moments only on request. */
static int zero_stage(const struct run_config *cfg)
{
	return cfg->strategy == STRATEGY_pdp && !config_given(cfg, FLAG_zero_stage) ? 0 : (int)cfg->zero_stage;
}

struct strategy_opts rank_sharing(const struct rank *r)
{
	const struct run_config *cfg = r->cfg;

	return (struct strategy_opts){ .rank = r->context->rank,
				       .world = r->context->world,
				       .bucket_bytes = (size_t)(cfg->bucket_cap_mb * 1048576.0),
				       .sync_bn = cfg->sync_bn,
				       .zero_stage = zero_stage(cfg),
				       .unit_is_layer = cfg->fsdp_unit == CONFIG_UNIT_LAYER,
				       .reshard = cfg->reshard_after_forward,
				       .shard_degree =
					       cfg->strategy == STRATEGY_pdp ? rank_parts(cfg) : (int)cfg->shard_degree,
				       .gather_prefetch = (int)cfg->gather_prefetch,
				       .sync_each_batch = cfg->sync_each_batch,
				       .devices = (int)cfg->dp_devices,
				       .stages = (int)config_stages(cfg),
				       .gpipe = cfg->pp_schedule == CONFIG_PIPELINE_GPIPE,
				       .partition = cfg->pp_partition,
				       .micros = (int)cfg->microbatches };
}

int rank_share(const struct rank *r)
{
	return strategy_share(r->context->rank, r->context->world, (int)config_stages(r->cfg)).part;
}

int rank_parts(const struct run_config *cfg)
{
	return strategy_share(0, cfg->world, (int)config_stages(cfg)).parts;
}

/* Threads of one layer wait for each other: with fewer cores than threads every wait takes a time slice. */
int rank_threads(const struct rank *r)
{
	return r->by_rule || r->cfg->threads < r->cfg->cores ? (int)r->cfg->threads : r->cfg->cores;
}

struct kernel_env rank_env(const struct rank *r)
{
	return (struct kernel_env){ .threads = rank_threads(r),
				    .deterministic = r->by_rule,
				    .module = r->module };
}

/* Opens the communicators of every stream and group that the strategy's nodes use, split in the same order on every
 * rank. */
static int open_lanes(struct rank *r, struct err *err)
{
	const struct strategy *s = strategies_table[r->cfg->strategy];
	const struct strategy_opts o = rank_sharing(r);
	int rc = 0;

	for (int i = 0; i < STREAM_COUNT * GROUP_COUNT && !rc; i++) {
		int stream = i / GROUP_COUNT, group = i % GROUP_COUNT;
		int color = group == GROUP_WORLD ? 0
			    : s->group_of	 ? s->group_of(&o, (enum group)group, r->context->rank)
						 : -1;

		if (s->groups[stream] & STRATEGY_GROUP(group))
			rc = r->comm->ops->split(r->comm, color, &r->lane[stream][group], err);
	}
	if (!rc && s->holds)
		rc = r->comm->ops->split(r->comm, 0, &r->saving, err);
	return rc;
}

/* Returns true if mpirun or srun started the ranks, and not dptrain's launcher, which would itself be one of their
 * processes. */
static bool can_use_mpi(const struct rank *r)
{
	return !r->context->launched && (getenv("PMIX_RANK") || getenv("OMPI_COMM_WORLD_RANK"));
}

static int load_mpi(const struct rank *r, const struct link_module **ret, struct err *err)
{
	char label[300];

	if (can_use_mpi(r))
		return link_load(ret, "mpi", err);
	return err_set(err, ERR_USAGE, "%s mpi: neither mpirun nor srun --mpi=pmix has started these ranks; start "
		       "dptrain with one of them, or use ucx",
		       config_label(r->cfg, FLAG_comm, label, sizeof(label)));
}

/* Chooses the transport module. *ret_why: the reason, with --comm auto. */
static int pick_link(const struct rank *r, const struct link_module **ret, const char **ret_why, struct err *err)
{
	enum config_comm asked = (enum config_comm)r->cfg->comm;
	char label[300];
	int rc;

	*ret_why = "";
	if (asked == CONFIG_COMM_SHM)
		return err_set(err, ERR_USAGE,
			       "%s shm: connects ranks of one machine only, but there are %d machines: "
			       "use ucx",
			       config_label(r->cfg, FLAG_comm, label, sizeof(label)), r->context->nodes);
	rc = asked == CONFIG_COMM_MPI ? load_mpi(r, ret, err) : link_load(ret, "ucx", err);
	if (rc == ERR_NOENT && asked != CONFIG_COMM_AUTO) {
		err->code = ERR_USAGE;
		rc = ERR_USAGE;
	}
	if (asked != CONFIG_COMM_AUTO)
		return rc;
	*ret_why = " (auto: needs no mpirun)";
	if (rc == ERR_NOENT && can_use_mpi(r) && !link_load(ret, "mpi", &(struct err)ERR_INIT)) {
		*ret_why = " (auto: mpirun or srun started the ranks, and ucx is not installed)";
		rc = 0;
	}
	return rc;
}

static void log_transport(const struct rank *r, const char *why)
{
	if (rank_is_root(r))
		log_info("%d ranks on %d machines: shm within each, %s between them%s", r->context->world,
			 r->context->nodes, r->link, why);
}

/* Opens the communicator over several machines with the chosen transport. */
static int open_hier_comm(struct rank *r, const struct comm_shm_opts *so, struct err *err)
{
	struct comm_hier_opts o = { .bootstrap = r->net,
				    .node = r->context->node,
				    .sockets = (int)r->cfg->comm_sockets,
				    .timeout_s = so->timeout_s };
	struct err ignored = ERR_INIT;
	const char *why;
	int rc = pick_link(r, &o.link, &why, err);

	if (!rc)
		rc = comm_shm_open(&o.local, so, err);
	if (rc) {
		/* the ranks that wait for this one receive the reason */
		bootstrap_round(r->net, NULL, 0, err, &ignored);
		return rc;
	}
	rc = comm_hier_open(&r->comm, &o, err);
	if (rc)
		return rc;
	r->link = o.link->name;
	log_transport(r, why);
	return 0;
}

/* --link: wraps the communicator in one with an emulated slow link. */
static int emulate_link(struct rank *r, struct err *err)
{
	struct comm_slow_link link;
	int rc = config_link(r->cfg, &link.latency_s, &link.bytes_per_s, err);

	if (!rc && (link.latency_s > 0 || link.bytes_per_s > 0))
		r->comm = comm_emulate_link(r->comm, &link);
	return rc;
}

int rank_meet(struct rank *r, struct err *err)
{
	const struct rank_context *s = r->context;
	const struct comm_shm_opts o = { .fd = s->shm_fd,
					 .rank = s->local_rank,
					 .world = s->local_world,
					 .first = s->rank - s->local_rank,
					 .timeout_s = fmax(SETUP_LIMIT_S, r->cfg->ddp_timeout) };
	int rc = 0;

	if (s->world == 1) {
		r->comm = comm_self_new();
		return 0;
	}
	if (s->nodes > 1)
		rc = bootstrap_open(&r->net, &s->net, err);
	if (!rc && r->net)
		rc = rank_check_flags(r->cfg, r->net, err);
	if (!rc)
		rc = s->nodes > 1 ? open_hier_comm(r, &o, err) : comm_shm_open(&r->comm, &o, err);
	if (!rc)
		rc = emulate_link(r, err);
	if (rc)
		return rc;
	r->comm = flight_comm(r->comm, &rank_context_own(s)->flight, "all ranks");
	rc = flight_pulse_start(&r->pulse, &rank_context_own(s)->flight, err);
	return rc ? rc : open_lanes(r, err);
}

void rank_at_step(struct rank *r, int64_t step)
{
	if (r->pulse)
		atomic_store(&rank_context_own(r->context)->flight.step, step);
}

void rank_limit(struct rank *r, double seconds)
{
	r->comm->ops->limit(r->comm, seconds);
	for (int i = 0; i < STREAM_COUNT * GROUP_COUNT; i++) {
		struct comm *c = r->lane[i / GROUP_COUNT][i % GROUP_COUNT];

		if (c)
			c->ops->limit(c, seconds);
	}
}

const char *rank_transport(const struct rank *r)
{
	if (r->context->world == 1)
		return "self";
	return !r->link ? "shm" : strcmp(r->link, "mpi") ? "shm and ucx" : "shm and mpi";
}

int64_t rank_sent(const struct rank *r)
{
	int64_t sent = r->comm->sent + (r->devices ? r->backend->comms->sent(r->module).all : 0);

	for (int i = 0; i < STREAM_COUNT * GROUP_COUNT; i++) {
		const struct comm *c = r->lane[i / GROUP_COUNT][i % GROUP_COUNT];

		sent += c ? c->sent : 0;
	}
	return sent;
}

int64_t rank_sent_nodes(const struct rank *r)
{
	int64_t sent = r->comm->sent_nodes + (r->devices ? r->backend->comms->sent(r->module).nodes : 0);

	for (int i = 0; i < STREAM_COUNT * GROUP_COUNT; i++) {
		const struct comm *c = r->lane[i / GROUP_COUNT][i % GROUP_COUNT];

		sent += c ? c->sent_nodes : 0;
	}
	return sent;
}

void rank_abort(struct rank *r)
{
	devices_abort(r->devices);
	r->comm->ops->abort(r->comm);
}

/* Sets variables for the threads of a backend's libraries, before they are loaded. A user's own setting stays. The
 * scheduler of a busy machine treats a thread that spins for long at a barrier as CPU-bound and delays its partner by
 * whole time slices (a step became 20 times slower). Spinning for 10 us costs an idle machine nothing. */
static void set_library_threads(int threads)
{
	char text[16];

	if (!getenv("OMP_WAIT_POLICY"))
		setenv("GOMP_SPINCOUNT", "1000", 0);
	snprintf(text, sizeof(text), "%d", threads);
	setenv("OMP_NUM_THREADS", text, 1);
	setenv("OMP_DYNAMIC", "false", 0);
}

static struct backend_opts rank_backend_opts(const struct rank *r)
{
	return (struct backend_opts){ .threads = rank_threads(r),
				      .local_rank = r->context->local_rank,
				      .local_world = r->context->local_world,
				      .device = r->cfg->device,
				      .share = r->cfg->share_gpu,
				      .deterministic = r->by_rule,
				      .dry = r->by_rule && !r->cfg->deterministic,
				      .direct = r->cfg->conv_algo == CONFIG_CONV_DIRECT,
				      .split = r->cfg->fp32_matmul == CONFIG_FP32_HIGH,
				      .tf32 = r->cfg->tf32,
				      .described = r->described };
}

/* --backend auto: uses a device only where it has all that the ranks need; else cpu, with the reason. */
static int fall_back_to_cpu(struct rank *r, struct backend_choice *c, struct err *err)
{
	char why[256], device[16];
	int rc = 0;

	if (c->backend->probe_ranks && r->context->world > 1 &&
	    c->backend->probe_ranks(r->cfg->share_gpu ? 1 : r->context->local_world, why, sizeof(why))) {
		snprintf(device, sizeof(device), "%s", c->backend->name);
		rc = backend_load(c, "cpu", err);
		snprintf(c->why, sizeof(c->why), "backend %s cannot run here: %s", device, why);
	}
	if (!rc)
		memcpy(r->why, c->why, sizeof(r->why));
	return rc;
}

/* Loads the backend that the flags name and checks that it computes in the run's types. */
static int pick_backend(struct rank *r, const struct precision *p, struct err *err)
{
	static const char *const names[] = { "auto", "ref", "cpu", "cuda" };
	struct backend_choice choice = { NULL, "" };
	const struct backend *b;
	struct err why = ERR_INIT; /* why --backend auto did not choose cpu */
	int rc = r->described ? backend_find(&choice.backend, names[r->cfg->backend], err)
			      : backend_load(&choice, names[r->cfg->backend], err);

	if (!rc && r->cfg->backend == CONFIG_BACKEND_AUTO)
		rc = fall_back_to_cpu(r, &choice, err);
	if (rc)
		return rc;
	b = choice.backend;
	if (p->casts && b->takes && !b->takes(p))
		return err_set(err, ERR_USAGE,
			       "--opt-level: backend %s has no kernels for its casts: use --precision fp16, or "
			       "--backend cpu",
			       b->name);
	if (b->takes && !b->takes(p) && r->cfg->backend == CONFIG_BACKEND_AUTO)
		backend_load(&choice, "cpu", &why);
	if (b->takes && !b->takes(p))
		return err_set(err, ERR_USAGE,
			       "%s%sbackend %s does not compute in %s on this machine; choose another --precision or "
			       "--backend",
			       why.text, why.text[0] ? "; " : "", b->name, dtype_name(p->low));
	r->backend = b;
	return 0;
}

static void warn_of_device(const struct rank *r)
{
	if (rank_is_root(r) && r->cfg->device && !r->backend->streams)
		log_warn("--device %.60s: ignored, backend %s has no devices", r->cfg->device, r->backend->name);
}

static void warn_crowded_threads(const struct rank *r)
{
	int cores = r->cfg->cores;
	char label[300];

	if (rank_is_root(r) && r->cfg->threads > cores)
		log_warn("%s %lld: there %s %d core%s for each rank; %s",
			 config_label(r->cfg, FLAG_threads, label, sizeof(label)), (long long)r->cfg->threads,
			 cores > 1 ? "are" : "is", cores, cores > 1 ? "s" : "",
			 r->by_rule ? "more threads make steps slower" : "each uses no more threads");
}

static void warn_of_lacks(const struct rank *r)
{
	const char *lacks = r->backend->lacks ? r->backend->lacks(r->module) : NULL;

	if (lacks)
		log_warn("backend %s: %s", r->backend->name, lacks);
}

int rank_open_module(struct rank *r, struct err *err)
{
	const struct backend_opts o = rank_backend_opts(r);
	int rc = r->backend->open(&o, &r->module, err);

	return rc || !r->backend->room || r->described ? rc : r->backend->room(r->module, &r->device_room, err);
}

int rank_open_backend(struct rank *r, struct err *err)
{
	struct precision p = rank_precision(r);
	int rc;

	warn_crowded_threads(r);
	set_library_threads(rank_threads(r));
	rc = pick_backend(r, &p, err);
	if (rc)
		return rc;
	warn_of_device(r);
	rc = rank_open_module(r, err);
	if (!rc && rank_is_root(r))
		warn_of_lacks(r);
	if (rc || !r->backend->comms || !r->comm || r->comm->world == 1)
		return rc;
	return devices_open(&r->devices,
			    &(struct devices_opts){ .backend = r->backend,
						    .module = r->module,
						    .comm = r->comm,
						    .lane = (struct comm *const *)r->lane,
						    .node = r->context->node,
						    .timeout_s = r->cfg->ddp_timeout },
			    err);
}

void rank_close(struct rank *r)
{
	devices_close(r->devices);
	if (r->module && r->backend->close)
		r->backend->close(r->module);
	for (int i = STREAM_COUNT * GROUP_COUNT - 1; i >= 0; i--) {
		struct comm *c = r->lane[i / GROUP_COUNT][i % GROUP_COUNT];

		if (c)
			c->ops->close(c);
	}
	if (r->saving)
		r->saving->ops->close(r->saving);
	if (r->comm)
		r->comm->ops->close(r->comm);
	bootstrap_close(r->net);
	flight_pulse_stop(r->pulse);
}
