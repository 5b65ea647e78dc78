/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_test.c: pipelines of equal stages with a simulated clock: the schedules of all ranks run as streams,
 * ordered by waits and messages; a kernel takes a time proportional to its floating-point operations and nothing else
 * takes any time. The idle share equals that in the literature (Huang et al. 2019, Narayanan et al. 2019), and so does
 * the number of micro-batches that a stage holds, in the schedule and in the memory of its plan. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/ops/ops.h"
#include "trainer/ops/collectives/collectives.h"
#include "trainer/program/planning.h"

#define ARGS_MAX 48
#define STAGES_MOST 4
#define MICROS_MOST 16
#define LAYERS 2 /* per stage */
#define WIDTH 64
#define LENGTH 8
#define MESSAGE_BYTES (WIDTH * LENGTH * 8.0) /* sent per micro-batch, in one direction */

struct kind {
	int stages, micros;
	const char *schedule;
};

static struct run_config *parse(const struct kind *s)
{
	static char text[1000];
	static const char *const partition[STAGES_MOST + 1] = { "", "2", "2,2", "2,2,2", "2,2,2,2" };
	char *argv[ARGS_MAX], *save = NULL;
	struct run_config *cfg;
	struct err err = ERR_INIT;
	int argc = 0;

	snprintf(text, sizeof(text), "dptrain plan --synthetic --max-steps 2 --threads 1 --backend ref --opt sgd "
		 "--model gpt2-124m --n-layer %d --n-embd %d --n-head 1 --vocab-size 4 --block-size %d --seq-len %d "
		 "--no-tie-weights --nproc-per-node %d --strategy pdp --global-batch-size %d --microbatches %d "
		 "--pp-schedule %s --pp-partition %s", LAYERS * s->stages, WIDTH, LENGTH, LENGTH, s->stages, s->micros,
		 s->micros, s->schedule, partition[s->stages]);
	for (char *word = strtok_r(text, " ", &save); word && argc < ARGS_MAX; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	if (config_parse(&cfg, argc, argv, &err) ||
	    config_resolve(cfg, &(struct config_world){ .world = s->stages }, &err))
		fail_msg("%s", err.text);
	cfg->command = COMMAND_BENCH; /* without saving and evaluation */
	return cfg;
}

struct stage {
	struct rank_context context;
	struct rank rank;
	struct prepared prepared;
	const struct schedule *schedule;
	double *end; /* of each item; < 0: not known yet */
	int sent[2][STAGES_MOST], received[2][STAGES_MOST]; /* messages so far, by direction and peer */
};

struct line {
	struct run_config *cfg;
	struct workload workload;
	struct stage stage[STAGES_MOST];
	int n;
	double message[2][STAGES_MOST][STAGES_MOST][MICROS_MOST * 8]; /* the time of arrival: by direction, from, to */
};

static void open_stage(struct line *p, int number)
{
	struct stage *s = &p->stage[number];
	struct train_schedule c;
	struct err err = ERR_INIT;

	s->context = (struct rank_context){
		.world = p->n, .local_world = 1, .rank = number, .nodes = 1, .shm_fd = -1, .signal_fd = -1
	};
	s->rank = rank_of(p->cfg, &s->context);
	s->rank.by_rule = true;
	if (rank_open_backend(&s->rank, &err) || planning_make(&c, &s->prepared, &s->rank, &p->workload, &err))
		fail_msg("%s", err.text);
	s->schedule = &s->prepared.program[0]->schedule;
	s->end = calloc((size_t)s->schedule->n + 1, sizeof(*s->end));
	for (int i = 0; i < s->schedule->n; i++)
		s->end[i] = -1;
}

static struct line *line_open(const struct kind *kind)
{
	struct line *p = calloc(1, sizeof(*p));
	struct err err = ERR_INIT;

	p->n = kind->stages;
	p->cfg = parse(kind);
	if (workload_open(&p->workload, p->cfg, NULL, NULL, &err))
		fail_msg("%s", err.text);
	for (int i = 0; i < p->n; i++)
		open_stage(p, i);
	return p;
}

static void line_close(struct line *p)
{
	for (int i = 0; i < p->n; i++) {
		prepare_done(&p->stage[i].prepared);
		rank_close(&p->stage[i].rank);
		free(p->stage[i].end);
	}
	workload_close(&p->workload);
	config_free(p->cfg);
	free(p);
}

/* ---- the clock ---- */

static double seconds_of(const struct node *n)
{
	return n->op->flops ? n->op->flops(n) : 0;
}

/* When item i can begin as far as its own rank is concerned; < 0: an item that it waits for has no end yet. */
static double begin_of(const struct stage *s, int i)
{
	const struct schedule_item *it = &s->schedule->items[i];
	double begin = 0;

	for (int k = i - 1; k >= 0; k--)
		if (s->schedule->items[k].stream == it->stream) {
			begin = s->end[k];
			break;
		}
	for (int k = 0; k < STREAM_COUNT && begin >= 0; k++)
		if (it->wait[k])
			begin = s->end[it->wait[k] - 1] < 0 ? -1 : fmax(begin, s->end[it->wait[k] - 1]);
	return begin;
}

/* Messages of a pair and direction are distinguished by their order. */
static double exchange(struct line *p, int self, const struct node *n, double begin)
{
	const int peer = ((const struct collective_attr *)n->attr)->rank, sends = n->op == &op_send;
	const int from = sends ? self : peer, to = sends ? peer : self, direction = from < to;
	int *count = sends ? &p->stage[self].sent[direction][peer] : &p->stage[self].received[direction][peer];
	double *there = &p->message[direction][from][to][*count];

	assert_true(*count < MICROS_MOST * 8);
	if (!sends && *there <= 0)
		return -1;
	(*count)++;
	if (sends)
		*there = begin;
	return sends ? begin : fmax(begin, *there);
}

/* Advances the stage; returns whether the end of some item became known. */
static bool advance(struct line *p, int self)
{
	struct stage *s = &p->stage[self];
	bool moved = false;

	for (int i = 0; i < s->schedule->n; i++) {
		const struct node *n = s->schedule->items[i].node;
		double begin = s->end[i] < 0 ? begin_of(s, i) : -1;

		if (begin < 0)
			continue;
		if (n->op == &op_send || n->op == &op_recv)
			begin = exchange(p, self, n, begin);
		if (begin >= 0) {
			s->end[i] = begin + (n->stream == STREAM_COMPUTE ? seconds_of(n) : 0);
			moved = true;
		}
	}
	return moved;
}

/* Runs all; idle: the share of the step that each stage's compute stream is idle. */
static void run(struct line *p, double *idle)
{
	double length = 0;
	bool moved = true;

	while (moved) {
		moved = false;
		for (int i = 0; i < p->n; i++)
			moved |= advance(p, i);
	}
	for (int i = 0; i < p->n; i++) {
		const struct schedule *s = p->stage[i].schedule;

		idle[i] = 0;
		for (int k = 0; k < s->n; k++) {
			if (p->stage[i].end[k] < 0)
				fail_msg("stage %d: %s never runs", i, s->items[k].node->name);
			length = fmax(length, p->stage[i].end[k]);
			idle[i] += s->items[k].stream == STREAM_COMPUTE ? seconds_of(s->items[k].node) : 0;
		}
	}
	for (int i = 0; i < p->n; i++)
		idle[i] = 1 - idle[i] / length;
}

static void bubbles(void **state)
{
	static const int stages[] = { 2, 4 }, micros[] = { 2, 3, 4, 8, 16 };
	static const char *const kinds[] = { "1f1b", "gpipe" };

	(void)state;
	for (int i = 0; i < 2 * 5 * 2; i++) {
		const struct kind kind = { stages[i / 10], micros[i / 2 % 5], kinds[i % 2] };
		const double want = (kind.stages - 1.0) / (kind.micros + kind.stages - 1);
		struct line *p = line_open(&kind);
		double idle[STAGES_MOST];

		run(p, idle);
		for (int s = 0; s < p->n; s++)
			if (fabs(idle[s] - want) > 0.03)
				fail_msg("%s, %d micro-batches, stage %d of %d is idle for %.1f %%, not %.1f %%",
					 kind.schedule, kind.micros, s, kind.stages, 100 * idle[s], 100 * want);
		line_close(p);
	}
}

/* ---- memory ---- */

static double activations(const struct kind *kind, int stage)
{
	struct line *p = line_open(kind);
	const double bytes = (double)p->stage[stage].prepared.plan.category_bytes[PLAN_ACTIVATIONS];

	line_close(p);
	return bytes;
}

/* The inputs of the next micro-batch may arrive from the neighbours while this one is computed. */
static void check_held(int stage, int micros, double once, double one)
{
	const struct kind kind = { STAGES_MOST, micros, "1f1b" };
	const int most = micros < STAGES_MOST - stage ? micros : STAGES_MOST - stage;
	const double bytes = activations(&kind, stage), want = once + most * one;
	struct line *p = line_open(&kind);

	assert_int_equal(schedule_held(p->stage[stage].schedule), most);
	line_close(p);
	if (bytes < 0.99 * want || bytes > 1.01 * want + 2 * MESSAGE_BYTES)
		fail_msg("stage %d of 1F1B, %d micro-batches: %.0f bytes, want %.0f for %d held", stage, micros,
			 bytes, want, most);
}

/* The memory of one more micro-batch is the difference between GPipe's plans of 8 and of 4; the rest is constant. */
static void held(void **state)
{
	(void)state;
	for (int stage = 0; stage < STAGES_MOST; stage++) {
		const double eight = activations(&(struct kind){ STAGES_MOST, 8, "gpipe" }, stage);
		const double four = activations(&(struct kind){ STAGES_MOST, 4, "gpipe" }, stage);
		const double one = (eight - four) / 4;

		for (int micros = 2; micros <= 8; micros += 3)
			check_held(stage, micros, four - 4 * one, one);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(bubbles), cmocka_unit_test(held) };

	return cmocka_run_group_tests_name("pipelines", tests, NULL, NULL);
}
