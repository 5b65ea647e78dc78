/* SPDX-License-Identifier: Apache-2.0 */
/* job.c: starts the ranks of a job here, or takes part in one that torchrun, mpirun or srun started. */
#include "trainer/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/log.h"
#include "trainer/launch/launch.h"
#include "trainer/run/report.h"
#include "trainer/state/initial.h"
#include "trainer/tools/subcommands.h"

/* ---- the ranks ---- */

static int rank_main(void *user, struct rank_context *context)
{
	struct job *job = user;

	if (job->cfg->command != COMMAND_BENCH)
		return train_main(job, context);
	if (job->cfg->loader)
		return bench_loader_main(job, context);
	return job->cfg->bandwidth ? bandwidth_main(job, context) : bench_main(job, context);
}

static enum dptrack_status tracked_status(const struct shared_status *shared_status, int code)
{
	if (code == 0)
		return DPTRACK_FINISHED;
	if (code == RANK_CONTEXT_PREEMPTED)
		return DPTRACK_PREEMPTED;
	return code == 130 || (code == 1 && atomic_load(&shared_status->stop_signal)) ? DPTRACK_KILLED : DPTRACK_FAILED;
}

static void job_ended(void *user, const struct shared_status *shared_status, int code, const char *reason)
{
	struct job *job = user;

	if (!atomic_load(&shared_status->run_open))
		return;
	memcpy(job->run_id, shared_status->run_id, sizeof(job->run_id));
	report_final(job->cfg, shared_status, tracked_status(shared_status, code), reason);
}

/* After a loss of machines: configures the job for `world` ranks with the same global batch. */
static int job_resized(void *user, int world, struct err *err)
{
	struct job *job = user;
	struct run_config *cfg, *before = job->cfg;
	struct config_world w = { .world = world, .local_world = before->local_world, .before = before };
	int rc = config_parse(&cfg, job->argc, job->argv, err);

	if (rc)
		return rc;
	rc = initial_begin(cfg, err);
	if (!rc)
		rc = config_resolve(cfg, &w, err);
	if (!rc)
		rc = resume_settle(cfg, err);
	if (!rc)
		rc = initial_settle(cfg, err);
	if (rc) {
		config_free(cfg);
		return rc;
	}
	job->cfg = cfg;
	config_free(before);
	return 0;
}

/* Returns the secret by which the machines of a job recognise each other. */
static const char *job_key(const struct run_config *cfg, const char *other)
{
	const char *key = getenv("DPTRAIN_JOB_KEY");

	if (key && *key)
		return key;
	return cfg->rdzv_id ? cfg->rdzv_id : other;
}

/* Runs one rank that torchrun, mpirun or srun started. */
static int run_placed_rank(struct job *job, const struct rank_env *place, struct err *err)
{
	const struct run_config *cfg = job->cfg;
	struct rank_context context;
	int rc = rank_context_open(
		    &context, place,
		    &(struct rank_context_opts){
			    .threads = (int)cfg->threads,
			    .host = cfg->master_addr,
			    .port = config_given(cfg, FLAG_master_port) || !place->port ? (int)cfg->master_port : 0,
			    .key = job_key(cfg, NULL),
			    .wait_s = cfg->rdzv_timeout },
		    err),
	    code;

	if (rc)
		return rc;
	if (place->rank == 0)
		log_info("%d ranks, started by %s", place->world, place->source);
	code = rank_main(job, &context);
	if (atomic_load(&rank_context_own(&context)->said))
		log_error("rank %d: %s", place->rank, rank_context_own(&context)->err.text);
	rank_context_close(&context);
	return code;
}

int job_run(struct job *job, const struct rank_env *place, struct node_group *nodes, struct err *err)
{
	int min = 1, max;

	if (place->found)
		return run_placed_rank(job, place, err);
	config_nodes(job->cfg, &min, &max);
	return launch_run(&(struct launch_opts){ .nproc = job->cfg->local_world,
						 .nodes = nodes,
						 .nodes_least = min,
						 .heartbeat_s = job->cfg->heartbeat_timeout,
						 .max_restarts = (int)job->cfg->max_restarts,
						 .threads = (int)job->cfg->threads,
						 .rank_main = rank_main,
						 .resized = job_resized,
						 .ended = job_ended,
						 .user = job },
			  err);
}

/* ---- other machines ---- */

/* Splits "HOST[:PORT]" or "[::1]:PORT"; ret receives the host. */
static int split_endpoint(const char *text, char *ret, size_t n, int *port, struct err *err)
{
	const char *colon = strrchr(text, ':'), *bracket = strchr(text, ']');
	bool has_port = colon && (bracket ? colon > bracket : strchr(text, ':') == colon);
	size_t len = has_port ? (size_t)(colon - text) : strlen(text);
	char *end = NULL;
	long v = has_port ? strtol(colon + 1, &end, 10) : *port;

	if (has_port && (!colon[1] || *end || v < 1 || v > 65535))
		return err_set(err, ERR_USAGE, "--rdzv-endpoint '%.200s': expected HOST or HOST:PORT", text);
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	snprintf(ret, n, "%.*s", (int)len, text);
	*port = (int)v;
	return 0;
}

/* Connects to the launchers of the other machines, unless another program started the ranks. */
static int meet_nodes(const struct run_config *cfg, int least, int count, struct node_group **ret, struct err *err)
{
	char host[256];
	struct node_group_opts o = { .count = count,
				     .least = least,
				     .self = config_given(cfg, FLAG_node_rank) ? (int)cfg->node_rank : -1,
				     .host = host,
				     .port = (int)cfg->master_port,
				     .key = job_key(cfg, "dptrain"),
				     .nproc = (int)cfg->nproc_per_node,
				     .wait_s = cfg->rdzv_timeout };
	int rc = 0;

	if (o.self >= o.count)
		return err_set(err, ERR_USAGE, "--node-rank %d: there are %d machines (--nnodes), numbered from 0",
			       o.self, o.count);
	if (cfg->rdzv_endpoint && cfg->master_addr)
		return err_set(err, ERR_USAGE, "--rdzv-endpoint and --master-addr contradict: give one of them");
	if (!cfg->rdzv_endpoint && (!cfg->master_addr || o.self < 0))
		return err_set(err, ERR_USAGE, "--nnodes %d: add %s (or --rdzv-endpoint HOST:PORT on all)", o.count,
			       cfg->master_addr ? "--node-rank" : "--master-addr ADDRESS --node-rank N");
	if (cfg->rdzv_endpoint)
		rc = split_endpoint(cfg->rdzv_endpoint, host, sizeof(host), &o.port, err);
	else
		snprintf(host, sizeof(host), "%s", cfg->master_addr);
	return rc ? rc : node_group_open(ret, &o, err);
}

/* Treats machines that did not arrive in time as lost: the global batch is that of all machines. */
static int begin_with_fewer(struct job *job, struct node_group *nodes, struct err *err)
{
	log_warn("%d of %d machines arrived within %.0f s (--rdzv-timeout): the job starts with them (--nnodes %s)",
		 node_group_left(nodes), node_group_count(nodes), job->cfg->rdzv_timeout, job->cfg->nnodes);
	node_group_shrink(nodes);
	return job_resized(job, node_group_world(nodes), err);
}

/* ---- the number of ranks ---- */

static bool will_train(const struct run_config *cfg)
{
	return (cfg->command == COMMAND_TRAIN || cfg->command == COMMAND_BENCH) && cfg->dump == CONFIG_DUMP_NONE;
}

int job_count_ranks(struct run_config *cfg, const struct rank_env *place, struct err *err)
{
	int gpus = 0, rc = 0;

	if (cfg->nproc_per_node > 0)
		return 0;
	if (!place->found)
		rc = backend_devices("cuda", &gpus, err);
	if (!rc && !place->found && !gpus)
		rc = err_set(err, ERR_USAGE,
			     "--nproc-per-node gpu: there is no usable GPU; `dptrain backends` says why");
	cfg->nproc_per_node = place->found ? place->local_world : gpus;
	return rc;
}

static void add_derived_flag(void *user, const struct config_item *item)
{
	static const enum flag_id ids[] = { FLAG_opt,
					    FLAG_lr,
					    FLAG_wd,
					    FLAG_warmup_steps,
					    FLAG_lr_warmup_epochs,
					    FLAG_seq_len,
					    FLAG_global_batch_size };

	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		if (item->id == ids[i] && item->origin == ORIGIN_DERIVED)
			buf_addf(user, " %s %s", item->name, item->value);
}

/* Says what fine-tuning a decoder sets without flags. */
static void report_tuning(const struct run_config *cfg)
{
	struct buf text;

	buf_init(&text, 1024);
	config_each(cfg, add_derived_flag, &text);
	if (text.len)
		log_info("fine-tuning, what was not given:%s", text.data);
	buf_done(&text);
}

int job_resolve(struct job *job, struct rank_env *place, struct node_group **nodes, struct err *err)
{
	struct run_config *cfg = job->cfg;
	struct config_world w = { .world = 0 };
	int least = 1, count = 1, rc = rank_env_find(place, err);

	if (!rc)
		rc = job_count_ranks(cfg, place, err);
	if (rc)
		return rc;
	if (!config_nodes(cfg, &least, &count))
		return err_set(err, ERR_USAGE, "--nnodes '%.60s': expected N machines or MIN:MAX, as in 2 or 1:2",
			       cfg->nnodes);
	if (place->found && config_given(cfg, FLAG_nnodes) && count != place->nodes)
		return err_set(err, ERR_USAGE, "--nnodes %d: %s has started the ranks on %d machines: omit the flag",
			       count, place->source, place->nodes);
	w.local_world = (int)cfg->nproc_per_node;
	w.world = count * w.local_world;
	if (!place->found && count > 1 && will_train(cfg)) {
		rc = meet_nodes(cfg, least, count, nodes, err);
		if (rc)
			return rc;
		w.world = node_group_world(*nodes);
	}
	if (place->found && config_given(cfg, FLAG_nproc_per_node) && cfg->nproc_per_node != place->local_world)
		return err_set(err, ERR_USAGE,
			       "--nproc-per-node %lld: %s has started %d ranks here: omit one of the two",
			       (long long)cfg->nproc_per_node, place->source, place->local_world);
	if (place->found) {
		w.world = place->world;
		w.local_world = place->local_world;
	}
	if (cfg->batch_from) {
		rc = batch_file_open(&job->batch, cfg->batch_from, err);
		if (rc)
			return rc;
		w.batch_from_samples = job->batch->n;
	}
	rc = initial_begin(cfg, err);
	if (!rc)
		rc = config_resolve(cfg, &w, err);
	if (!rc && *nodes && node_group_left(*nodes) < count)
		return begin_with_fewer(job, *nodes, err);
	if (!rc)
		rc = resume_settle(cfg, err);
	if (!rc)
		rc = initial_settle(cfg, err);
	if (!rc && cfg->decoder && cfg->command == COMMAND_TRAIN && !cfg->test_only && place->rank == 0)
		report_tuning(cfg);
	return rc;
}

void job_refuse(const struct err *why)
{
	struct err ignored = ERR_INIT;
	struct rank_env place;

	if (!rank_env_find(&place, &ignored) && place.found && place.world > 1)
		rank_context_refuse(&place, why);
}
