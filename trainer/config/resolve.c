/* SPDX-License-Identifier: Apache-2.0 */
/* resolve.c: the order in which open values are derived and contradictions are refused; flags of single commands, of
 * reports and of traces. */
#include <string.h>

#include "trainer/config/flags.h"

#define FIND_STEPS "100" /* of `dptrain find` */
#define FIND_STEPS_LEAST 20
#define FIND_STEPS_MOST 1000
#define CROWD_MOST 64 /* threads a core: a step takes about a hundred times longer */

static int resolve_report(struct run_config *cfg, struct err *err)
{
	struct label l;

	if (!cfg->report_to)
		return 0;
	if (!strcmp(cfg->report_to, "none"))
		return 0;
	if (strncmp(cfg->report_to, "http://", 7) && strncmp(cfg->report_to, "https://", 8))
		return err_set(err, ERR_USAGE, "%s '%.100s': expected an http:// or https:// URL, or none",
			       label_flag(cfg, FLAG_report_to, &l), cfg->report_to);
	return 0;
}

static int resolve_trace(struct run_config *cfg, struct err *err)
{
	int64_t first, last;
	struct label l;

	if (!cfg->trace_steps)
		return 0;
	if (config_trace_steps(cfg, &first, &last))
		return !cfg->max_steps || first <= cfg->max_steps ? 0 :
		       err_set(err, ERR_USAGE, "%s %.60s: the run ends after step %lld (--max-steps), before these "
			       "steps", label_flag(cfg, FLAG_trace_steps, &l), cfg->trace_steps,
			       (long long)cfg->max_steps);
	return err_set(err, ERR_USAGE, "%s '%.60s': expected steps, as in 10:13 (inclusive)",
		       label_flag(cfg, FLAG_trace_steps, &l), cfg->trace_steps);
}

static int resolve_link(const struct run_config *cfg, struct err *err)
{
	double latency_s, bytes_per_s;

	if (is_given(cfg, FLAG_link) && cfg->backend == CONFIG_BACKEND_CUDA)
		return err_set(err, ERR_USAGE, "--link: emulates links of collectives in host memory, not of GPUs: use "
			       "--backend cpu");
	return config_link(cfg, &latency_s, &bytes_per_s, err);
}

static int resolve_doctor(struct run_config *cfg, struct err *err)
{
	if (is_given(cfg, FLAG_experiment))
		return 0;
	return config_put(cfg, FLAG_experiment, "doctor", "doctor", err);
}

static int refuse_find_flags(const struct run_config *cfg, const enum flag_id *flags, size_t n, const char *why,
			     struct err *err)
{
	struct label l;

	for (size_t i = 0; i < n; i++)
		if (is_given(cfg, flags[i]))
			return err_set(err, ERR_USAGE, "%s: dptrain find %s: omit it", label_flag(cfg, flags[i], &l),
				       why);
	return 0;
}

/* Refuses a missing or unknown operand, and flags that `dptrain find` sets itself. */
static int check_find_flags(const struct run_config *cfg, struct err *err)
{
	static const enum flag_id any[] = { FLAG_resume, FLAG_test_only, FLAG_eval_steps, FLAG_epochs };
	static const enum flag_id lr[] = { FLAG_min_lr, FLAG_lr_scheduler, FLAG_warmup_steps, FLAG_lr_warmup_epochs };
	static const enum flag_id batch[] = { FLAG_global_batch_size, FLAG_grad_accum_steps, FLAG_batch_from };
	int rc;

	if (!config_finds(cfg, "lr") && !config_finds(cfg, "batch"))
		return err_set(err, ERR_USAGE, "dptrain find %.60s%sexpected lr or batch, as in dptrain find "
			       "lr --data-path DIR",
			       cfg->word ? cfg->word : "", cfg->word ? ": " : "");
	rc = refuse_find_flags(cfg, any, sizeof(any) / sizeof(*any), "starts runs at step 1, without evaluation", err);
	if (!rc && config_finds(cfg, "lr"))
		return refuse_find_flags(cfg, lr, sizeof(lr) / sizeof(*lr), "lr sets the rate itself", err);
	return rc ? rc
		  : refuse_find_flags(cfg, batch, sizeof(batch) / sizeof(*batch), "batch sets the batch itself", err);
}

/* The noise scale follows from gradients of two batch sizes: of several ranks, else of two micro-batches. */
static int resolve_find_noise(struct run_config *cfg, struct err *err)
{
	int rc = is_given(cfg, FLAG_watch_steps) ? 0 : config_put(cfg, FLAG_watch_steps, "find", "2", err);

	return rc || cfg->world > 1 ? rc : config_put(cfg, FLAG_grad_accum_steps, "find", "2", err);
}

static int resolve_find(struct run_config *cfg, struct err *err)
{
	struct label l;
	int rc = check_find_flags(cfg, err);

	if (!rc && !is_given(cfg, FLAG_experiment))
		rc = config_put(cfg, FLAG_experiment, "find", "find", err);
	if (!rc && !is_given(cfg, FLAG_max_steps))
		rc = config_put(cfg, FLAG_max_steps, "find", FIND_STEPS, err);
	if (!rc && config_finds(cfg, "batch"))
		rc = resolve_find_noise(cfg, err);
	if (rc)
		return rc;
	if (is_given(cfg, FLAG_lr) && !(cfg->lr > 0))
		return err_set(err, ERR_USAGE, "%s 0: the highest rate to try must be above 0",
			       label_flag(cfg, FLAG_lr, &l));
	if (cfg->max_steps < FIND_STEPS_LEAST || cfg->max_steps > FIND_STEPS_MOST)
		return err_set(err, ERR_USAGE, "%s %lld: dptrain find needs %d to %d steps",
			       label_flag(cfg, FLAG_max_steps, &l), (long long)cfg->max_steps, FIND_STEPS_LEAST,
			       FIND_STEPS_MOST);
	return 0;
}

/* Deterministic results depend on the number of threads, so that many run even where they take turns on few cores. */
static int resolve_threads(struct run_config *cfg, struct err *err)
{
	const int64_t most = CROWD_MOST * (int64_t)cfg->cores;
	const bool prints = cfg->command == COMMAND_PLAN || cfg->command == COMMAND_CONFIG || cfg->dump;
	struct label l;

	if (!is_given(cfg, FLAG_threads)) {
		cfg->threads = cfg->cores;
		mark_derived(cfg, FLAG_threads);
	} else if (!prints && cfg->deterministic && cfg->threads > most) {
		return err_set(err, ERR_USAGE, "%s %lld: too many for %d core%s with --deterministic: use at most %lld",
			       label_flag(cfg, FLAG_threads, &l), (long long)cfg->threads, cfg->cores,
			       cfg->cores > 1 ? "s" : "", (long long)most);
	}
	return 0;
}

int config_resolve(struct run_config *cfg, const struct config_world *w, struct err *err)
{
	int rc = 0;

	cfg->world = w->world < 1 ? 1 : w->world;
	cfg->local_world = w->local_world < 1 ? cfg->world : w->local_world;
	cfg->cores = config_cores(cfg);
	if (cfg->command == COMMAND_BACKENDS || cfg->command == COMMAND_TOKENIZE || cfg->command == COMMAND_SHARD ||
	    cfg->command == COMMAND_SWEEP || cfg->command == COMMAND_INSPECT)
		return 0;
	if (cfg->command == COMMAND_FIND)
		rc = resolve_find(cfg, err);
	if (!rc)
		rc = resolve_precision(cfg, err);
	if (!rc && cfg->decoder && command_has(cfg, FLAG_opt))
		rc = resolve_tuning(cfg, err);
	if (cfg->command == COMMAND_SAMPLE) /* one rank, no batches */
		return rc ? rc : resolve_threads(cfg, err);
	if (!rc)
		rc = resolve_strategy(cfg, err);
	if (!rc)
		rc = resolve_sharing(cfg, err);
	if (!rc)
		rc = resolve_offload(cfg, err);
	if (!rc)
		rc = resolve_batch(cfg, w, err);
	if (!rc)
		rc = resolve_leaves(cfg, err);
	if (!rc)
		rc = resolve_pipeline(cfg, err);
	if (!rc)
		rc = resolve_devices(cfg, err);
	if (!rc && command_has(cfg, FLAG_data_path))
		rc = resolve_data(cfg, err);
	if (!rc && command_has(cfg, FLAG_max_steps))
		rc = resolve_length(cfg, err);
	if (!rc)
		rc = resolve_optimiser(cfg, err);
	if (!rc && command_has(cfg, FLAG_report_to))
		rc = resolve_report(cfg, err);
	if (!rc && command_has(cfg, FLAG_resume))
		rc = resolve_checkpoints(cfg, err);
	if (!rc && command_has(cfg, FLAG_reset_head))
		rc = resolve_weights(cfg, err);
	if (!rc && command_has(cfg, FLAG_trace_steps))
		rc = resolve_trace(cfg, err);
	if (!rc)
		rc = resolve_link(cfg, err);
	if (!rc && cfg->command == COMMAND_DOCTOR)
		rc = resolve_doctor(cfg, err);
	return rc ? rc : resolve_threads(cfg, err);
}
