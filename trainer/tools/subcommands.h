/* SPDX-License-Identifier: Apache-2.0 */
/* subcommands.h: the subcommands of dptrain other than training. A function with a rank context runs in a rank's
 * process; it returns the exit code and records a failure in the rank context. The others start no rank; unless stated
 * otherwise they return the exit code, or a negative code with err. */
#ifndef DPT_TOOLS_SUBCOMMANDS_H
#define DPT_TOOLS_SUBCOMMANDS_H

#include "tracker/insight/run_change.h"
#include "trainer/run/engine.h"

/* ---- bench.c, bench_loader.c, bandwidth.c ---- */

int bench_main(const struct job *job, struct rank_context *context);

/* `dptrain bench --loader`: throughput of the loader, without a model. Rank 0 prints a line for each pass over the set,
 * or with --json one object. */
int bench_loader_main(const struct job *job, struct rank_context *context);

/* `dptrain bench --bandwidth`: times each collective between the ranks of a job over sizes, without a model. */
int bandwidth_main(const struct job *job, struct rank_context *context);

/* ---- bench_compare.c: the same measurement with other flags, in turn ---- */

/* Returns true if --compare-with is given and not blank. */
bool bench_compare_wanted(const struct run_config *cfg);

/* Starts `dptrain bench` for every round and side, and prints what the flags of --compare-with change. */
int bench_compare_main(const struct job *job, struct err *err);

/* Makes short runs of `dptrain doctor` with the job's command line, with and without the flags. Returns the exit code
 * (0: *ret is filled), or a negative code with err. */
int bench_compare_try(const struct job *job, const char *flags, struct run_change *ret, struct err *err);

/* Returns true if --link of `dptrain bench` is a list. */
bool bench_links_wanted(const struct run_config *cfg);

/* Starts `dptrain bench` for each link and prints its step times, one row per link. */
int bench_links_main(const struct job *job, struct err *err);

/* ---- calibrate.c ---- */

/* `dptrain bench --calibrate`: times the nodes of small models of both families and the collectives of
 * --nproc-per-node ranks, in child processes, and writes the hardware file of this machine. */
int calibrate_main(const struct job *job, struct err *err);

/* ---- auto.c: ranks the configurations of one global batch, for this machine or for that of a hardware file ---- */

#define NO_PLAN_FITS 2 /* exit code, as of bad input */

/* `dptrain plan --auto`: adds a table, or with --json an object, to out. job->cfg is resolved. Returns 0, a negative
 * code, or NO_PLAN_FITS. */
int auto_plan(const struct job *job, struct buf *out, struct err *err);

/* `dptrain train --auto`: sets the flags of the best plan in job->cfg, which is not resolved yet. Global batch and
 * precision stay. Returns 0 or a negative code. */
int auto_choose(struct job *job, struct err *err);

/* ---- catalogue.c ---- */

/* `dptrain plan --auto --catalogue`: adds a table of the shipped machines with their best plans, ranked by time, money
 * and energy of --tokens or --epochs, or with --json an object. job->cfg is resolved. Returns what auto_plan does. */
int catalogue_plan(const struct job *job, struct buf *out, struct err *err);

/* ---- map_text.c ---- */

/* `dptrain plan --map`: adds the fastest strategy for each size of a GPT, batch and link to out, as a table or with
 * --json an object; --out FILE also writes an SVG. cfg need not be resolved. Returns 0 or a negative code. */
int map_plan(const struct run_config *cfg, struct buf *out, struct err *err);

/* ---- describe.c: all return 0 or a negative code ---- */

int describe_plan(const struct job *job, struct buf *out, struct err *err);

/* Counts the parameters of the run's model, and sets open values of its configuration. Needs no backend and no plan. */
int describe_parameters(const struct job *job, int64_t *ret, struct err *err);
void describe_backends(struct buf *out);

/* Adds the properties of the first GPU of this machine that plans need, as a hardware file (schema/hardware). */
int describe_gpu(struct buf *out, struct err *err);

/* Writes the token files of `dptrain tokenize`, and adds a summary to out. */
int describe_tokenize(const struct run_config *cfg, struct buf *out, struct err *err);

/* ---- doctor.c, find.c: run_id is that of the run that the job has just recorded ---- */

/* `dptrain doctor`: diagnoses that run, or the one of --run. With --try also measures the first action. */
int doctor_main(const struct job *job, const char *run_id, struct err *err);

/* `dptrain find lr|batch`: prints the result of that run. */
int find_main(const struct job *job, const char *run_id, struct err *err);

/* ---- export_gguf.c, inspect_data.c, merge.c, sample_text.c, shard.c: all return 0 or a negative code ---- */

/* `dptrain inspect`: adds the account of the data set and its first samples to out. */
int inspect_data(const struct run_config *cfg, struct buf *out, struct err *err);

/* `dptrain sample`: generates text with a trained language model. */
int sample_main(const struct job *job, struct err *err);

/* `dptrain merge`: writes the weights of --init-from with the adapter of --adapter into the folder of --out, which
 * appears when it is complete; adds a line to out. Changes cfg as initial_begin does. */
int merge_main(struct run_config *cfg, struct buf *out, struct err *err);

/* `dptrain export --gguf`: writes the decoder of --init-from as the file of --out, which appears when it is complete;
 * adds a line to out. Changes cfg as initial_begin does. */
int export_main(struct run_config *cfg, struct buf *out, struct err *err);

/* `dptrain shard`: writes the shards of both splits into the folder of --out, which appears when all of them are
 * complete; adds a summary to out. */
int shard_main(const struct run_config *cfg, struct buf *out, struct err *err);

#endif
