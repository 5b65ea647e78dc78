/* SPDX-License-Identifier: Apache-2.0 */
/* auto.c: converts flags to a plan search, and its best plan to flags. The memory of the best plans is planned with the
 * passes of their strategies, which replaces the estimate of the formulas. */
#include <string.h>

#include "tracker/base/log.h"
#include "tracker/base/terminal.h"
#include "trainer/launch/machine.h"
#include "trainer/program/memory.h"
#include "trainer/state/initial.h"
#include "trainer/tools/auto_text.h"
#include "trainer/tools/costing.h"
#include "trainer/tools/subcommands.h"

/* ---- the memory of one configuration ---- */

/* Unused memory between tensors counts as activations, which cause it. */
static void fill_planned_bytes(struct advise_cost *ret, const struct plan *p)
{
	const size_t placed = (size_t)memory_planned(p) - memory_offloaded(p);
	size_t known = 0;

	*ret = (struct advise_cost){ .host_bytes = (double)p->category_bytes[PLAN_OFFLOADED] };
	for (int i = 0; i < PLAN_CATEGORY_COUNT; i++) {
		known += i == PLAN_OFFLOADED ? 0 : p->category_bytes[i];
		ret->bytes[i] = i == PLAN_OFFLOADED || i == PLAN_SNAPSHOT ? 0 : (double)p->category_bytes[i];
	}
	if (placed > known)
		ret->bytes[PLAN_ACTIVATIONS] += (double)(placed - known);
}

static double planning_work(const struct prepared *p)
{
	double work = 0;

	for (int i = 0; i < p->n_programs; i++)
		work += (double)p->program[i]->schedule.n * p->program[i]->schedule.n;
	return work;
}

static int plan_stage_in_full(struct advise_cost *ret, double *work, const struct job *job, int stage, struct err *err)
{
	const struct run_config *cfg = job->cfg;
	struct shared_status shared_status = { .stop_signal = 0 }; /* a plan is never stopped */
	/* In the last pipeline, whose ranks do not print warnings. */
	const struct rank_context context = { .world = cfg->world,
					      .rank = cfg->world - (int)config_stages(cfg) + stage,
					      .local_world = 1,
					      .nodes = cfg->world,
					      .shm_fd = -1,
					      .signal_fd = -1,
					      .shared_status = &shared_status };
	struct engine *e;
	int rc = engine_open_plan(&e, job, &context, err);

	if (rc)
		return rc;
	fill_planned_bytes(ret, &e->prepared.plan);
	*work += planning_work(&e->prepared);
	engine_close(e);
	return 0;
}

struct full_plan {
	struct advise_cost cost; /* bytes and host_bytes, without those of checkpoints */
	double work;		 /* squared numbers of items of all programs planned so far, a measure of time */
};

/* Replaces ret->cost and adds to ret->work. job->cfg: the configuration, resolved. stage: the stage of a pipeline that
 * needs most by formula; the first and last stage are planned too, and the maximum counts. ERR_USAGE, ERR_UNSUPPORTED:
 * the configuration is impossible. */
static int whole_plan(struct full_plan *ret, const struct job *job, int stage, struct err *err)
{
	const int last = (int)config_stages(job->cfg) - 1, stages[] = { stage, 0, last };
	int rc = 0;

	ret->cost = (struct advise_cost){ .host_bytes = 0 };
	for (int i = 0; !rc && i < 3; i++) {
		struct advise_cost one;

		if ((i > 0 && stages[i] == stage) || (i == 2 && !last))
			continue;
		rc = plan_stage_in_full(&one, &ret->work, job, stages[i], err);
		if (!rc && advise_bytes(&one) > advise_bytes(&ret->cost))
			ret->cost = one;
	}
	return rc;
}

#define WHOLE_MOST 24  /* largest number of plans that are planned in full */
#define WHOLE_WORK 3e7 /* sum of their programs' squared items after which only the first is: about 0.2 s */

static const char *const strategy_words[STRATEGY_COUNT] = {
#define STRATEGY(word, ...) [STRATEGY_##word] = #word,
#include "trainer/strategies/strategies.def"
#undef STRATEGY
};

/* Returns the bit of a strategy in the masks of the search, by name: plans may have other strategies, in another
 * order. */
static unsigned advise_bit(int strategy)
{
	unsigned bit = 0;

	for (int i = 0; i < ADVISE_COUNT; i++)
		bit |= !strcmp(advise_table[i]->name, strategy_words[strategy]) ? 1u << i : 0;
	return bit;
}

static unsigned built_strategies(void)
{
	unsigned built = 0;

	for (int i = 0; i < STRATEGY_COUNT; i++)
		built |= advise_bit(i);
	return built;
}

/* Plans may also try bf16; a training keeps its precision. */
static int candidate_precisions(const struct run_config *cfg, int *ret)
{
	const bool asked = config_given(cfg, FLAG_precision) || config_given(cfg, FLAG_opt_level);

	ret[0] = cfg->precision;
	ret[1] = CONFIG_PRECISION_BF16;
	return cfg->command == COMMAND_PLAN && cfg->precision == CONFIG_PRECISION_FP32 && !asked &&
	       !cfg->deterministic ? 2 : 1;
}

/* Returns the ranks per machine: --nproc-per-node, else those of the hardware file. */
static int ranks_per_machine(const struct run_config *cfg, const struct hardware *h)
{
	return config_given(cfg, FLAG_nproc_per_node) ? (int)cfg->nproc_per_node : h->ranks_per_node;
}

static int machine_count(const struct run_config *cfg)
{
	int min = 1, max = 1;

	(void)config_nodes(cfg, &min, &max); /* main.c checked the text */
	return max;
}

static int64_t planned_global_batch(const struct run_config *cfg, const struct hardware *h)
{
	if (config_given(cfg, FLAG_global_batch_size) || cfg->batch_from)
		return cfg->global_batch_size;
	return cfg->batch_size * cfg->grad_accum_steps * ranks_per_machine(cfg, h) * machine_count(cfg);
}

/* Sets a flag as if it had been typed. */
static int set_planned_flag(struct run_config *cfg, enum flag_id id, const char *text, struct err *err)
{
	int rc = config_put(cfg, id, "--auto", *text ? text : "yes", err);

	if (!rc)
		cfg->origin[id] = ORIGIN_FLAG;
	return rc;
}

/* Replaces typed flags by those of a plan. --opt-level stays, because it means more than its precision. */
static int set_planned_flags(struct run_config *cfg, const struct auto_flags *flags, struct err *err)
{
	static const enum flag_id decided[] = { FLAG_zero_stage,      FLAG_pp_stages,
						FLAG_microbatches,    FLAG_dp_devices, FLAG_pp_partition,
						FLAG_optim_offload,   FLAG_param_offload,
						FLAG_grad_accum_steps, FLAG_activation_checkpointing };
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(decided) / sizeof(decided[0]); i++)
		rc = config_take_back(cfg, decided[i], err);
	for (int i = 0; !rc && i < flags->n; i++)
		if (flags->flag[i].id != FLAG_precision || !config_given(cfg, FLAG_opt_level))
			rc = set_planned_flag(cfg, flags->flag[i].id, flags->flag[i].value, err);
	return rc;
}

/* A backend has set the number of threads in the environment, for OpenMP: undo its effect on cfg. */
static int restore_threads(struct run_config *cfg, const struct run_config *first, struct err *err)
{
	if (!config_given(first, FLAG_threads))
		return config_take_back(cfg, FLAG_threads, err);
	cfg->threads = first->threads;
	return 0;
}

static int resolve_given(struct run_config *cfg, const struct config_world *w, struct err *err)
{
	int rc = initial_begin(cfg, err);

	if (!rc)
		rc = config_resolve(cfg, w, err);
	return rc ? rc : initial_settle(cfg, err);
}

/* Parses the command line again with the flags of a plan; *ret is resolved. */
static int parse_with_plan(struct run_config **ret, const struct job *job, const struct search_plan *p,
			   int64_t global_batch, struct err *err)
{
	const struct config_world w = { .world = p->layout.ranks, .local_world = p->layout.ranks / p->layout.nodes };
	struct auto_flags flags;
	struct run_config *cfg;
	int rc = config_parse(&cfg, job->argc, job->argv, err);

	if (rc)
		return rc;
	auto_flags_of(&flags, p, global_batch);
	rc = set_planned_flags(cfg, &flags, err);
	if (!rc)
		rc = restore_threads(cfg, job->cfg, err);
	if (!rc)
		rc = resolve_given(cfg, &w, err);
	if (rc)
		config_free(cfg);
	else
		*ret = cfg;
	return rc;
}

static int plan_in_full(struct full_plan *ret, const struct job *job, const struct search_plan *p, int64_t global_batch,
			struct err *err)
{
	struct job whole = *job;
	int rc = parse_with_plan(&whole.cfg, job, p, global_batch, err);

	if (rc)
		return rc;
	whole.cfg->command = COMMAND_PLAN;
	rc = whole_plan(ret, &whole, p->cost.stage, err);
	config_free(whole.cfg);
	return rc;
}

/* Returns the next plan to plan in full; -1: none. */
static int next_plan_in_full(const struct plan_search *s)
{
	for (int i = 0; i < s->n && s->plans[i].fits && s->plans[i].built; i++)
		if (!s->plans[i].whole && search_is_best_of_kind(s, i))
			return i;
	return -1;
}

/* Formulas assume that all blocks cost the same. The best plan of each kind is therefore planned in full, so that the
 * first plans have the bytes of the passes. For large models that takes long: then only the best plan. */
static int plan_best_in_full(struct auto_found *f, const struct search_opts *o, const struct job *job, struct err *err)
{
	const enum search_goal goal = (enum search_goal)job->cfg->goal;
	struct full_plan planned = { .work = 0 };
	struct terminal_progress progress;
	int rc = 0;

	terminal_progress_begin(&progress, "candidates planned in full", 0);
	for (int turn = 0; turn < WHOLE_MOST; turn++) {
		const int i = next_plan_in_full(&f->search);

		if (i < 0 || (i > 0 && planned.work >= WHOLE_WORK))
			break;
		rc = plan_in_full(&planned, job, &f->search.plans[i], f->global_batch, err);
		if (rc && rc != ERR_USAGE && rc != ERR_UNSUPPORTED)
			break;
		search_correct(&f->search, i, o, goal, rc ? NULL : &planned.cost);
		rc = 0;
		terminal_progress_show(&progress, (uint64_t)turn + 1);
	}
	terminal_progress_clear(&progress);
	return rc;
}

static int search_and_check(struct auto_found *ret, struct costing *work, const struct job *job,
			    const struct workload *s, struct err *err)
{
	const struct run_config *cfg = job->cfg;
	const struct search_opts o = { .hardware = &ret->hardware,
				       .nodes = machine_count(cfg),
				       .ranks_per_node = ranks_per_machine(cfg, &ret->hardware),
				       .global_batch = ret->global_batch,
				       .precisions = ret->precisions,
				       .n_precisions = candidate_precisions(cfg, ret->precisions),
				       .data_bytes = (double)s->data->buffer_bytes,
				       .bucket_bytes = cfg->bucket_cap_mb * 1048576,
				       .threads = config_given(cfg, FLAG_threads) ? (int)cfg->threads : 0,
				       .memory_bytes = cfg->hardware ? 0 : (double)machine_available_bytes(),
				       .wanted = config_given(cfg, FLAG_strategy) ? advise_bit(cfg->strategy) : ~0u,
				       .built = built_strategies(),
				       .model = costing_model,
				       .user = work };

	int rc = search_all(&ret->search, &o, (enum search_goal)cfg->goal, err);

	return rc ? rc : plan_best_in_full(ret, &o, job, err);
}

/* Searches all plans. job->cfg is resolved; open values are set from data and model. */
static int search_plans(struct auto_found *ret, const struct job *job, struct err *err)
{
	struct run_config *cfg = job->cfg;
	struct workload s = { .data = NULL };
	struct costing *work = NULL;
	int rc = hardware_open_chosen(&ret->hardware, cfg->hardware, err);

	if (rc)
		return rc;
	rc = workload_open(&s, cfg, job->batch, NULL, err);
	if (!rc && cfg->command == COMMAND_PLAN) /* a training says it itself */
		workload_warn(s.data);
	if (!rc)
		rc = initial_given(&s, cfg, err);
	work = costing_new(cfg, &s, &ret->hardware);
	ret->global_batch = planned_global_batch(cfg, &ret->hardware);
	ret->per_sample = !rc && s.model->reads_tokens ? s.config.seq_len : 1;
	if (!rc)
		rc = search_and_check(ret, work, job, &s, err);
	if (!rc && !ret->search.n)
		rc = err_set(err, ERR_USAGE, "no plan: the global batch of %lld is smaller than the number of ranks",
			     (long long)ret->global_batch);
	costing_free(work);
	workload_close(&s);
	return rc;
}

static void free_auto_found(struct auto_found *f)
{
	search_done(&f->search);
	hardware_done(&f->hardware);
}

int auto_plan(const struct job *job, struct buf *out, struct err *err)
{
	struct auto_found found = { .global_batch = 0 };
	int rc = search_plans(&found, job, err);

	if (!rc) {
		auto_text(&found, job->cfg, out);
		rc = found.search.plans[0].fits ? 0 : NO_PLAN_FITS;
	}
	free_auto_found(&found);
	return rc;
}

/* Parses and resolves the command line again, so that job->cfg stays unresolved. */
static int parse_again(struct run_config **ret, const struct job *job, struct err *err)
{
	struct run_config *cfg;
	int rc = config_parse(&cfg, job->argc, job->argv, err);

	if (rc)
		return rc;
	rc = resolve_given(cfg, &(struct config_world){ .world = (int)cfg->nproc_per_node }, err);
	if (rc)
		config_free(cfg);
	else
		*ret = cfg;
	return rc;
}

static const struct search_plan *best_startable_plan(const struct plan_search *s)
{
	return s->n && s->plans[0].fits && s->plans[0].built ? &s->plans[0] : NULL;
}

int auto_choose(struct job *job, struct err *err)
{
	struct auto_found found = { .global_batch = 0 };
	struct auto_flags flags;
	const struct search_plan *best;
	struct job here = *job;
	struct buf line;
	int rc;

	if (machine_count(job->cfg) > 1 || job->cfg->strategy || config_given(job->cfg, FLAG_strategy))
		return err_set(err, ERR_USAGE, "--auto: chooses strategy and ranks of one machine itself: omit %s",
			       machine_count(job->cfg) > 1 ? "--nnodes" : "--strategy");
	here.batch = NULL;
	rc = parse_again(&here.cfg, job, err);
	if (rc)
		return rc;
	rc = search_plans(&found, &here, err);
	best = rc ? NULL : best_startable_plan(&found.search);
	if (!rc && !best)
		rc = err_set(err, ERR_USAGE, "--auto: no plan for the global batch of %lld fits into this machine: "
			     "dptrain plan --auto lists what each needs", (long long)found.global_batch);
	if (!rc) {
		auto_flags_of(&flags, best, found.global_batch);
		buf_init(&line, 4096);
		auto_flags_text(&flags, &line);
		job->planned_step_s = best->seconds;
		log_info("--auto: %s (expected: %.3g s per step)", line.data ? line.data : "", best->seconds);
		buf_done(&line);
		rc = set_planned_flags(job->cfg, &flags, err);
	}
	free_auto_found(&found);
	config_free(here.cfg);
	return rc;
}
