/* SPDX-License-Identifier: Apache-2.0 */
/* val_answer.c: the model's answer in a conversation of the evaluation set, by the programs that evaluate: the whole
 * text is read again for each token, so that every strategy can do it, and training is as without it. */
#include "trainer/run/observers.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "tracker/base/utf8.h"
#include "tracker/mem/mem.h"
#include "trainer/data/tokenizer/tokenizer.h"

#define TOKENS_MAX 48	    /* of an answer; each takes a forward pass */
#define ANSWER_MAX_S 5	    /* then it is cut */
#define TEXT_MAX (16 << 10) /* bytes that are shown of a part, the last ones */

struct answering {
	struct engine *e;
	const struct program *program; /* the smallest that evaluates; of no samples on a rank without them */
	struct tokenizer *tokenizer;   /* rank 0 */
	int64_t length;		       /* tokens of a sample; so on */
	int64_t prompt, wanted;	       /* of the first sample: before its first answer, and of that */
	int64_t answered;
	double until_s; /* rank 0 */
	bool cut;
	int32_t *tokens;	   /* [length]: prompt and answer so far */
	int32_t *given;		   /* [wanted]: the answer that is trained */
	int32_t *inputs, *targets; /* of all micro-batches */
	int32_t *best;		   /* [length] */
};

static const struct program *find_smallest_evaluation(const struct prepared *p)
{
	const struct program *least = NULL;

	for (int i = 0; i < p->n_programs; i++)
		if (p->program[i]->kind == PROGRAM_EVAL &&
		    (!least || !least->batch || (p->program[i]->batch && p->program[i]->batch < least->batch)))
			least = p->program[i];
	return least;
}

/* Reads the first sample: its tokens up to the first answer, and that. */
static int read_conversation(struct answering *a, struct err *err)
{
	const struct dataset_read r = { .split = SPLIT_VAL, .tokens = a->tokens, .targets = a->targets };
	int rc = dataset_read(a->e->workload.data, &r, err);
	int64_t i = 0, n = 0;

	if (rc)
		return rc;
	while (i < a->length && a->targets[i] < 0)
		i++;
	while (i + n < a->length && a->targets[i + n] >= 0)
		n++;
	a->prompt = i + 1;
	a->wanted = n;
	a->given = mem_dup(a->targets + i, (size_t)n * sizeof(*a->given));
	return 0;
}

static int allocate_answering(struct answering *a, struct err *err)
{
	const struct program *p = a->program;
	const struct run_config *cfg = a->e->rank.cfg;
	size_t all = (size_t)p->schedule.slots * tensor_bytes(p->inputs);

	a->length = a->e->workload.config.seq_len;
	if (!all)
		all = (size_t)a->length * sizeof(*a->inputs);
	a->tokens = mem_array((size_t)a->length, sizeof(*a->tokens));
	a->best = mem_array((size_t)(p->micro * a->length), sizeof(*a->best));
	a->inputs = mem_zalloc(all);
	a->targets = mem_alloc(all);
	return engine_is_root(a->e)
		       ? tokenizer_open(&a->tokenizer, cfg->tokenizer ? cfg->tokenizer : cfg->init_from, err)
		       : 0;
}

int answering_new(struct answering **ret, struct engine *e, struct err *err)
{
	const struct program *p = find_smallest_evaluation(&e->prepared);
	struct answering *a;
	int rc;

	*ret = NULL;
	if (!p || !e->workload.config.keep_best || !e->workload.data->n_samples[SPLIT_VAL])
		return 0;
	a = mem_zalloc(sizeof(*a));
	a->e = e;
	a->program = p;
	rc = allocate_answering(a, err);
	if (!rc)
		rc = read_conversation(a, err);
	if (!rc && a->wanted)
		*ret = a;
	else
		answering_free(a);
	return rc;
}

void answering_free(struct answering *a)
{
	if (!a)
		return;
	tokenizer_close(a->tokenizer);
	free(a->tokens);
	free(a->given);
	free(a->inputs);
	free(a->targets);
	free(a->best);
	free(a);
}

/* What the ranks tell each other after a token. */
struct heard {
	int64_t token; /* -1: the rank has no head of the model */
	int64_t late;  /* rank 0: the time is over */
};

/* Tells all ranks the token after n of them, which a rank with the model's head knows, and whether it is the last. */
static int agree_on_token(struct answering *a, int64_t n, int32_t *ret, struct err *err)
{
	const struct program *p = a->program;
	struct comm *c = rank_comm(&a->e->rank);
	const bool knows = p->best && p->best->producer && p->batch;
	struct heard *all = mem_array((size_t)c->world, sizeof(*all));
	int rc = knows ? prepared_get(&a->e->prepared, p->best, a->best, (size_t)n * sizeof(*a->best), err) : 0;

	all[c->rank] = (struct heard){ knows && !rc ? a->best[n - 1] : -1, clock_mono_s() > a->until_s };
	if (!rc)
		rc = c->ops->all_gather(c, all, sizeof(*all), err);
	*ret = 0;
	for (int r = c->world - 1; r >= 0; r--)
		if (all[r].token >= 0)
			*ret = (int32_t)all[r].token;
	a->cut = all[0].late;
	free(all);
	return rc;
}

/* Runs the model over the first n tokens, as the first sample of every micro-batch. */
static int read_tokens_so_far(const struct answering *a, int64_t n, struct err *err)
{
	const struct program *p = a->program;
	const struct step_page page = {
		.step = a->e->step, .seed = (uint64_t)a->e->rank.cfg->seed, .inv_count = 1, .loss_scale = 1
	};
	const struct exec_call call = { .page = &page, .inputs = a->inputs, .targets = a->targets };
	const int64_t each = p->micro * a->length;
	struct exec_done done;

	memset(a->targets, 0xff, (size_t)p->schedule.slots * tensor_bytes(p->targets));
	for (int slot = 0; each && slot < p->schedule.slots; slot++) {
		memcpy(a->inputs + slot * each, a->tokens, (size_t)n * sizeof(*a->tokens));
		a->targets[slot * each + n - 1] = 0;
	}
	return exec_run(a->e->exec, p, &call, &done, err);
}

/* Appends the most likely tokens to the prompt, until the token that ends the given answer. */
static int write_answer(struct answering *a, struct err *err)
{
	int64_t n = a->prompt;
	int32_t token = -1;
	int rc = 0;

	memset(a->inputs, 0, (size_t)a->program->schedule.slots * tensor_bytes(a->program->inputs));
	a->until_s = clock_mono_s() + ANSWER_MAX_S;
	a->cut = false;
	for (; !rc && !a->cut && n < a->length && n < a->prompt + TOKENS_MAX && token != a->given[a->wanted - 1]; n++) {
		rc = read_tokens_so_far(a, n, err);
		if (!rc)
			rc = agree_on_token(a, n, &token, err);
		a->tokens[n] = token;
	}
	a->answered = n - a->prompt;
	return rc;
}

/* Appends tokens as an indented block of Markdown. */
static void add_block(const struct answering *a, const char *title, const int32_t *tokens, int64_t n, struct buf *out)
{
	char *text = mem_alloc(TEXT_MAX + 1);
	struct buf raw;
	size_t first;

	buf_init(&raw, SIZE_MAX);
	for (int64_t i = 0; i < n; i++) {
		size_t bytes = 0;
		const char *at = tokenizer_bytes(a->tokenizer, tokens[i], i == 0, &bytes);

		buf_add(&raw, at ? at : "", at ? bytes : 0);
	}
	first = raw.len > TEXT_MAX / 4 ? raw.len - TEXT_MAX / 4 : 0;
	utf8_copy(text, TEXT_MAX + 1, raw.len ? raw.data + first : "", raw.len - first, NULL);
	buf_addf(out, "**%s**\n\n    ", title);
	for (const char *c = text; *c; c++)
		*c == '\n' ? buf_adds(out, "\n    ") : buf_addc(out, *c);
	buf_adds(out, "\n\n");
	free(text);
	buf_done(&raw);
}

int answering_record(struct answering *a, struct dptrack_run *run, int64_t step, struct err *err)
{
	struct buf text;
	int rc = a ? write_answer(a, err) : 0;

	if (rc || !a)
		return rc;
	a->e->mark_s = clock_mono_s(); /* the next step is not charged for it */
	if (!engine_is_root(a->e))
		return 0;
	buf_init(&text, SIZE_MAX);
	add_block(a, "Conversation", a->tokens, a->prompt, &text);
	add_block(a, "The answer that is given", a->given, a->wanted, &text);
	add_block(a, a->cut ? "The model's answer, cut after 5 s" : "The model's answer", a->tokens + a->prompt,
		  a->answered, &text);
	dptrack_text(run, step, "val/answer", text.data);
	buf_done(&text);
	return 0;
}
