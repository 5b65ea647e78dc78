/* SPDX-License-Identifier: Apache-2.0 */
/* test_hooks.c: faults are planted as edits of a graph; all else is read from the environment where it takes effect. */
#include "trainer/program/test_hooks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- faults of programs ---- */

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
	{ "reduce", is_reduce, false },
	{ "gather", is_gather, false },
	{ "norm", is_norm, false },
	{ "message", is_message, false },
	{ "micro", is_sum, true },
	{ "offload", is_copy_back, false },
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

/* Makes the next compute node wait for each collective of another stream. */
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

int test_hooks_plant(struct graph *g)
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
	return g->err.code;
}

void test_hooks_plant_turns(struct schedule *s)
{
	const char *word = getenv("DPTRAIN_TEST_FAULT");

	for (int i = 0; word && !strcmp(word, "slot") && i < s->n; i++)
		if (s->items[i].node->part == PART_BACKWARD && s->items[i].stream == STREAM_COMPUTE) {
			s->items[i].slot = (s->items[i].slot + 1) % s->slots;
			break;
		}
}

/* ---- hooks of a run ---- */

static void read_death(struct test_hooks *h, const char *die)
{
	const char *step = strchr(die, ':');
	char *end;

	if (!step)
		return;
	h->die_rank = strncmp(die, "launcher", 8) ? (int)strtol(die, NULL, 10) : -1;
	h->die_step = strtoll(step + 1, &end, 10);
	h->die_signal = *end == ':' ? (int)strtol(end + 1, NULL, 10) : SIGKILL;
}

struct test_hooks test_hooks_read(int rank)
{
	const char *slow = getenv("DPTRAIN_TEST_SLOW_RANK"), *loader = getenv("DPTRAIN_TEST_SLOW_LOADER");
	const char *die = getenv("DPTRAIN_TEST_DIE"), *copy = getenv("DPTRAIN_TEST_SLOW_COPY");
	struct test_hooks h = { .die_step = 0 };
	char *end;

	if (slow && strtol(slow, &end, 10) == rank && *end == ':')
		h.slow_step_s = strtod(end + 1, NULL) / 1000;
	if (copy)
		h.slow_copy_s = strtod(copy, NULL) / 1000;
	if (loader)
		h.slow_batch_s = strtod(loader, NULL) / 1000;
	if (die)
		read_death(&h, die);
	return h;
}

double test_hooks_pace(void)
{
	const char *pace = getenv("DPTRAIN_TEST_PACE");

	return pace ? strtod(pace, NULL) : 0;
}

double test_hooks_slow(double seconds)
{
	double start = clock_mono_s();

	if (seconds <= 0)
		return 0;
	clock_sleep_s(seconds);
	return clock_mono_s() - start;
}

void test_hooks_spin(const struct clock_hook *c, double start_s)
{
	double now = clock_mono_s(), until = start_s + c->factor * (now - start_s);

	while (now >= c->from_s && now < until)
		now = clock_mono_s();
}

bool test_hooks_spoils(const struct node *n, int rank)
{
	const char *hook = getenv("DPTRAIN_TEST_NAN");
	char *end;

	return hook && strtol(hook, &end, 10) == rank && *end == ':' && !strcmp(end + 1, n->name);
}

void test_hooks_spoil(const struct node *n, const struct kernel_args *args)
{
	const int64_t last = shape_count(&n->out[0]->shape) - 1;

	if (n->out[0]->dtype == DTYPE_F32)
		((float *)args->out[0])[last] = NAN;
	else if (n->out[0]->dtype == DTYPE_F64)
		((double *)args->out[0])[last] = NAN;
	else if (n->out[0]->dtype == DTYPE_F16 || n->out[0]->dtype == DTYPE_BF16)
		((uint16_t *)args->out[0])[last] = n->out[0]->dtype == DTYPE_F16 ? 0x7e00 : 0x7fc0;
}

void test_hooks_after_step(const struct test_hooks *h, const struct rank_context *seat, int64_t step)
{
	if (h->die_step != step)
		return;
	if (h->die_rank == seat->rank)
		raise(h->die_signal);
	if (h->die_rank < 0 && seat->rank == 0)
		kill(getppid(), h->die_signal);
}

int64_t test_hooks_memory(void)
{
	const char *hook = getenv("DPTRAIN_TEST_MEMORY");

	return hook ? strtoll(hook, NULL, 10) : -1;
}

size_t test_hooks_subjects(size_t n)
{
	const char *hook = getenv("DPTRAIN_TEST_CALIBRATE");

	return hook ? (size_t)strtoul(hook, NULL, 10) : n;
}
