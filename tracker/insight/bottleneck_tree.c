/* SPDX-License-Identifier: Apache-2.0 */
/* bottleneck_tree.c: walks the leaves of the bottleneck tree. One function per leaf or group of leaves estimates the
 * time lost and its evidence. */
#include "tracker/insight/bottleneck_tree.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/array.h"
#include "tracker/insight/run_change.h"
#include "tracker/insight/spread.h"

#define SLOW_LINK_GBS 0.5 /* a slower all-reduce is limited by the link */
#define BUCKET_USUAL_MB 25.0
#define BUCKETS 8	   /* buckets of a model whose gradients are smaller than the usual bucket */
#define FIXED_LEAST 0.15   /* share of a step that is large if independent of the batch (4 x batch gains 11 %) */
#define NODE_CALL_S 1.3e-6 /* per node with tiny tensors: a graph of 700 on cores of 2020 to 2025 */
#define CLOCK_LEAST 1.08   /* the clock of shared machines varies by 5 % within minutes */
#define SHARE_MOST 0.99
#define WAIT_LEAST 0.02	  /* smaller shares of time count as no wait */
#define SHOWN_LEAST 0.005 /* share that is not printed as 0 % */
#define CORES_SPARE 0.5	  /* below this number of spare cores, concurrent work slows down */

struct tree_walk {
	const struct bottleneck_run *run;
	double seconds; /* time of a step, including the time between steps */
	double *values; /* space for all steps */
	struct bottleneck_report *report;
};

static const char *const names[BOTTLENECK_LEAVES] = {
#define LEAF(name, branch, title, usual, action) #name,
#define BRANCH(name, title)
#include "schema/insight/leaves.def"
#undef LEAF
#undef BRANCH
};

static const char *const branches[BOTTLENECK_LEAVES] = {
#define LEAF(name, branch, title, usual, action) #branch,
#define BRANCH(name, title)
#include "schema/insight/leaves.def"
#undef LEAF
#undef BRANCH
};

static const char *const usuals[BOTTLENECK_LEAVES] = {
#define LEAF(name, branch, title, usual, action) usual,
#define BRANCH(name, title)
#include "schema/insight/leaves.def"
#undef LEAF
#undef BRANCH
};

static const char *const actions[BOTTLENECK_LEAVES] = {
#define LEAF(name, branch, title, usual, action) action,
#define BRANCH(name, title)
#include "schema/insight/leaves.def"
#undef LEAF
#undef BRANCH
};

/* By name. A leaf and a branch with one name have one title. */
static const struct finding_title {
	const char *name, *title;
} titles[] = {
#define LEAF(name, branch, title, usual, action) { #name, title },
#define BRANCH(name, title) { #name, title },
#include "schema/insight/leaves.def"
#undef LEAF
#undef BRANCH
};

static const char *find_title(const char *name)
{
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		if (!strcmp(titles[i].name, name))
			return titles[i].title;
	return name;
}

struct bottleneck_run bottleneck_unknown(void)
{
	return (struct bottleneck_run){
		.workers = NAN,
		.threads = NAN,
		.local_world = NAN,
		.cores = NAN,
		.batch_size = NAN,
		.parameters = NAN,
		.bucket_cap_mb = NAN,
		.eval_steps = NAN,
		.save_steps = NAN,
		.grad_accum_steps = NAN,
		.comm_total = NAN,
		.evaluation = NAN,
		.checkpoint = NAN,
		.cached = NAN,
		.saving_cpu = NAN,
		.load = NAN,
		.load_cpu = NAN,
		.ready = NAN,
		.run_wait = NAN,
		.taken = NAN,
		.steal = NAN,
		.throttled = NAN,
		.memory_wait = NAN,
		.major_faults = NAN,
		.clock = NAN,
		.nodes = NAN,
	};
}

static double compute_phase_mean(const struct bottleneck_run *run, int phase)
{
	double sum = 0;

	for (size_t i = 0; i < run->n; i++)
		sum += run->steps[i].phase[phase] / (double)run->n;
	return sum;
}

/* Adds a finding of that share, with the interval of a phase's share (phase -1: none). Returns NULL if removing it
 * would gain too little. */
static struct bottleneck_finding *add_tree_finding(struct tree_walk *w, enum bottleneck_leaf leaf, double share,
						   int phase)
{
	const struct bottleneck_run *run = w->run;
	struct bottleneck_finding *f;
	struct spread s;
	double half;

	if (share > SHARE_MOST) /* a wait at the end of one step counts in the next */
		share = SHARE_MOST;
	if (!(share > 0) || 1 / (1 - share) - 1 < BOTTLENECK_GAIN_LEAST)
		return NULL;
	f = &w->report->findings[w->report->n++];
	*f = (struct bottleneck_finding){
		.leaf = names[leaf], .share = share, .low = NAN, .high = NAN, .usual = usuals[leaf]
	};
	f->gain = 1 / (1 - share);
	snprintf(f->action, sizeof(f->action), "%s", actions[leaf]);
	if (phase < 0)
		return f;
	for (size_t i = 0; i < run->n; i++)
		w->values[i] = run->steps[i].phase[phase] - share * run->steps[i].seconds;
	spread_of(w->values, run->n, &s);
	if (!(s.effective >= RUN_CHANGE_EFFECTIVE_LEAST))
		return f;
	half = t_distribution_quantile(RUN_CHANGE_CONFIDENCE, fmax(1, (double)run->n / s.block)) * sqrt(s.variance) /
	       w->seconds;
	f->low = fmax(0, share - half);
	f->high = fmin(1, share + half);
	return f;
}

#define SET_EVIDENCE(f, ...) snprintf((f)->evidence, sizeof((f)->evidence), __VA_ARGS__)
#define SET_ACTION(f, ...) snprintf((f)->action, sizeof((f)->action), __VA_ARGS__)
#define SET_FLAGS(f, ...) snprintf((f)->flags, sizeof((f)->flags), __VA_ARGS__)

static double phase_share(const struct tree_walk *w, int phase)
{
	return compute_phase_mean(w->run, phase) / w->seconds;
}

/* Copies the flags at the beginning of the action. */
static void copy_action_flags(struct bottleneck_finding *f)
{
	SET_FLAGS(f, "%.*s", (int)strcspn(f->action, ";:"), f->action);
}

/* Removes the first proposal of an action, which is the run's setting: "-j auto, or …", "-j auto; …". */
static void drop_own_setting(struct bottleneck_finding *f)
{
	size_t n = strcspn(f->action, ";,");

	n += strspn(f->action + n, ";, ");
	n += strncmp(f->action + n, "or ", 3) ? 0 : 3;
	memmove(f->action, f->action + n, strlen(f->action + n) + 1);
}

/* Suggests more loader threads. "-j auto" already finds the best number. */
static void advise_loader(const struct bottleneck_run *run, enum bottleneck_leaf leaf, struct bottleneck_finding *f)
{
	double computing = run->threads * run->local_world;

	if (run->workers == 0)
		SET_ACTION(f, "-j auto: with -j 0 loading does not overlap with the steps");
	else if (run->workers_auto)
		drop_own_setting(f);
	else if (leaf == BOTTLENECK_decode && run->workers > 0 && run->cores > computing + run->workers)
		SET_ACTION(f, "-j %.0f: cores are free", run->workers * 2);
	if (run->workers >= 0)
		copy_action_flags(f);
}

/* The share of their time in which loader threads are off the cores without waiting for one. They are assumed to wait
 * for cores as long as compute threads do. */
static double compute_blocked_share(const struct bottleneck_run *run)
{
	return 1 - run->load_cpu / run->load - (run->run_wait > 0 ? run->run_wait : 0);
}

static bool is_blocked(const struct bottleneck_run *run)
{
	return compute_blocked_share(run) > run->load_cpu / run->load;
}

/* The loader waits for evicted pages, not for a first read, which waits for its disk alone. Reading a page back takes a
 * core about as long as the thread waits for it. A loader that does nothing else is off the cores half of its time, or
 * a quarter if that is half of its work. */
static bool is_evicted(const struct bottleneck_run *run)
{
	return compute_blocked_share(run) > 0.25 && run->memory_wait > WAIT_LEAST && run->major_faults >= 1;
}

/* Returns the cores that computing and loading use. */
static double count_busy_cores(const struct bottleneck_run *run, double seconds)
{
	const double loading = run->load_cpu > 0 ? fmin(run->load_cpu / seconds, run->workers) : 0;

	return run->local_world * (run->threads + loading);
}

/* Returns true if these leave no spare core. Computing is then 5 to 20 % slower (caches, hyper-threads), and the gain
 * of removing the load is unknown. */
static bool shares_cores(const struct bottleneck_run *run, double seconds)
{
	return count_busy_cores(run, seconds) > run->cores - CORES_SPARE;
}

/* Without loader threads, the wait for data is the loading itself. */
static void diagnose_loader(struct tree_walk *w)
{
	const struct bottleneck_run *run = w->run;
	double share = phase_share(w, STEP_TIME_data_wait), off = compute_blocked_share(run);
	enum bottleneck_leaf leaf = is_blocked(run) ? BOTTLENECK_disk : BOTTLENECK_decode;
	struct bottleneck_finding *f = is_evicted(run) ? NULL : add_tree_finding(w, leaf, share, STEP_TIME_data_wait);

	if (!f)
		return;
	if (!(run->load > 0)) {
		f->leaf = branches[leaf];
		SET_EVIDENCE(f,
			     "steps wait for the loader %.0f %% of the time; the cause is unknown without the series "
			     "data/load",
			     100 * share);
	} else if (leaf == BOTTLENECK_disk) {
		SET_EVIDENCE(f,
			     "steps wait for the loader %.0f %% of the time; its threads are off the cores %.0f %% of "
			     "their time",
			     100 * share, 100 * off);
	} else {
		SET_EVIDENCE(f,
			     "steps wait for the loader %.0f %% of the time; its threads are on a core %.0f %% of "
			     "their time",
			     100 * share, 100 * run->load_cpu / run->load);
	}
	if (leaf == BOTTLENECK_decode && run->workers != 0 && shares_cores(run, w->seconds))
		f->gain = NAN;
	advise_loader(run, leaf, f);
}

static void diagnose_copies(struct tree_walk *w)
{
	double share = phase_share(w, STEP_TIME_h2d) + phase_share(w, STEP_TIME_copy_exposed);
	struct bottleneck_finding *f = add_tree_finding(w, BOTTLENECK_copy, share, STEP_TIME_h2d);

	if (f)
		SET_EVIDENCE(f, "copying batches takes %.0f %% of the time", 100 * share);
}

/* GB/s of gradients that a rank sends and receives in a ring: 2 (n-1)/n of them. */
static double link_rate(const struct bottleneck_run *run)
{
	double n = (double)run->n_ranks;

	return 2 * (n - 1) / n * run->parameters * 4 / run->comm_total * 1e-9;
}

/* The usual size, or the size that splits all gradients into BUCKETS buckets. */
static double suggest_bucket_mb(const struct bottleneck_run *run)
{
	return fmin(BUCKET_USUAL_MB, run->parameters * 4 / 1048576 / BUCKETS);
}

/* The share of exposed communication that smaller buckets would hide in the backward pass, as a share of the time. They
 * can hide all but the last bucket, at most as long as that pass takes, minus what is already hidden (one bucket is
 * two: the first fills at 1 MB). */
static double compute_hideable_share(const struct tree_walk *w)
{
	const struct bottleneck_run *run = w->run;
	const double exposed = phase_share(w, STEP_TIME_comm_exposed), total = run->comm_total / w->seconds;
	const double most = fmin(phase_share(w, STEP_TIME_backward), total * (BUCKETS - 1) / BUCKETS);

	return fmin(exposed, most - fmax(0, total - exposed));
}

static enum bottleneck_leaf choose_communication_leaf(const struct tree_walk *w)
{
	const struct bottleneck_run *run = w->run;
	const bool one = run->bucket_cap_mb > BUCKET_USUAL_MB && run->parameters * 4 <= run->bucket_cap_mb * 1048576;

	if (one && compute_hideable_share(w) > phase_share(w, STEP_TIME_comm_exposed) / 2)
		return BOTTLENECK_bucket;
	return link_rate(run) < SLOW_LINK_GBS ? BOTTLENECK_link : BOTTLENECK_small_batch;
}

/* Four times as many passes a step as the run has. */
static double suggest_passes(const struct bottleneck_run *run)
{
	return 4 * (run->grad_accum_steps > 0 ? run->grad_accum_steps : 1);
}

/* Suggests a larger batch; the gain is unknown, as that is another training. */
static void advise_batch_size(const struct bottleneck_run *run, struct bottleneck_finding *f)
{
	f->gain = NAN;
	if (!(run->batch_size > 0))
		return;
	if (run->n_ranks > 1)
		SET_ACTION(f, "-b %.0f: the communication stays the same; or --grad-accum-steps %.0f",
			   run->batch_size * 4, suggest_passes(run));
	else
		SET_ACTION(f, "-b %.0f: the update and the operator calls stay the same", run->batch_size * 4);
	SET_FLAGS(f, "-b %.0f", run->batch_size * 4);
}

/* Diagnoses the cost of a step that is independent of the batch: that share of communication, the update, operator
 * calls. Returns true if it is large. */
static bool diagnose_fixed_cost(struct tree_walk *w, double exposed)
{
	const struct bottleneck_run *run = w->run;
	const double calls = run->nodes > 0 ? run->nodes * NODE_CALL_S / w->seconds : 0;
	const double update = phase_share(w, STEP_TIME_optimizer), fixed = exposed + update + calls;
	struct bottleneck_finding *f =
		fixed > FIXED_LEAST ? add_tree_finding(w, BOTTLENECK_small_batch, fixed, -1) : NULL;

	if (!f)
		return false;
	SET_EVIDENCE(f,
		     "%.0f %% of the time does not depend on the batch size: operator calls %.0f %%, the update "
		     "%.0f %%, waiting for communication %.0f %%",
		     100 * fixed, 100 * calls, 100 * update, 100 * exposed);
	advise_batch_size(run, f);
	return true;
}

/* Diagnoses exposed communication: bucket size, link, or too small a batch. */
static void diagnose_communication(struct tree_walk *w)
{
	const struct bottleneck_run *run = w->run;
	const bool ranks = run->n_ranks > 1;
	double share = ranks ? phase_share(w, STEP_TIME_comm_exposed) : 0, rate = link_rate(run);
	enum bottleneck_leaf leaf = choose_communication_leaf(w);
	struct bottleneck_finding *f;

	if (diagnose_fixed_cost(w, leaf == BOTTLENECK_small_batch && !isnan(rate) ? share : 0) &&
	    leaf == BOTTLENECK_small_batch)
		return;
	f = ranks ? add_tree_finding(w, leaf, leaf == BOTTLENECK_bucket ? compute_hideable_share(w) : share,
				     STEP_TIME_comm_exposed)
		  : NULL;
	if (!f)
		return;
	if (isnan(rate)) {
		f->leaf = branches[leaf];
		SET_EVIDENCE(f, "all ranks wait for communication %.0f %% of the time", 100 * share);
	} else if (leaf == BOTTLENECK_bucket) {
		SET_EVIDENCE(
			f,
			"one bucket has nearly all %.0f MB of gradients: waiting for it takes %.0f %% of the time; the "
			"backward pass, which could hide it, %.0f %%",
			run->parameters * 4e-6, 100 * share, 100 * phase_share(w, STEP_TIME_backward));
	} else {
		SET_EVIDENCE(f, "all ranks wait for communication %.0f %% of the time; gradients are sent at %.2f GB/s",
			     100 * share, rate);
	}
	if (leaf == BOTTLENECK_bucket)
		SET_ACTION(f, "--bucket-cap-mb %.2g", suggest_bucket_mb(run));
	else if (leaf == BOTTLENECK_link)
		SET_ACTION(f, "a faster link between the ranks; --grad-accum-steps %.0f sends a quarter as often",
			   suggest_passes(run));
	SET_FLAGS(f, "--grad-accum-steps %.0f", suggest_passes(run));
	if (leaf == BOTTLENECK_bucket)
		copy_action_flags(f);
	else if (leaf == BOTTLENECK_small_batch && !isnan(rate))
		advise_batch_size(run, f);
}

static double compute_own_seconds(const struct bottleneck_rank *r)
{
	return r->seconds - r->phase[STEP_TIME_comm_exposed];
}

/* Returns the phase in which the slow rank exceeds the mean of the others most. */
static int find_slow_phase(const struct bottleneck_run *run, size_t slow)
{
	double most = -INFINITY;
	int found = STEP_TIME_other;

	for (int k = 0; k < STEP_TIME_PHASES; k++) {
		double others = 0, excess;

		for (size_t i = 0; i < run->n_ranks; i++)
			others += i == slow ? 0 : run->ranks[i].phase[k] / (double)(run->n_ranks - 1);
		excess = run->ranks[slow].phase[k] - others;
		if (k != STEP_TIME_comm_exposed && excess > most) {
			most = excess;
			found = k;
		}
	}
	return found;
}

/* One rank whose own time exceeds the median of all; with two ranks, the other's. */
static void diagnose_ranks(struct tree_walk *w)
{
	const struct bottleneck_run *run = w->run;
	double *own = w->values, usual, excess;
	struct bottleneck_finding *f;
	size_t slow = 0;

	if (run->n_ranks < 2 || run->n_ranks > run->n)
		return;
	for (size_t i = 0; i < run->n_ranks; i++) {
		own[i] = compute_own_seconds(&run->ranks[i]);
		slow = own[i] > compute_own_seconds(&run->ranks[slow]) ? i : slow;
	}
	median_sort(own, run->n_ranks);
	usual = own[(run->n_ranks - 1) / 2];
	excess = compute_own_seconds(&run->ranks[slow]) - usual;
	if (!(excess > BOTTLENECK_STRAGGLER_EXCESS * usual))
		return;
	f = add_tree_finding(w, BOTTLENECK_straggler, excess / w->seconds, -1);
	if (f)
		SET_EVIDENCE(f, "rank %d takes %.4g ms a step without waiting, the others %.4g ms; most of it in %s",
			     run->ranks[slow].rank, 1e3 * compute_own_seconds(&run->ranks[slow]), 1e3 * usual,
			     step_time_phase_name((enum step_time_phase)find_slow_phase(run, slow)));
}

/* Describes who uses the cores: other programs, or the hypervisor. */
static void describe_taken_cores(const struct bottleneck_run *run, double share, struct bottleneck_finding *f)
{
	int n = SET_EVIDENCE(
		f, "threads wait for a core %.0f %% of the time; other programs take %.0f %% of all cores' time",
		100 * share, 100 * run->taken);

	if (run->steal > SHOWN_LEAST && n > 0 && (size_t)n < sizeof(f->evidence))
		snprintf(f->evidence + n, sizeof(f->evidence) - (size_t)n, ", the hypervisor %.0f %%",
			 100 * run->steal);
	if (run->threads > 1)
		SET_ACTION(f, "stop the other programs on these cores, or use --threads %.0f", run->threads - 1);
	else
		SET_ACTION(f, "stop the other programs on these cores");
}

static void describe_cpu(const struct bottleneck_run *run, enum bottleneck_leaf leaf, double share,
			 struct bottleneck_finding *f)
{
	if (leaf == BOTTLENECK_cpu_quota)
		SET_EVIDENCE(f, "the control group was throttled %.0f %% of the time", 100 * run->throttled);
	else if (leaf == BOTTLENECK_threads)
		SET_EVIDENCE(f, "%.0f compute threads on %.0f cores", run->threads * run->local_world, run->cores);
	else if (leaf == BOTTLENECK_cpu_taken)
		describe_taken_cores(run, share, f);
	else if (run->ready > 0)
		SET_EVIDENCE(f, "compute waits for a core %.0f %% of the time while %.1f batches are ready",
			     100 * share, run->ready);
	else
		SET_EVIDENCE(f, "compute waits for a core %.0f %% of the time", 100 * share);
}

/* Older kernels count the wait of a throttled thread as a wait for a core, newer ones do not. A much longer wait is not
 * caused by the quota. */
static bool is_throttled(const struct bottleneck_run *run)
{
	return run->throttled > WAIT_LEAST && !(run->run_wait > 2 * run->throttled);
}

/* Others use at least half as many cores as threads wait for; below that, the run's own threads compete. */
static bool are_cores_taken(const struct bottleneck_run *run)
{
	const double others = fmax(run->taken, run->steal), waiting = run->run_wait * run->threads * run->local_world;

	return others > WAIT_LEAST && !(others * run->cores < waiting / 2);
}

/* Waits for a core: caused by its own threads, by other programs, by a quota, or by the loader. */
static void diagnose_cpu(struct tree_walk *w)
{
	const struct bottleneck_run *run = w->run;
	double wanted = run->threads * run->local_world;
	enum bottleneck_leaf leaf = is_throttled(run)	   ? BOTTLENECK_cpu_quota
				    : wanted > run->cores  ? BOTTLENECK_threads
				    : are_cores_taken(run) ? BOTTLENECK_cpu_taken
							   : BOTTLENECK_crowding;
	struct bottleneck_finding *f =
		add_tree_finding(w, leaf, leaf == BOTTLENECK_cpu_quota ? run->throttled : run->run_wait, -1);

	if (!f)
		return;
	if (leaf == BOTTLENECK_crowding &&
	    (isnan(run->taken) || !(run->ready > 0))) /* the user of the cores is unknown */
		f->leaf = branches[leaf];
	describe_cpu(run, leaf, f->share, f);
	/* threads wait for each other: the wait of one thread for a core does not give the gain */
	if (leaf == BOTTLENECK_threads || run->threads > 1)
		f->gain = NAN;
	if (leaf == BOTTLENECK_threads && run->local_world > 0)
		SET_ACTION(f, "--threads %.0f", fmax(1, floor(run->cores / run->local_world)));
	if (leaf == BOTTLENECK_threads)
		copy_action_flags(f);
	else if (leaf == BOTTLENECK_cpu_taken && run->threads > 1)
		SET_FLAGS(f, "--threads %.0f", run->threads - 1);
	else if (leaf == BOTTLENECK_crowding && run->workers > 0)
		SET_FLAGS(f, "-j auto");
	else if (leaf == BOTTLENECK_crowding && run->workers_auto)
		drop_own_setting(f);
}

static void diagnose_memory(struct tree_walk *w)
{
	const struct bottleneck_run *run = w->run;
	const double waited = is_evicted(run) ? phase_share(w, STEP_TIME_data_wait) : 0;
	const bool loads = waited > run->memory_wait;
	struct bottleneck_finding *f = add_tree_finding(w, BOTTLENECK_memory, loads ? waited : run->memory_wait,
							loads ? STEP_TIME_data_wait : -1);

	if (!f)
		return;
	if (run->recomputes_all)
		drop_own_setting(f);
	if (loads)
		SET_EVIDENCE(
			f,
			"steps wait for the loader %.0f %% of the time, which reads %.1f pages a step back; threads "
			"wait for memory %.0f %% of it",
			100 * waited, run->major_faults, 100 * run->memory_wait);
	else
		SET_EVIDENCE(f, "threads wait for memory %.0f %% of the time; %.1f pages are read back a step",
			     100 * run->memory_wait, run->major_faults);
}

/* Writing a checkpoint slows the steps down by the demand of all threads that exceeds the cores. */
static double compute_saving_share(const struct tree_walk *w)
{
	const struct bottleneck_run *run = w->run;
	const double saving = run->saving_cpu / w->seconds;
	const double beyond = count_busy_cores(run, w->seconds) + saving - run->cores;

	return beyond > 0 ? fmin(saving, beyond) : 0;
}

static void diagnose_checkpoints(struct tree_walk *w)
{
	const struct bottleneck_run *run = w->run;
	const double still = run->checkpoint / w->seconds, saving = compute_saving_share(w);
	struct bottleneck_finding *f = add_tree_finding(w, BOTTLENECK_checkpoint, still + saving, -1);

	if (!f)
		return;
	if (saving > 0)
		SET_EVIDENCE(
			f,
			"training pauses for checkpoints %.0f %% of the time; writing them takes %.0f %% of a core "
			"that the run needs",
			100 * still, 100 * saving);
	else
		SET_EVIDENCE(f, "training pauses for checkpoints %.0f %% of the time", 100 * still);
	if (run->save_steps > 0) {
		SET_ACTION(f, "--save-steps %.0f", 10 * run->save_steps);
		copy_action_flags(f);
	}
}

/* Diagnoses the clock, memory, evaluation and checkpoints. */
static void diagnose_rest(struct tree_walk *w)
{
	const struct bottleneck_run *run = w->run;
	struct bottleneck_finding *f =
		run->clock > CLOCK_LEAST ? add_tree_finding(w, BOTTLENECK_clock, 1 - 1 / run->clock, -1) : NULL;

	if (f)
		SET_EVIDENCE(f, "a fixed loop takes %.2f times as long as at the best clock", run->clock);
	diagnose_memory(w);
	f = add_tree_finding(w, BOTTLENECK_evaluation, phase_share(w, STEP_TIME_between), STEP_TIME_between);
	if (f && isnan(run->evaluation))
		f->leaf = branches[BOTTLENECK_evaluation];
	if (f)
		SET_EVIDENCE(f, "%s %.0f %% of the time",
			     isnan(run->evaluation) ? "the time between steps takes" : "evaluation takes",
			     100 * f->share);
	if (f && isnan(run->evaluation)) {
		SET_ACTION(f, "check what the program does between its steps");
	} else if (f && run->eval_steps > 0) {
		SET_ACTION(f, "--eval-steps %.0f", 10 * run->eval_steps);
		copy_action_flags(f);
	}
	diagnose_checkpoints(w);
}

/* Returns true for leaves whose time is a pause in computing. */
static bool is_pause(const struct bottleneck_finding *f)
{
	static const enum bottleneck_leaf pauses[] = { BOTTLENECK_disk, BOTTLENECK_decode, BOTTLENECK_copy,
						       BOTTLENECK_evaluation, BOTTLENECK_memory };

	for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++)
		if (f->leaf == names[pauses[i]])
			return true;
	return false;
}

/* The cost of pauses besides their own time, as a share: caches lose their contents, so steps without pauses compute
 * faster. Excludes the waits for a core while computing, in proportion to the time. At most half of the pauses. */
static double compute_cooling_share(const struct tree_walk *w, double pauses)
{
	const struct bottleneck_run *run = w->run;
	const double waiting = run->run_wait > 0 ? run->run_wait * (1 - pauses) : 0;
	const double slower = 1 - pauses - waiting - run->cached / w->seconds;

	return run->cached > 0 ? fmin(fmax(0, slower), pauses / 2) : 0;
}

static void append_cooling(struct bottleneck_finding *f, double seconds)
{
	const size_t n = strlen(f->evidence);

	snprintf(f->evidence + n, sizeof(f->evidence) - n, "; %.2g ms more for cold caches", 1e3 * seconds);
}

/* Distributes that cost over the pauses. */
static void add_cooling(struct tree_walk *w)
{
	const double pauses = phase_share(w, STEP_TIME_data_wait) + phase_share(w, STEP_TIME_h2d) +
			      phase_share(w, STEP_TIME_copy_exposed) + phase_share(w, STEP_TIME_between);
	const double cooled = compute_cooling_share(w, pauses);

	for (size_t i = 0; i < w->report->n; i++) {
		struct bottleneck_finding *f = &w->report->findings[i];
		const double own = cooled * fmin(1, f->share / pauses);

		if (own <= SHOWN_LEAST || !is_pause(f) || isnan(f->gain))
			continue;
		f->gain = 1 / (1 - fmin(SHARE_MOST, f->share + own));
		append_cooling(f, own * w->seconds);
	}
}

static int compare_findings(const void *a, const void *b)
{
	double x = ((const struct bottleneck_finding *)a)->share, y = ((const struct bottleneck_finding *)b)->share;

	return (x < y) - (x > y);
}

static void format_finding(struct bottleneck_finding *f)
{
	char between[40] = "", gain[80] = "the speed without it is unknown";

	if (!isnan(f->low))
		snprintf(between, sizeof(between), " (%.0f-%.0f)", 100 * f->low, 100 * f->high);
	if (!isnan(f->gain))
		snprintf(gain, sizeof(gain), "without it up to %.2fx as fast", f->gain);
	else if (f->flags[0])
		snprintf(gain, sizeof(gain), "dptrain doctor --try measures what the action gains");
	snprintf(f->sentence, sizeof(f->sentence), "%s: %.0f %% of the time%s; %s", find_title(f->leaf), 100 * f->share,
		 between, gain);
}

static void format_findings(struct bottleneck_report *r)
{
	for (size_t i = 0; i < r->n; i++)
		format_finding(&r->findings[i]);
	if (r->n)
		snprintf(r->sentence, sizeof(r->sentence), "%s", r->findings[0].sentence);
	else
		snprintf(r->sentence, sizeof(r->sentence), "healthy: no bottleneck whose removal would gain %.0f %%",
			 100 * BOTTLENECK_GAIN_LEAST);
}

static void format_bound(struct tree_walk *w)
{
	const double forward = phase_share(w, STEP_TIME_forward), backward = phase_share(w, STEP_TIME_backward);
	const double update = phase_share(w, STEP_TIME_optimizer);

	snprintf(w->report->bound, sizeof(w->report->bound),
		 "compute: forward %.0f %%, backward %.0f %%, update %.0f %% of the time", 100 * forward,
		 100 * backward, 100 * update);
}

int bottleneck_judge(const struct bottleneck_run *run, struct bottleneck_report *ret, struct err *err)
{
	struct tree_walk w = { .run = run, .report = ret };

	if (!run->n)
		return err_set(err, ERR_USAGE, "the run has no steps to diagnose");
	w.values = calloc(run->n, sizeof(*w.values));
	if (!w.values)
		return err_set(err, ERR_NOMEM, "out of memory: %zu steps", run->n);
	*ret = (struct bottleneck_report){ .n = 0 };
	for (size_t i = 0; i < run->n; i++)
		w.seconds += run->steps[i].seconds / (double)run->n;
	diagnose_loader(&w);
	diagnose_copies(&w);
	diagnose_communication(&w);
	diagnose_ranks(&w);
	diagnose_cpu(&w);
	diagnose_rest(&w);
	add_cooling(&w);
	qsort(ret->findings, ret->n, sizeof(*ret->findings), compare_findings);
	ret->verdict = ret->n ? ret->findings[0].leaf : "healthy";
	format_findings(ret);
	format_bound(&w);
	free(w.values);
	return 0;
}

void bottleneck_print(struct buf *out, const struct bottleneck_report *r)
{
	if (!r->n)
		buf_addf(out, "%s\n", r->sentence);
	for (size_t i = 0; i < r->n; i++) {
		const struct bottleneck_finding *f = &r->findings[i];

		buf_addf(out, "%s\n  found: %s\n  usual: %s\n  next: %s\n", f->sentence, f->evidence, f->usual,
			 f->action);
	}
	buf_addf(out, "bound by %s\n", r->bound);
}
