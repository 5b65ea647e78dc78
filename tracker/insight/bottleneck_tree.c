/* bottleneck_tree.c: walks the leaves. Each has one function that says how much of the time it takes, with its evidence. */
#include "tracker/insight/bottleneck_tree.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/median.h"
#include "tracker/insight/run_change.h"
#include "tracker/insight/spread.h"
#include "tracker/insight/t_distribution.h"

#define SLOW_LINK_GBS 0.5      /* an all-reduce below it lacks a link */
#define BUCKET_USUAL_MB 25.0
#define BUCKETS 8	       /* of a model whose gradients are smaller than the usual one */
#define FIXED_LEAST 0.15       /* of a step: what does not depend on the batch is much (4 times the batch: 11 %) */
#define CALL_S 1.3e-6	       /* of a node, however small its tensors: a graph of 700 on cores of 2020 to 2025 */
#define STRAGGLER_LEAST 0.05   /* of the other ranks' own time */
#define CLOCK_LEAST 1.08       /* machines that others use, too, go by 5 % slower and faster within minutes */
#define SHARE_MOST 0.99
#define NO_WAIT 0.02           /* a share of time that is none */
#define SEEN 0.005	       /* a share that is not printed as 0 % */
#define CORES_SPARE 0.5	       /* with less of one left, what runs beside each other slows each other */

struct walk {
	const struct bottleneck_run *run;
	double seconds;  /* a step, what lies between included */
	double *values;  /* room for all steps */
	struct bottleneck_report *report;
};

static const char *const names[BOTTLENECK_LEAVES] = {
#define LEAF(name, branch, usual, action) #name,
#include "schema/insight/leaves.def"
#undef LEAF
};

static const char *const branches[BOTTLENECK_LEAVES] = {
#define LEAF(name, branch, usual, action) #branch,
#include "schema/insight/leaves.def"
#undef LEAF
};

static const char *const usuals[BOTTLENECK_LEAVES] = {
#define LEAF(name, branch, usual, action) usual,
#include "schema/insight/leaves.def"
#undef LEAF
};

static const char *const actions[BOTTLENECK_LEAVES] = {
#define LEAF(name, branch, usual, action) action,
#include "schema/insight/leaves.def"
#undef LEAF
};

struct bottleneck_run bottleneck_unknown(void)
{
	return (struct bottleneck_run){
		.workers = NAN, .threads = NAN, .local_world = NAN, .cores = NAN, .batch_size = NAN,
		.parameters = NAN, .bucket_cap_mb = NAN, .eval_steps = NAN, .save_steps = NAN, .comm_total = NAN,
		.evaluation = NAN, .checkpoint = NAN, .bare = NAN, .saving_cpu = NAN, .load = NAN, .load_cpu = NAN,
		.ready = NAN, .run_wait = NAN, .taken = NAN, .steal = NAN, .throttled = NAN, .memory_wait = NAN,
		.major_faults = NAN, .clock = NAN, .nodes = NAN,
	};
}

static double phase_seconds(const struct bottleneck_run *run, int phase)
{
	double sum = 0;

	for (size_t i = 0; i < run->n; i++)
		sum += run->steps[i].phase[phase] / (double)run->n;
	return sum;
}

/* A finding of that share; NULL: it would not bring enough. The interval is that of a phase's share, phase -1: none. */
static struct bottleneck_finding *find(struct walk *w, enum bottleneck_leaf leaf, double share, int phase)
{
	const struct bottleneck_run *run = w->run;
	struct bottleneck_finding *f;
	struct spread s;
	double half;

	if (share > SHARE_MOST) /* what was waited for at the end of one step is counted in the next */
		share = SHARE_MOST;
	if (!(share > 0) || 1 / (1 - share) - 1 < BOTTLENECK_GAIN_LEAST)
		return NULL;
	f = &w->report->findings[w->report->n++];
	*f = (struct bottleneck_finding){ .leaf = names[leaf], .share = share, .low = NAN, .high = NAN,
				    .usual = usuals[leaf] };
	f->gain = 1 / (1 - share);
	snprintf(f->action, sizeof(f->action), "%s", actions[leaf]);
	if (phase < 0)
		return f;
	for (size_t i = 0; i < run->n; i++)
		w->values[i] = run->steps[i].phase[phase] - share * run->steps[i].seconds;
	spread_of(w->values, run->n, &s);
	if (!(s.effective >= CHANGE_EFFECTIVE_LEAST))
		return f;
	half = t_distribution_quantile(CHANGE_CONFIDENCE, fmax(1, (double)run->n / s.block)) * sqrt(s.variance) / w->seconds;
	f->low = fmax(0, share - half);
	f->high = fmin(1, share + half);
	return f;
}

#define SAY(f, ...) snprintf((f)->evidence, sizeof((f)->evidence), __VA_ARGS__)
#define ACT(f, ...) snprintf((f)->action, sizeof((f)->action), __VA_ARGS__)
#define TRY(f, ...) snprintf((f)->flags, sizeof((f)->flags), __VA_ARGS__)

static double share_of(const struct walk *w, int phase)
{
	return phase_seconds(w->run, phase) / w->seconds;
}

/* The action begins with flags. */
static void try_action(struct bottleneck_finding *f)
{
	TRY(f, "%.*s", (int)strcspn(f->action, ";:"), f->action);
}

/* Where the number of threads is found by itself no other one is better. */
static void advise_loading(const struct bottleneck_run *run, enum bottleneck_leaf leaf, struct bottleneck_finding *f)
{
	double computing = run->threads * run->local_world;

	if (run->workers == 0)
		ACT(f, "-j auto: with -j 0 nothing is loaded beside the steps");
	else if (leaf == BOTTLENECK_decode && run->workers > 0 && run->cores > computing + run->workers)
		ACT(f, "-j %.0f: cores are free", run->workers * 2);
	if (run->workers >= 0)
		try_action(f);
}

/* The share of their time for which loader threads are off the cores and do not wait for one either: they are taken to
 * wait for cores as long as compute threads do. */
static double blocked_share(const struct bottleneck_run *run)
{
	return 1 - run->load_cpu / run->load - (run->run_wait > 0 ? run->run_wait : 0);
}

static bool is_blocked(const struct bottleneck_run *run)
{
	return blocked_share(run) > run->load_cpu / run->load;
}

/* The loader waits for pages that were in memory: what reads a file for the first time waits for its disk alone. To
 * read one back takes a core about as long as it is waited for: a loader that does nothing else is off the cores
 * half of its time, and a quarter of it where that is half of its work. */
static bool is_evicted(const struct bottleneck_run *run)
{
	return blocked_share(run) > 0.25 && run->memory_wait > NO_WAIT && run->major_faults >= 1;
}

/* Cores that computing and loading take. */
static double cores_computing(const struct bottleneck_run *run, double seconds)
{
	const double loading = run->load_cpu > 0 ? fmin(run->load_cpu / seconds, run->workers) : 0;

	return run->local_world * (run->threads + loading);
}

/* Whether these leave no core: then what computes is slower for it, by 5 to 20 % (caches, the other thread of its
 * core), and how much faster it would be without nothing tells. */
static bool shares_cores(const struct bottleneck_run *run, double seconds)
{
	return cores_computing(run, seconds) > run->cores - CORES_SPARE;
}

/* Without threads of the loader, waiting for data is the work itself. */
static void walk_loader(struct walk *w)
{
	const struct bottleneck_run *run = w->run;
	double share = share_of(w, STEP_TIME_data_wait), off = blocked_share(run);
	enum bottleneck_leaf leaf = is_blocked(run) ? BOTTLENECK_disk : BOTTLENECK_decode;
	struct bottleneck_finding *f = is_evicted(run) ? NULL : find(w, leaf, share, STEP_TIME_data_wait);

	if (!f)
		return;
	if (!(run->load > 0)) {
		f->leaf = branches[leaf];
		SAY(f, "steps wait for the loader %.0f %% of the time; no data/load says what it waits for",
		    100 * share);
	} else if (leaf == BOTTLENECK_disk) {
		SAY(f,
		    "steps wait for the loader %.0f %% of the time, whose threads are off the cores %.0f %% of theirs",
		    100 * share, 100 * off);
	} else {
		SAY(f, "steps wait for the loader %.0f %% of the time, whose threads are on a core %.0f %% of theirs",
		    100 * share, 100 * run->load_cpu / run->load);
	}
	if (leaf == BOTTLENECK_decode && run->workers != 0 && shares_cores(run, w->seconds))
		f->gain = NAN;
	advise_loading(run, leaf, f);
}

static void walk_copies(struct walk *w)
{
	double share = share_of(w, STEP_TIME_h2d) + share_of(w, STEP_TIME_copy_exposed);
	struct bottleneck_finding *f = find(w, BOTTLENECK_copy, share, STEP_TIME_h2d);

	if (f) {
		SAY(f, "copying batches takes %.0f %% of the time", 100 * share);
		TRY(f, "--precision bf16");
	}
}

/* What a rank sends and receives of the gradients, GB/s, as a ring would: 2 (n-1)/n of them. */
static double link_rate(const struct bottleneck_run *run)
{
	double n = (double)run->n_ranks;

	return 2 * (n - 1) / n * run->parameters * 4 / run->comm_total * 1e-9;
}

/* The usual size, or as many MiB as make some buckets of all gradients. */
static double bucket_mb(const struct bottleneck_run *run)
{
	return fmin(BUCKET_USUAL_MB, run->parameters * 4 / 1048576 / BUCKETS);
}

/* Of the communication that lies open, what smaller buckets would hide behind the backward pass: all but the last of
 * them, as long as that pass lasts, less what it hides by now (one bucket is two: the first fills at 1 MB). A share of
 * the time. */
static double hidden_share(const struct walk *w)
{
	const struct bottleneck_run *run = w->run;
	const double exposed = share_of(w, STEP_TIME_comm_exposed), total = run->comm_total / w->seconds;
	const double most = fmin(share_of(w, STEP_TIME_backward), total * (BUCKETS - 1) / BUCKETS);

	return fmin(exposed, most - fmax(0, total - exposed));
}

static enum bottleneck_leaf communication_leaf(const struct walk *w)
{
	const struct bottleneck_run *run = w->run;
	const bool one = run->bucket_cap_mb > BUCKET_USUAL_MB &&
		run->parameters * 4 <= run->bucket_cap_mb * 1048576;

	if (one && hidden_share(w) > share_of(w, STEP_TIME_comm_exposed) / 2)
		return BOTTLENECK_bucket;
	return link_rate(run) < SLOW_LINK_GBS ? BOTTLENECK_link : BOTTLENECK_small_batch;
}

/* The action; what it brings is not known: a larger batch is another job. */
static void advise_batch(const struct bottleneck_run *run, struct bottleneck_finding *f)
{
	f->gain = NAN;
	if (!(run->batch_size > 0))
		return;
	ACT(f, "-b %.0f: what is sent stays the same; or --grad-accum-steps 4", run->batch_size * 4);
	TRY(f, "-b %.0f", run->batch_size * 4);
}

/* What a step takes whatever its batch: that share of communication, the update, calls of nodes. Whether it is much. */
static bool walk_fixed(struct walk *w, double exposed)
{
	const struct bottleneck_run *run = w->run;
	const double calls = run->nodes > 0 ? run->nodes * CALL_S / w->seconds : 0;
	const double update = share_of(w, STEP_TIME_optimizer), fixed = exposed + update + calls;
	struct bottleneck_finding *f = fixed > FIXED_LEAST ? find(w, BOTTLENECK_small_batch, fixed, -1) : NULL;

	if (!f)
		return false;
	SAY(f,
	    "%.0f %% of the time do not depend on the batch: calls of operators %.0f %%, the update %.0f %%, waiting "
	    "for communication %.0f %%", 100 * fixed, 100 * calls, 100 * update, 100 * exposed);
	advise_batch(run, f);
	return true;
}

static void walk_communication(struct walk *w)
{
	const struct bottleneck_run *run = w->run;
	const bool ranks = run->n_ranks > 1;
	double share = ranks ? share_of(w, STEP_TIME_comm_exposed) : 0, rate = link_rate(run);
	enum bottleneck_leaf leaf = communication_leaf(w);
	struct bottleneck_finding *f;

	if (walk_fixed(w, leaf == BOTTLENECK_small_batch && !isnan(rate) ? share : 0) && leaf == BOTTLENECK_small_batch)
		return;
	f = ranks ? find(w, leaf, leaf == BOTTLENECK_bucket ? hidden_share(w) : share, STEP_TIME_comm_exposed) : NULL;
	if (!f)
		return;
	if (isnan(rate)) {
		f->leaf = branches[leaf];
		SAY(f, "all ranks wait for communication %.0f %% of the time", 100 * share);
	} else if (leaf == BOTTLENECK_bucket) {
		SAY(f,
		    "one bucket holds nearly all %.0f MB of gradients: waiting for it takes %.0f %% of the time; the "
		    "backward pass, which could hide it, %.0f %%", run->parameters * 4e-6, 100 * share,
		    100 * share_of(w, STEP_TIME_backward));
	} else {
		SAY(f, "all ranks wait for communication %.0f %% of the time; gradients travel at %.2f GB/s",
		    100 * share, rate);
	}
	if (leaf == BOTTLENECK_bucket)
		ACT(f, "--bucket-cap-mb %.2g", bucket_mb(run));
	TRY(f, "--grad-accum-steps 4");
	if (leaf == BOTTLENECK_bucket)
		try_action(f);
	else if (leaf == BOTTLENECK_small_batch && !isnan(rate))
		advise_batch(run, f);
}

static double own_seconds(const struct bottleneck_rank *r)
{
	return r->seconds - r->phase[STEP_TIME_comm_exposed];
}

/* The phase in which the slow rank exceeds the mean of the others most. */
static int slow_phase(const struct bottleneck_run *run, size_t slow)
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

/* One rank whose own time is above the median of all; with two ranks above the other's. */
static void walk_ranks(struct walk *w)
{
	const struct bottleneck_run *run = w->run;
	double *own = w->values, usual, excess;
	struct bottleneck_finding *f;
	size_t slow = 0;

	if (run->n_ranks < 2 || run->n_ranks > run->n)
		return;
	for (size_t i = 0; i < run->n_ranks; i++) {
		own[i] = own_seconds(&run->ranks[i]);
		slow = own[i] > own_seconds(&run->ranks[slow]) ? i : slow;
	}
	median_sort(own, run->n_ranks);
	usual = own[(run->n_ranks - 1) / 2];
	excess = own_seconds(&run->ranks[slow]) - usual;
	f = excess > STRAGGLER_LEAST * usual ? find(w, BOTTLENECK_straggler, excess / w->seconds, -1) : NULL;
	if (f)
		SAY(f, "rank %d takes %.4g ms of its own a step, the others %.4g ms; most of it in %s",
		    run->ranks[slow].rank, 1e3 * own_seconds(&run->ranks[slow]), 1e3 * usual,
		    step_time_phase_name((enum step_time_phase)slow_phase(run, slow)));
}

/* Who has the cores: other programs, or the machine below. */
static void say_taken(const struct bottleneck_run *run, double share, struct bottleneck_finding *f)
{
	int n = SAY(f, "threads wait for a core %.0f %% of the time; other programs take %.0f %% of all cores' time",
		    100 * share, 100 * run->taken);

	if (run->steal > SEEN && n > 0 && (size_t)n < sizeof(f->evidence))
		snprintf(f->evidence + n, sizeof(f->evidence) - (size_t)n, ", the machine below %.0f %%",
			 100 * run->steal);
	if (run->threads > 1)
		ACT(f, "end the other programs on these cores, or --threads %.0f", run->threads - 1);
	else
		ACT(f, "end the other programs on these cores");
}

static void say_cpu(const struct bottleneck_run *run, enum bottleneck_leaf leaf, double share, struct bottleneck_finding *f)
{
	if (leaf == BOTTLENECK_cpu_quota)
		SAY(f, "the control group was throttled %.0f %% of the time", 100 * run->throttled);
	else if (leaf == BOTTLENECK_threads)
		SAY(f, "%.0f compute threads on %.0f cores", run->threads * run->local_world, run->cores);
	else if (leaf == BOTTLENECK_cpu_taken)
		say_taken(run, share, f);
	else if (run->ready > 0)
		SAY(f, "compute waits for a core %.0f %% of the time while %.1f batches lie ready", 100 * share,
		    run->ready);
	else
		SAY(f, "compute waits for a core %.0f %% of the time", 100 * share);
}

/* A thread that is throttled waits for a core by older kernels' count, and by newer ones' does not: what is waited for
 * besides is not the quota's. */
static bool is_throttled(const struct bottleneck_run *run)
{
	return run->throttled > NO_WAIT && !(run->run_wait > 2 * run->throttled);
}

/* Others have at least half as many cores as threads wait for: with less, own threads crowd each other. */
static bool is_taken(const struct bottleneck_run *run)
{
	const double others = fmax(run->taken, run->steal), waiting = run->run_wait * run->threads * run->local_world;

	return others > NO_WAIT && !(others * run->cores < waiting / 2);
}

/* Waiting for a core: by own threads, others', a quota, or the loader's. */
static void walk_cpu(struct walk *w)
{
	const struct bottleneck_run *run = w->run;
	double wanted = run->threads * run->local_world;
	enum bottleneck_leaf leaf = is_throttled(run)				 ? BOTTLENECK_cpu_quota :
			      wanted > run->cores			 ? BOTTLENECK_threads :
			      is_taken(run)				 ? BOTTLENECK_cpu_taken :
									   BOTTLENECK_crowding;
	struct bottleneck_finding *f = find(w, leaf, leaf == BOTTLENECK_cpu_quota ? run->throttled : run->run_wait, -1);

	if (!f)
		return;
	if (leaf == BOTTLENECK_crowding && (isnan(run->taken) || !(run->ready > 0))) /* nothing tells who has the cores */
		f->leaf = branches[leaf];
	say_cpu(run, leaf, f->share, f);
	/* threads wait for each other: what one of them waits for a core tells too little, or too much */
	if (leaf == BOTTLENECK_threads || run->threads > 1)
		f->gain = NAN;
	if (leaf == BOTTLENECK_threads && run->local_world > 0)
		ACT(f, "--threads %.0f", fmax(1, floor(run->cores / run->local_world)));
	if (leaf == BOTTLENECK_threads)
		try_action(f);
	else if (leaf == BOTTLENECK_cpu_taken && run->threads > 1)
		TRY(f, "--threads %.0f", run->threads - 1);
	else if (leaf == BOTTLENECK_crowding && run->workers > 0)
		TRY(f, "-j auto");
}

static void walk_memory(struct walk *w)
{
	const struct bottleneck_run *run = w->run;
	const double waited = is_evicted(run) ? share_of(w, STEP_TIME_data_wait) : 0;
	const bool loads = waited > run->memory_wait;
	struct bottleneck_finding *f =
		find(w, BOTTLENECK_memory, loads ? waited : run->memory_wait, loads ? STEP_TIME_data_wait : -1);

	if (!f)
		return;
	if (loads)
		SAY(f,
		    "steps wait for the loader %.0f %% of the time, which has %.1f pages a step read back; threads "
		    "wait for memory %.0f %% of it", 100 * waited, run->major_faults, 100 * run->memory_wait);
	else
		SAY(f, "threads wait for memory %.0f %% of the time; %.1f pages are read back a step",
		    100 * run->memory_wait, run->major_faults);
}

/* Writing takes time from the steps by what all threads want beyond the cores that there are. */
static double saving_share(const struct walk *w)
{
	const struct bottleneck_run *run = w->run;
	const double saving = run->saving_cpu / w->seconds;
	const double beyond = cores_computing(run, w->seconds) + saving - run->cores;

	return beyond > 0 ? fmin(saving, beyond) : 0;
}

static void walk_checkpoints(struct walk *w)
{
	const struct bottleneck_run *run = w->run;
	const double still = run->checkpoint / w->seconds, saving = saving_share(w);
	struct bottleneck_finding *f = find(w, BOTTLENECK_checkpoint, still + saving, -1);

	if (!f)
		return;
	if (saving > 0)
		SAY(f,
		    "training stands still for checkpoints %.0f %% of the time; writing them takes %.0f %% of a core "
		    "that the run needs", 100 * still, 100 * saving);
	else
		SAY(f, "training stands still for checkpoints %.0f %% of the time", 100 * still);
	if (run->save_steps > 0) {
		ACT(f, "--save-steps %.0f", 10 * run->save_steps);
		try_action(f);
	}
}

static void walk_rest(struct walk *w)
{
	const struct bottleneck_run *run = w->run;
	struct bottleneck_finding *f = run->clock > CLOCK_LEAST ? find(w, BOTTLENECK_clock, 1 - 1 / run->clock, -1) : NULL;

	if (f)
		SAY(f, "a fixed loop takes %.2f times as long as at best", run->clock);
	walk_memory(w);
	f = find(w, BOTTLENECK_evaluation, share_of(w, STEP_TIME_between), STEP_TIME_between);
	if (f && isnan(run->evaluation))
		f->leaf = branches[BOTTLENECK_evaluation];
	if (f)
		SAY(f, "%s %.0f %% of the time", isnan(run->evaluation) ? "steps begin late" : "evaluation takes",
		    100 * f->share);
	if (f && isnan(run->evaluation)) {
		ACT(f, "look at what the program does between its steps");
	} else if (f && run->eval_steps > 0) {
		ACT(f, "--eval-steps %.0f", 10 * run->eval_steps);
		try_action(f);
	}
	walk_checkpoints(w);
}

/* Leaves whose time is a pause in computing. */
static bool is_pause(const struct bottleneck_finding *f)
{
	static const enum bottleneck_leaf pauses[] = { BOTTLENECK_disk, BOTTLENECK_decode, BOTTLENECK_copy, BOTTLENECK_evaluation, BOTTLENECK_memory };

	for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++)
		if (f->leaf == names[pauses[i]])
			return true;
	return false;
}

/* What pauses cost besides their own time, a share: what lay in caches has gone meanwhile, and steps without pauses
 * compute that much faster. Not what is waited for a core while computing: as much of the waiting as of the time. Not
 * more than half of the pauses. */
static double cooled_share(const struct walk *w, double pauses)
{
	const struct bottleneck_run *run = w->run;
	const double waiting = run->run_wait > 0 ? run->run_wait * (1 - pauses) : 0;
	const double slower = 1 - pauses - waiting - run->bare / w->seconds;

	return run->bare > 0 ? fmin(fmax(0, slower), pauses / 2) : 0;
}

static void say_cooled(struct bottleneck_finding *f, double seconds)
{
	const size_t n = strlen(f->evidence);

	snprintf(f->evidence + n, sizeof(f->evidence) - n, "; %.2g ms more, as caches go cold", 1e3 * seconds);
}

/* To each pause its part of that. */
static void add_cooling(struct walk *w)
{
	const double pauses = share_of(w, STEP_TIME_data_wait) + share_of(w, STEP_TIME_h2d) + share_of(w, STEP_TIME_copy_exposed) +
		share_of(w, STEP_TIME_between);
	const double cooled = cooled_share(w, pauses);

	for (size_t i = 0; i < w->report->n; i++) {
		struct bottleneck_finding *f = &w->report->findings[i];
		const double own = cooled * fmin(1, f->share / pauses);

		if (own <= SEEN || !is_pause(f) || isnan(f->gain))
			continue;
		f->gain = 1 / (1 - fmin(SHARE_MOST, f->share + own));
		say_cooled(f, own * w->seconds);
	}
}

static int by_share(const void *a, const void *b)
{
	double x = ((const struct bottleneck_finding *)a)->share, y = ((const struct bottleneck_finding *)b)->share;

	return (x < y) - (x > y);
}

static void say_finding(struct bottleneck_finding *f)
{
	char between[40] = "", gain[80] = "how much faster without it nothing tells";

	if (!isnan(f->low))
		snprintf(between, sizeof(between), " (%.0f-%.0f)", 100 * f->low, 100 * f->high);
	if (!isnan(f->gain))
		snprintf(gain, sizeof(gain), "without it up to %.2fx as fast", f->gain);
	else if (f->flags[0])
		snprintf(gain, sizeof(gain), "what the action brings, dptrain doctor --try measures");
	snprintf(f->sentence, sizeof(f->sentence), "%s: %.0f %% of the time%s; %s", f->leaf, 100 * f->share, between,
		 gain);
}

static void say_all(struct bottleneck_report *r)
{
	for (size_t i = 0; i < r->n; i++)
		say_finding(&r->findings[i]);
	if (r->n)
		snprintf(r->sentence, sizeof(r->sentence), "%s", r->findings[0].sentence);
	else
		snprintf(r->sentence, sizeof(r->sentence), "healthy: nothing whose removal would bring %.0f %%",
			 100 * BOTTLENECK_GAIN_LEAST);
}

static void say_bound(struct walk *w)
{
	const double forward = share_of(w, STEP_TIME_forward), backward = share_of(w, STEP_TIME_backward);
	const double update = share_of(w, STEP_TIME_optimizer);

	snprintf(w->report->bound, sizeof(w->report->bound),
		 "compute: forward %.0f %%, backward %.0f %%, update %.0f %% of the time", 100 * forward,
		 100 * backward, 100 * update);
}

int bottleneck_judge(const struct bottleneck_run *run, struct bottleneck_report *ret, struct err *err)
{
	struct walk w = { .run = run, .report = ret };

	if (!run->n)
		return err_set(err, ERR_USAGE, "the run has no steps by which it could be judged");
	w.values = calloc(run->n, sizeof(*w.values));
	if (!w.values)
		return err_set(err, ERR_NOMEM, "out of memory: %zu steps", run->n);
	*ret = (struct bottleneck_report){ .n = 0 };
	for (size_t i = 0; i < run->n; i++)
		w.seconds += run->steps[i].seconds / (double)run->n;
	walk_loader(&w);
	walk_copies(&w);
	walk_communication(&w);
	walk_ranks(&w);
	walk_cpu(&w);
	walk_rest(&w);
	add_cooling(&w);
	qsort(ret->findings, ret->n, sizeof(*ret->findings), by_share);
	ret->verdict = ret->n ? ret->findings[0].leaf : "healthy";
	say_all(ret);
	say_bound(&w);
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
