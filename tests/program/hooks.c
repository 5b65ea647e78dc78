/* SPDX-License-Identifier: Apache-2.0 */
/* hooks.c: tests/dptrain is dptrain with functions wrapped by the linker, as environment variables say: a program is
 * broken on purpose, a run is slow, is killed at a step, or believes that its machine has less memory. Without the
 * variables it does what dptrain does. dptrain itself knows nothing of this. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/system/system_sample.h"
#include "trainer/data/loader/loader.h"
#include "trainer/launch/machine.h"
#include "trainer/run/exec/exec_inside.h"
#include "trainer/run/nonfinite.h"
#include "trainer/tools/child.h"

/* Declares the function that the linker calls in place of a function, and the function itself. */
#define WRAPPED(type, name, ...) \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

static double hook_seconds(const char *variable)
{
	const char *ms = getenv(variable);

	return ms ? strtod(ms, NULL) / 1000 : 0;
}

/* ---- DPTRAIN_TEST_FAULT: a pass or a schedule that is wrong ---- */

static bool is_reduce(const struct node *n)
{
	return n->op == &op_reduce_scatter || (n->op == &op_allreduce && n->bucket >= 0);
}

static bool is_gather(const struct node *n)
{
	return n->op == &op_all_gather;
}

static bool is_norm(const struct node *n)
{
	return n->op == &op_allreduce && n->stream == STREAM_COMPUTE && n->group == GROUP_SHARD;
}

static bool is_message(const struct node *n)
{
	return n->op == &op_send;
}

static bool is_sum(const struct node *n)
{
	return n->op == &op_accumulate;
}

static bool is_copy_back(const struct node *n)
{
	return n->op == &op_copy && n->stream == STREAM_COPY_IN;
}

static const struct {
	const char *word;
	bool (*is)(const struct node *n);
	bool twice; /* the node runs twice; else it is removed */
} faults[] = {
	{ "reduce", is_reduce, false },	      /* some gradients are not summed over the ranks */
	{ "gather", is_gather, false },	      /* some parameters are stale */
	{ "norm", is_norm, false },	      /* sums of squares are of one rank only */
	{ "message", is_message, false },     /* a stage is not sent what it waits for */
	{ "micro", is_sum, true },	      /* some gradients of a later micro-batch count twice */
	{ "offload", is_copy_back, false },   /* an offloaded tensor is not copied back */
};

static void break_node(struct graph *g, struct node *n, bool twice)
{
	struct node *again;

	if (!twice) {
		graph_remove(g, n->id);
		return;
	}
	again = graph_node(g, &(struct node_spec){ .op = n->op, .in = n->in, .out = n->out, .n_in = n->n_in,
						   .n_out = n->n_out });
	if (!again)
		return;
	again->phase = n->phase;
	graph_move(g, again->id, n->id + 1);
}

/* Makes the next compute node wait for each collective of another stream: none runs while something is computed. */
static void serialise_collectives(struct graph *g)
{
	for (int i = 0; i < g->n_nodes; i++) {
		struct node *n = g->nodes[i];
		int next = i + 1;

		if (!n->op->collective || n->stream == STREAM_COMPUTE)
			continue;
		while (next < g->n_nodes && g->nodes[next]->stream != STREAM_COMPUTE)
			next++;
		if (next < g->n_nodes)
			node_after(g, g->nodes[next], n);
	}
}

/* The first pass after those that add the nodes to break. */
WRAPPED(int, pass_layout, struct graph *g, const struct layout_backend *b, struct err *err)
{
	const char *word = getenv("DPTRAIN_TEST_FAULT");

	if (word && !strcmp(word, "serial"))
		serialise_collectives(g);
	for (size_t k = 0; word && k < sizeof(faults) / sizeof(faults[0]); k++)
		for (int i = g->n_nodes - 1; !strcmp(word, faults[k].word) && i >= 0; i--)
			if (faults[k].is(g->nodes[i])) {
				break_node(g, g->nodes[i], faults[k].twice);
				break;
			}
	return __real_pass_layout(g, b, err);
}

/* slot: a backward node works on another micro-batch than scheduled. */
WRAPPED(int, schedule_make_turns, struct schedule *s, struct graph *g, const struct schedule_order *o, struct err *err)
{
	const char *word = getenv("DPTRAIN_TEST_FAULT");
	int rc = __real_schedule_make_turns(s, g, o, err);

	for (int i = 0; !rc && word && !strcmp(word, "slot") && i < s->n; i++)
		if (s->items[i].node->part == PART_BACKWARD && s->items[i].stream == STREAM_COMPUTE) {
			s->items[i].slot = (s->items[i].slot + 1) % s->slots;
			break;
		}
	return rc;
}

/* ---- nodes of host backends ---- */

/* DPTRAIN_TEST_CLOCK=factor:seconds: that many seconds after the start, the cores are slower by the factor. */
static double slower_by(void)
{
	static double from_s;
	const char *hook = getenv("DPTRAIN_TEST_CLOCK");
	char *end;
	double factor = hook ? strtod(hook, &end) : 1;

	if (hook && !from_s)
		from_s = clock_mono_s() + (*end == ':' ? strtod(end + 1, NULL) : 0);
	return hook && clock_mono_s() >= from_s ? factor : 1;
}

struct hooked_node {
	struct kernel kernel;
	const struct kernel *own;
	void *state;
	const struct node *node;
	double least_s; /* DPTRAIN_TEST_PACE */
	bool spoilt;	/* DPTRAIN_TEST_NAN */
	bool spins;	/* DPTRAIN_TEST_CLOCK */
};

static void spoil_result(const struct node *n, const struct kernel_args *args)
{
	const int64_t last = shape_count(&n->out[0]->shape) - 1;

	if (n->out[0]->dtype == DTYPE_F32)
		((float *)args->out[0])[last] = NAN;
	else if (n->out[0]->dtype == DTYPE_F64)
		((double *)args->out[0])[last] = NAN;
	else if (n->out[0]->dtype == DTYPE_F16 || n->out[0]->dtype == DTYPE_BF16)
		((uint16_t *)args->out[0])[last] = n->out[0]->dtype == DTYPE_F16 ? 0x7e00 : 0x7fc0;
}

static int run_hooked_node(void *state, const struct kernel_args *args, struct err *err)
{
	const struct hooked_node *h = state;
	double start_s = clock_mono_s(), until_s;
	int rc = kernel_run(h->own, h->state, args, err);
	double now_s = clock_mono_s();

	if (start_s + h->least_s > now_s)
		clock_sleep_s(start_s + h->least_s - now_s);
	until_s = h->spins ? start_s + slower_by() * (now_s - start_s) : 0;
	while (clock_mono_s() < until_s)
		;
	if (h->spoilt)
		spoil_result(h->node, args);
	return rc;
}

/* DPTRAIN_TEST_NAN=rank:node: a kernel of that rank leaves a NaN in its first result. */
static bool is_spoilt(const struct node *n, int rank)
{
	const char *hook = getenv("DPTRAIN_TEST_NAN");
	char *end;

	return hook && strtol(hook, &end, 10) == rank && *end == ':' && !strcmp(end + 1, n->name);
}

/* DPTRAIN_TEST_PACE: most floating-point operations per second of a node, which sleeps for the rest of the time. Step
 * times then follow the schedule, however busy the machine is. */
static double least_seconds(const struct node *n)
{
	const char *pace = getenv("DPTRAIN_TEST_PACE");

	return pace && n->op->flops ? n->op->flops(n) / strtod(pace, NULL) : 0;
}

static void hook_item(struct host_item *it, struct graph *g, int rank)
{
	const struct hooked_node h = { .kernel = *it->kernel,
				       .own = it->kernel,
				       .state = it->state,
				       .node = it->node,
				       .least_s = least_seconds(it->node),
				       .spoilt = is_spoilt(it->node, rank),
				       .spins = getenv("DPTRAIN_TEST_CLOCK") && !it->collective };
	struct hooked_node *kept;

	if (h.least_s <= 0 && !h.spoilt && !h.spins)
		return;
	kept = arena_array(g->arena, 1, sizeof(*kept));
	*kept = h;
	kept->kernel.communicate = run_hooked_node;
	it->kernel = &kept->kernel;
	it->state = kept;
}

WRAPPED(void, host_program_fill, struct host_program *ep, const struct program *p, const struct host_places *at)
{
	__real_host_program_fill(ep, p, at);
	for (int s = 0; s < STREAM_COUNT; s++)
		for (int i = 0; i < ep->n[s]; i++)
			hook_item(&ep->items[s][i], p->graph, at->prepared->opts.sharing.rank);
}

/* The loop that measures the clock. */
WRAPPED(void, sample_loop, struct system_sample *s)
{
	const double before_s = s->loop_s;

	s->loop_s = INFINITY;
	__real_sample_loop(s);
	s->loop_s = fmin(before_s, slower_by() * s->loop_s);
}

/* ---- steps ---- */

static double slept_forward_s, slept_copy_s; /* not yet added to the times of a run */
static int own_rank;

static double sleep_for(double seconds)
{
	double start_s = clock_mono_s();

	if (seconds <= 0)
		return 0;
	clock_sleep_s(seconds);
	return clock_mono_s() - start_s;
}

WRAPPED(int, exec_new, struct exec **ret, const struct prepared *p, struct err *err)
{
	own_rank = p->opts.sharing.rank;
	return __real_exec_new(ret, p, err);
}

/* DPTRAIN_TEST_SLOW_RANK=rank:ms is added to each step, DPTRAIN_TEST_SLOW_COPY=ms to each copy of a batch to the
 * device. */
WRAPPED(int, exec_begin, struct exec *e, const struct program *p, const struct exec_call *call, struct err *err)
{
	static bool step_goes_on;
	const char *slow = getenv("DPTRAIN_TEST_SLOW_RANK");
	char *end;

	if (p->kind == PROGRAM_EVAL)
		return __real_exec_begin(e, p, call, err);
	if (slow && !step_goes_on && strtol(slow, &end, 10) == own_rank && *end == ':')
		slept_forward_s += sleep_for(strtod(end + 1, NULL) / 1000);
	slept_copy_s += sleep_for(hook_seconds("DPTRAIN_TEST_SLOW_COPY"));
	step_goes_on = p->kind == PROGRAM_MICRO;
	return __real_exec_begin(e, p, call, err);
}

WRAPPED(int, exec_end, struct exec *e, struct exec_done *ret, struct err *err)
{
	int rc = __real_exec_end(e, ret, err);

	ret->times.by[EXEC_FORWARD] += slept_forward_s;
	ret->times.by[EXEC_H2D] += slept_copy_s;
	slept_forward_s = slept_copy_s = 0;
	return rc;
}

/* DPTRAIN_TEST_DIE=rank:step[:signal] or launcher:step[:signal]: ends the process right after that step, before its
 * checkpoint. */
WRAPPED(int, nonfinite_search_check, struct engine *e, const struct step_result *r, struct err *err)
{
	const char *die = getenv("DPTRAIN_TEST_DIE"), *step = die ? strchr(die, ':') : NULL;
	const bool launcher = die && !strncmp(die, "launcher", 8);
	const int rank = e->rank.context->rank;
	char *end;

	if (step && strtoll(step + 1, &end, 10) == r->step && rank == (launcher ? 0 : (int)strtol(die, NULL, 10)))
		kill(launcher ? getppid() : getpid(), *end == ':' ? (int)strtol(end + 1, NULL, 10) : SIGKILL);
	return __real_nonfinite_search_check(e, r, err);
}

/* ---- a slow disk ---- */

static double slow_sample_s;

/* DPTRAIN_TEST_SLOW_LOADER=ms: the disk delivers a rank's samples of a training batch in that time. */
WRAPPED(int, loader_open, struct loader **ret, const struct loader_opts *o, struct err *err)
{
	const struct range batch = sampler_micro(&o->sampler, 0, o->rank, 0);

	if (o->split == SPLIT_TRAIN && batch.end > batch.begin)
		slow_sample_s = hook_seconds("DPTRAIN_TEST_SLOW_LOADER") / (double)(batch.end - batch.begin);
	return __real_loader_open(ret, o, err);
}

WRAPPED(int, dataset_read, const struct dataset *d, const struct dataset_read *r, struct err *err)
{
	static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;

	if (slow_sample_s > 0 && r->split == SPLIT_TRAIN) {
		pthread_mutex_lock(&disk);
		clock_sleep_s(slow_sample_s);
		pthread_mutex_unlock(&disk);
	}
	return __real_dataset_read(d, r, err);
}

/* ---- the machine ---- */

/* DPTRAIN_TEST_MEMORY=bytes that the machine has available. */
WRAPPED(int64_t, machine_available_bytes, void)
{
	const char *bytes = getenv("DPTRAIN_TEST_MEMORY");

	return bytes ? strtoll(bytes, NULL, 10) : __real_machine_available_bytes();
}

/* Returns true for the model that is measured first. */
static bool is_first_model(char *const *argv)
{
	static char first[1000];
	char model[sizeof(first)] = " ";

	for (int i = 2; argv[i] && strcmp(argv[i], "--precision"); i++)
		snprintf(model + strlen(model), sizeof(model) - strlen(model), "%s ", argv[i]);
	if (!first[0])
		memcpy(first, model, sizeof(first));
	return !strcmp(first, model);
}

/* DPTRAIN_TEST_CALIBRATE: the first model's last measurement stands for the other models'. */
WRAPPED(int, child_run, char *const *argv, struct buf *out, int *ret_code, struct err *err)
{
	static struct buf last;
	int rc;

	if (!getenv("DPTRAIN_TEST_CALIBRATE"))
		return __real_child_run(argv, out, ret_code, err);
	if (!is_first_model(argv)) {
		buf_add(out, last.data, last.len);
		return 0;
	}
	rc = __real_child_run(argv, out, ret_code, err);
	buf_done(&last);
	buf_init(&last, out->len);
	buf_add(&last, out->data, out->len);
	return rc;
}

/* The modules are not next to this program. */
__attribute__((constructor)) static void find_modules(void)
{
	static const char below[] = "/tests/dptrain";
	char path[4096] = "";
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof("/.libs"));

	if (n < (ssize_t)sizeof(below))
		return;
	memcpy(path + n + 1 - sizeof(below), "/.libs", sizeof("/.libs"));
	setenv("DPTRAIN_BACKEND_PATH", path, 0);
}
