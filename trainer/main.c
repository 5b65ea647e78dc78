/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: dptrain. Parses the arguments into a configuration and runs the subcommand. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tracker/base/log.h"
#include "tracker/base/terminal.h"
#include "tracker/mem/mem.h"
#include "trainer/job.h"
#include "trainer/sweep/sweep.h"
#include "trainer/tools/subcommands.h"

#define TEXT_MAX ((size_t)1 << 30)
#define HELP_COLUMNS 108 /* width of --help if stdout is not a terminal */

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
		if (errno != EPIPE) /* the reader, such as head, has read enough */
			log_error("cannot write to stdout");
		rc = 1;
	}
	buf_done(b);
	return rc;
}

static int print_run_plan(struct job *job, struct err *err)
{
	struct buf text;
	int rc, code;

	buf_init(&text, TEXT_MAX);
	if (job->cfg->map)
		rc = map_plan(job->cfg, &text, err);
	else if (job->cfg->catalogue)
		rc = catalogue_plan(job, &text, err);
	else
		rc = job->cfg->auto_plan ? auto_plan(job, &text, err) : describe_plan(job, &text, err);
	if (rc < 0) {
		buf_done(&text);
		return rc;
	}
	code = print_and_free(&text);
	return code ? code : rc;
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

static int print_help_or_version(const struct run_config *cfg, struct err *err)
{
	const struct config_help_opts o = { cfg->command, cfg->help_word, terminal_help_columns(HELP_COLUMNS) };
	struct buf text;
	int rc = 0;

	buf_init(&text, TEXT_MAX);
	if (cfg->version)
		buf_addf(&text, "dptrain %s\n", PACKAGE_VERSION);
	else
		rc = config_help(&o, &text, err);
	if (!rc)
		return print_and_free(&text);
	buf_done(&text);
	return rc;
}

/* `dptrain complete WORD...`, which the shells call. */
static int print_candidates(int argc, char *const argv[])
{
	struct buf text;

	buf_init(&text, TEXT_MAX);
	config_complete(argc, argv, &text);
	return print_and_free(&text);
}

/* Runs a command that reads data, may write files, and prints a summary. */
static int run_data_command(struct job *job, struct err *err)
{
	const struct run_config *cfg = job->cfg;
	struct buf text;
	int rc;

	buf_init(&text, TEXT_MAX);
	rc = cfg->command == COMMAND_SHARD     ? shard_main(cfg, &text, err)
	     : cfg->command == COMMAND_INSPECT ? inspect_data(cfg, &text, err)
	     : cfg->command == COMMAND_MERGE   ? merge_main(job->cfg, &text, err)
	     : cfg->command == COMMAND_EXPORT  ? export_main(job->cfg, &text, err)
					       : describe_tokenize(cfg, &text, err);
	if (rc) {
		buf_done(&text);
		return rc;
	}
	return print_and_free(&text);
}

static int print_backends(struct job *job, struct err *err)
{
	struct buf text;
	int rc = 0;

	buf_init(&text, TEXT_MAX);
	if (job->cfg->describe)
		rc = describe_gpu(&text, err);
	else
		describe_backends(&text);
	if (!rc)
		return print_and_free(&text);
	buf_done(&text);
	return rc;
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
			     against	      ? "--compare-with"
			     : cfg->bandwidth ? "--bandwidth"
			     : cfg->calibrate ? "--calibrate"
			     : cfg->loader    ? "--loader"
					      : "--profile");
	if (rc)
		return rc;
	return links ? bench_links_main(job, err) : bench_compare_main(job, err);
}

static int run_calibrate(struct job *job, struct err *err)
{
	const struct rank_env none = { .found = false };
	int rc = job_count_ranks(job->cfg, &none, err);

	if (!rc)
		rc = config_resolve(job->cfg, &(struct config_world){ .world = (int)job->cfg->nproc_per_node }, err);
	return rc ? rc : calibrate_main(job, err);
}

static int diagnose_runs(struct job *job, struct err *err)
{
	return doctor_main(job, "", err);
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
	code = job_run(job, place, NULL, err);
	if (code)
		return code;
	return finds ? find_main(job, job->run_id, err) : doctor_main(job, job->run_id, err);
}

/* Returns the function of a command that needs no ranks, or starts them in processes of its own; NULL: another one. */
static int (*find_command(const struct run_config *cfg))(struct job *job, struct err *err)
{
	static int (*const alone[COMMAND_COUNT])(struct job *job, struct err *err) = {
		[COMMAND_BACKENDS] = print_backends, [COMMAND_TOKENIZE] = run_data_command,
		[COMMAND_SHARD] = run_data_command,  [COMMAND_INSPECT] = run_data_command,
		[COMMAND_MERGE] = run_data_command,  [COMMAND_EXPORT] = run_data_command,
		[COMMAND_SAMPLE] = run_sample,	     [COMMAND_SWEEP] = run_sweep,
	};

	if (bench_compare_wanted(cfg) || bench_links_wanted(cfg))
		return run_in_children;
	if (cfg->command == COMMAND_BENCH && cfg->calibrate)
		return run_calibrate;
	if (cfg->command == COMMAND_PLAN && cfg->map)
		return print_run_plan;
	if (cfg->command == COMMAND_DOCTOR && cfg->run)
		return diagnose_runs;
	return alone[cfg->command];
}

/* Runs a command that needs the number of ranks, and starts them unless it only prints. */
static int run_with_ranks(struct job *job, struct err *err)
{
	struct node_group *nodes = NULL;
	const struct run_config *cfg;
	struct rank_env place;
	int rc = job->cfg->command == COMMAND_TRAIN && job->cfg->auto_plan ? auto_choose(job, err) : 0;

	if (!rc)
		rc = job_resolve(job, &place, &nodes, err);
	cfg = job->cfg;
	if (rc && (cfg->command == COMMAND_TRAIN || cfg->command == COMMAND_BENCH))
		job_refuse(err);
	if (!rc && cfg->command == COMMAND_CONFIG)
		rc = print_config(job);
	else if (!rc && (cfg->command == COMMAND_PLAN || cfg->dump != CONFIG_DUMP_NONE))
		rc = print_run_plan(job, err);
	else if (!rc && (cfg->command == COMMAND_DOCTOR || cfg->command == COMMAND_FIND))
		rc = run_and_judge(job, &place, err);
	else if (!rc)
		rc = job_run(job, &place, nodes, err);
	node_group_close(nodes);
	return rc;
}

static int run_command(struct job *job, struct err *err)
{
	int (*run)(struct job * job, struct err * err);

	if (job->cfg->help || job->cfg->version)
		return print_help_or_version(job->cfg, err);
	run = find_command(job->cfg);
	return run ? run(job, err) : run_with_ranks(job, err);
}

int main(int argc, char *argv[])
{
	struct err err = ERR_INIT;
	struct job job = { .argc = argc, .argv = argv };
	int rc;

	log_init("dptrain");
	mem_init();
	if (argc > 1 && !strcmp(argv[1], "complete"))
		return print_candidates(argc - 2, argv + 2);
	signal(SIGXFSZ, SIG_IGN); /* a file size limit becomes a write error */
	rc = config_parse(&job.cfg, argc, argv, &err);
	if (!rc)
		rc = run_command(&job, &err);
	else
		job_refuse(&err);
	if (rc < 0)
		rc = report_error(&err);
	batch_file_close(job.batch);
	config_free(job.cfg);
	return rc;
}
