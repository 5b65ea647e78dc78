/* main.c: dptrain. Parses the arguments into a configuration, and passes it to the launcher or a subcommand. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/log.h"
#include "trainer/backends/backend.h"
#include "trainer/launch/launch.h"
#include "trainer/launch/node_group.h"
#include "trainer/launch/rank_env.h"
#include "trainer/run/report.h"
#include "trainer/run/train.h"
#include "trainer/state/initial.h"
#include "trainer/state/resume.h"
#include "trainer/sweep/sweep.h"
#include "trainer/tools/bench_compare.h"
#include "trainer/tools/auto.h"
#include "trainer/tools/bandwidth.h"
#include "trainer/tools/bench.h"
#include "trainer/tools/bench_loader.h"
#include "trainer/tools/calibrate.h"
#include "trainer/tools/describe.h"
#include "trainer/tools/doctor.h"
#include "trainer/tools/find.h"
#include "trainer/tools/bench_links.h"
#include "trainer/tools/sample_text.h"
#include "trainer/tools/shard.h"

#define TEXT_MAX ((size_t)1 << 30)

static int report_error(const struct err *e)
{
	log_error("%s", e->text);
	return rank_context_exit_code(e);
}

static int print_and_free(struct buf *b)
{
	int rc = 0;

	if (buf_failed(b)) {
		log_error("out of memory: text to print");
		rc = 1;
	} else if (fwrite(b->data ? b->data : "", 1, b->len, stdout) != b->len || fflush(stdout)) {
		log_error("cannot write to stdout");
		rc = 1;
	}
	buf_done(b);
	return rc;
}

static int rank_main(void *user, struct rank_context *seat)
{
	struct job *job = user;

	if (job->cfg->command != COMMAND_BENCH)
		return train_main(job, seat);
	if (job->cfg->loader)
		return bench_loader_main(job, seat);
	return job->cfg->bandwidth ? bandwidth_main(job, seat) : bench_main(job, seat);
}

static enum dptrack_status tracked_status(const struct board *board, int code)
{
	if (code == 0)
		return DPTRACK_FINISHED;
	if (code == RANK_CONTEXT_PREEMPTED)
		return DPTRACK_PREEMPTED;
	return code == 130 || (code == 1 && atomic_load(&board->stop_signal)) ? DPTRACK_KILLED : DPTRACK_FAILED;
}

static void job_ended(void *user, const struct board *board, int code, const char *reason)
{
	struct job *job = user;

	if (!atomic_load(&board->run_open))
		return;
	memcpy(job->run_id, board->run_id, sizeof(job->run_id));
	report_final(job->cfg, board, tracked_status(board, code), reason);
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
	struct rank_context seat;
	int rc = rank_context_open(&seat, place,
			   &(struct rank_context_opts){ .threads = (int)cfg->threads,
						.host = cfg->master_addr,
						.port = config_given(cfg, FLAG_master_port) || !place->port
								? (int)cfg->master_port : 0,
						.key = job_key(cfg, NULL),
						.wait_s = cfg->rdzv_timeout }, err), code;

	if (rc)
		return rc;
	if (place->rank == 0)
		log_info("%d ranks, started by %s", place->world, place->source);
	code = rank_main(job, &seat);
	if (atomic_load(&seat.board->rank[0].said))
		log_error("rank %d: %s", place->rank, seat.board->rank[0].err.text);
	rank_context_close(&seat);
	return code;
}

static int run_job(struct job *job, const struct rank_env *place, struct node_group *nodes, struct err *err)
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

static int print_run_plan(struct job *job, struct err *err)
{
	struct buf text;
	int rc;

	buf_init(&text, TEXT_MAX);
	rc = job->cfg->auto_plan ? auto_plan(job, &text, err) : describe_plan(job, &text, err);
	if (rc) {
		buf_done(&text);
		return rc;
	}
	return print_and_free(&text);
}

/* Counts the parameters of the model if data and flags describe one; a run reports what is missing. */
static int print_config(const struct job *job)
{
	struct config_print_opts o = { .json = job->cfg->json };
	struct err ignored = ERR_INIT;
	struct buf text;

	if (describe_parameters(job, &o.parameters, &ignored))
		o.parameters = 0;
	buf_init(&text, TEXT_MAX);
	config_print(job->cfg, &o, &text);
	return print_and_free(&text);
}

static int print_help_or_version(const struct run_config *cfg)
{
	struct buf text;

	buf_init(&text, TEXT_MAX);
	if (cfg->version)
		buf_addf(&text, "dptrain %s\n", PACKAGE_VERSION);
	else
		config_help(cfg->command, &text);
	return print_and_free(&text);
}

/* Runs a command that writes files and prints a summary. */
static int make_data_files(const struct run_config *cfg, struct err *err)
{
	struct buf text;
	int rc;

	buf_init(&text, TEXT_MAX);
	rc = cfg->command == COMMAND_SHARD ? shard_main(cfg, &text, err) : describe_tokenize(cfg, &text, err);
	if (rc) {
		buf_done(&text);
		return rc;
	}
	return print_and_free(&text);
}

static int print_backends(const struct run_config *cfg, struct err *err)
{
	struct buf text;
	int rc = 0;

	buf_init(&text, TEXT_MAX);
	if (cfg->describe)
		rc = describe_gpu(&text, err);
	else
		describe_backends(&text);
	if (!rc)
		return print_and_free(&text);
	buf_done(&text);
	return rc;
}

/* Tells the ranks of another launcher, which wait for this one, that it has failed. */
static void refuse_waiting_ranks(const struct err *why)
{
	struct err ignored = ERR_INIT;
	struct rank_env place;

	if (!rank_env_find(&place, &ignored) && place.found && place.world > 1)
		rank_context_refuse(&place, why);
}

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
		return err_set(err, ERR_USAGE, "--nnodes %d: add %s (or --rdzv-endpoint HOST:PORT on all)",
			       o.count, cfg->master_addr ? "--node-rank" : "--master-addr ADDRESS --node-rank N");
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

static bool will_train(const struct run_config *cfg)
{
	return (cfg->command == COMMAND_TRAIN || cfg->command == COMMAND_BENCH) && cfg->dump == CONFIG_DUMP_NONE;
}

/* Resolves --nproc-per-node gpu; if another program started the ranks, their number is known. */
static int count_ranks(struct run_config *cfg, const struct rank_env *place, struct err *err)
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

/* Determines the number of ranks, and resolves the configuration. */
static int resolve_job(struct job *job, struct rank_env *place, struct node_group **nodes, struct err *err)
{
	struct run_config *cfg = job->cfg;
	struct config_world w = { .world = 0 };
	int least = 1, count = 1, rc = rank_env_find(place, err);

	if (!rc)
		rc = count_ranks(cfg, place, err);
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
	rc = config_resolve(cfg, &w, err);
	if (!rc && *nodes && node_group_left(*nodes) < count)
		return begin_with_fewer(job, *nodes, err);
	if (!rc)
		rc = resume_settle(cfg, err);
	return rc ? rc : initial_settle(cfg, err);
}

static int run_sample(struct job *job, struct err *err)
{
	int rc = config_resolve(job->cfg, &(struct config_world){ .world = 1 }, err);

	return rc ? rc : sample_main(job, err);
}

static int run_sweep(struct job *job, struct err *err)
{
	int rc = config_resolve(job->cfg, &(struct config_world){ .world = 1 }, err);

	return rc ? rc : sweep_main(job->cfg, job->argv[0], err);
}

/* Runs `dptrain bench` in child processes, for every side of --compare-with or link of a list. Another launcher
 * cannot start the ranks. */
static int run_in_children(struct job *job, struct err *err)
{
	const struct run_config *cfg = job->cfg;
	const bool links = bench_links_wanted(cfg), against = bench_compare_wanted(cfg);
	struct rank_env place;
	int rc = rank_env_find(&place, err);

	if (!rc && place.found)
		rc = err_set(err, ERR_USAGE, "%s: starts its ranks itself: omit %s",
			     links ? "--link with a list" : "--compare-with", place.source);
	else if (!rc && links && (against || cfg->bandwidth || cfg->calibrate || cfg->loader || cfg->profile))
		rc = err_set(err, ERR_USAGE, "--link with a list measures steps: omit %s",
			     against		? "--compare-with" :
			     cfg->bandwidth	? "--bandwidth" :
			     cfg->calibrate	? "--calibrate" :
			     cfg->loader	? "--loader" :
						  "--profile");
	if (rc)
		return rc;
	return links ? bench_links_main(job, err) : bench_compare_main(job, err);
}

static int run_calibrate(struct job *job, struct err *err)
{
	const struct rank_env none = { .found = false };
	int rc = count_ranks(job->cfg, &none, err);

	if (!rc)
		rc = config_resolve(job->cfg, &(struct config_world){ .world = (int)job->cfg->nproc_per_node }, err);
	return rc ? rc : calibrate_main(job, err);
}

/* Runs a job and reports on its journals. One machine only: the journals of other machines are not here. */
static int run_and_judge(struct job *job, const struct rank_env *place, struct err *err)
{
	const bool finds = job->cfg->command == COMMAND_FIND;
	int code;

	if (place->found || config_given(job->cfg, FLAG_nnodes))
		return err_set(err, ERR_USAGE, "dptrain %s: starts its ranks itself, on one machine: omit %s%s",
			       config_command_name(job->cfg->command), place->found ? place->source : "--nnodes",
			       finds ? "" : "; --run DIR diagnoses other runs");
	code = run_job(job, place, NULL, err);
	if (code)
		return code;
	return finds ? find_main(job, job->run_id, err) : doctor_main(job, job->run_id, err);
}

/* Runs the subcommand: those without ranks first, then the job. */
static int run_command(struct job *job, struct err *err)
{
	struct run_config *cfg = job->cfg;
	struct node_group *nodes = NULL;
	struct rank_env place;
	int rc;

	if (cfg->help || cfg->version)
		return print_help_or_version(cfg);
	if (cfg->command == COMMAND_BACKENDS)
		return print_backends(cfg, err);
	if (cfg->command == COMMAND_TOKENIZE || cfg->command == COMMAND_SHARD)
		return make_data_files(cfg, err);
	if (cfg->command == COMMAND_SAMPLE)
		return run_sample(job, err);
	if (cfg->command == COMMAND_SWEEP)
		return run_sweep(job, err);
	if (bench_compare_wanted(cfg) || bench_links_wanted(cfg))
		return run_in_children(job, err);
	if (cfg->command == COMMAND_BENCH && cfg->calibrate)
		return run_calibrate(job, err);
	if (cfg->command == COMMAND_DOCTOR && cfg->run)
		return doctor_main(job, "", err);
	rc = cfg->command == COMMAND_TRAIN && cfg->auto_plan ? auto_choose(job, err) : 0;
	if (!rc)
		rc = resolve_job(job, &place, &nodes, err);
	cfg = job->cfg;
	if (rc && (cfg->command == COMMAND_TRAIN || cfg->command == COMMAND_BENCH))
		refuse_waiting_ranks(err);
	if (!rc && cfg->command == COMMAND_CONFIG)
		return print_config(job);
	if (!rc && (cfg->command == COMMAND_PLAN || cfg->dump != CONFIG_DUMP_NONE))
		return print_run_plan(job, err);
	if (!rc && (cfg->command == COMMAND_DOCTOR || cfg->command == COMMAND_FIND))
		rc = run_and_judge(job, &place, err);
	else if (!rc)
		rc = run_job(job, &place, nodes, err);
	node_group_close(nodes);
	return rc;
}

int main(int argc, char *argv[])
{
	struct err err = ERR_INIT;
	struct job job = { .argc = argc, .argv = argv };
	int rc;

	log_init("dptrain");
	signal(SIGXFSZ, SIG_IGN); /* a file size limit becomes a write error */
	rc = config_parse(&job.cfg, argc, argv, &err);
	if (!rc)
		rc = run_command(&job, &err);
	else
		refuse_waiting_ranks(&err);
	if (rc < 0)
		rc = report_error(&err);
	batch_file_close(job.batch);
	config_free(job.cfg);
	return rc;
}
