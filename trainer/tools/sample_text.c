/* SPDX-License-Identifier: Apache-2.0 */
/* sample_text.c: `dptrain sample`: a text from a trained language model, token by token, on programs that keep the
 * keys and values of what has been read. When the context is full, the later half of the text is read again. */
#include "trainer/tools/subcommands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/state/initial.h"
#include "trainer/weights/gpt_file.h"

#define CHUNK 32 /* positions per forward pass */

struct sampling {
	struct run_config *cfg;
	struct engine *e;
	struct tokenizer *tokenizer;
	struct model_config model;
	int32_t *text; /* every token so far */
	int64_t n, cap;
	int64_t prompt;	   /* first token that is shown: those that begin a text are not */
	int64_t begin, at; /* text[begin] is at position 0; positions before `at` have been read */
	char *positions;   /* the position table, in the run's type */
	void *raw;	   /* logits of one row, in their type */
	double *logits, *sorted;
};

static int append_tokens(struct sampling *s, const int32_t *tokens, size_t n, struct err *err)
{
	if (!array_reserve(&s->text, &s->cap, s->n + (int64_t)n))
		return err_nomem(err, "a text");
	memcpy(s->text + s->n, tokens, n * sizeof(*tokens));
	s->n += (int64_t)n;
	return 0;
}

static int put_sample_inputs(struct sampling *s, const struct program *p, int64_t n, struct err *err)
{
	const struct prepared *prepared = &s->e->prepared;
	const struct tensor *positions = graph_find(p->graph, "positions"), *first = graph_find(p->graph, "first");
	size_t row = (size_t)s->model.width * dtype_bytes(positions->dtype);
	int32_t at = (int32_t)s->at, none[CHUNK];
	int rc = prepared_put(prepared, p->inputs, s->text + s->begin + s->at, (size_t)n * sizeof(int32_t), err);

	for (int i = 0; i < CHUNK; i++)
		none[i] = -1;
	if (!rc)
		rc = prepared_put(prepared, p->targets, none, (size_t)n * sizeof(int32_t), err);
	if (!rc)
		rc = prepared_put(prepared, first, &at, sizeof(at), err);
	if (!rc)
		rc = prepared_put(prepared, positions, s->positions + (size_t)s->at * row, (size_t)n * row, err);
	return rc;
}

/* Copies the logits after the last of n positions. */
static int get_last_logits(struct sampling *s, const struct program *p, int64_t n, struct err *err)
{
	const struct tensor *t = p->logits;
	size_t bytes = (size_t)s->model.vocab * dtype_bytes(t->dtype);
	const char *from = (const char *)prepared_address(&s->e->prepared, t) + (size_t)(n - 1) * bytes;
	int rc = s->e->rank.backend->copy(s->e->rank.module, s->raw, from, bytes, err);

	for (int64_t i = 0; !rc && i < s->model.vocab; i++) {
		s->logits[i] = t->dtype == DTYPE_F64 ? ((double *)s->raw)[i] : (double)((float *)s->raw)[i];
		if (!isfinite(s->logits[i]))
			rc = err_set(err, ERR_USAGE, "%.300s: the model's outputs are not finite numbers: use an "
				     "earlier checkpoint", s->cfg->init_from);
	}
	return rc;
}

/* Runs the model over the tokens not yet read; sets the logits after the last one. */
static int read_unread_tokens(struct sampling *s, struct err *err)
{
	const struct step_page page = { .seed = (uint64_t)s->cfg->seed, .loss_scale = 1 };
	struct exec_done done;
	int rc = 0;

	while (!rc && s->begin + s->at < s->n) {
		int64_t left = s->n - s->begin - s->at, n = left >= CHUNK && s->model.context >= CHUNK ? CHUNK : 1;
		const struct program *p = prepared_program(&s->e->prepared, PROGRAM_EVAL, n);

		rc = put_sample_inputs(s, p, n, err);
		if (!rc)
			rc = exec_run(s->e->exec, p, &(struct exec_call){ .page = &page }, &done, err);
		if (!rc && left == n)
			rc = get_last_logits(s, p, n, err);
		s->at += n;
	}
	return rc;
}

/* Returns the k-th largest of n values, 1 <= k <= n, and reorders them (Hoare, "Algorithm 65: find", 1961). */
static double kth_largest(double *v, int64_t n, int64_t k)
{
	int64_t first = 0, last = n - 1;

	while (first < last) {
		double pivot = v[first + (last - first) / 2];
		int64_t i = first, j = last;

		while (i <= j) {
			while (v[i] > pivot)
				i++;
			while (v[j] < pivot)
				j--;
			if (i <= j) {
				double swapped = v[i];

				v[i++] = v[j];
				v[j--] = swapped;
			}
		}
		if (k - 1 <= j)
			last = j;
		else if (k - 1 >= i)
			first = i;
		else
			break;
	}
	return v[k - 1];
}

/* Returns the smallest of the k largest logits. */
static double top_k_cut(struct sampling *s, int64_t k)
{
	if (k <= 0 || k >= s->model.vocab)
		return -INFINITY;
	memcpy(s->sorted, s->logits, (size_t)s->model.vocab * sizeof(double));
	return kth_largest(s->sorted, s->model.vocab, k);
}

/* Draws a token by its probability at this temperature; at temperature 0 the most likely one. Never draws tokens that
 * the tokenizer does not have (of a padded vocabulary). */
static int32_t draw_token(struct sampling *s, int64_t number)
{
	const struct rng_key key = { (uint64_t)s->cfg->seed, rng_stream("sample") };
	int64_t words = tokenizer_vocab(s->tokenizer), best = 0;
	double cut = top_k_cut(s, s->cfg->top_k), sum = 0, left, t = s->cfg->temperature;

	for (int64_t i = 1; i < words; i++)
		if (s->logits[i] > s->logits[best])
			best = i;
	if (t <= 0)
		return (int32_t)best;
	for (int64_t i = 0; i < words; i++) {
		s->sorted[i] = s->logits[i] < cut ? 0 : exp((s->logits[i] - s->logits[best]) / t);
		sum += s->sorted[i];
	}
	left = rng_uniform(key, (uint64_t)number) * sum;
	for (int64_t i = 0; i < words; i++) {
		left -= s->sorted[i];
		if (left < 0)
			return (int32_t)i;
	}
	return (int32_t)best;
}

static int print_token(const struct sampling *s, int32_t token, bool first, struct err *err)
{
	size_t n;
	const char *bytes = tokenizer_bytes(s->tokenizer, token, first, &n);

	if ((bytes && fwrite(bytes, 1, n, stdout) != n) || fflush(stdout))
		return err_set(err, ERR_IO, "cannot write to stdout");
	return 0;
}

/* Prints the prompt, then draws and prints tokens up to --max-tokens or the end of the text. */
static int generate_text(struct sampling *s, struct err *err)
{
	int rc = 0;

	for (int64_t i = s->prompt; !rc && i < s->n; i++)
		rc = print_token(s, s->text[i], i == s->prompt, err);
	for (int64_t i = 0; !rc && i < s->cfg->max_tokens; i++) {
		int32_t token;

		if (s->n - s->begin > s->model.context) {
			s->begin = s->n - (s->model.context + 1) / 2;
			s->at = 0;
		}
		rc = read_unread_tokens(s, err);
		if (rc)
			break;
		token = draw_token(s, i);
		if (token == tokenizer_separator(s->tokenizer))
			break;
		rc = append_tokens(s, &token, 1, err);
		if (!rc)
			rc = print_token(s, token, s->n - 1 == s->prompt, err);
	}
	if (!rc && (putchar('\n') == EOF || fflush(stdout)))
		rc = err_set(err, ERR_IO, "cannot write to stdout");
	return rc;
}

/* Encodes the prompt after the tokens that begin a text; without both, the separator of texts or a newline begins it.
 */
static int encode_prompt(struct sampling *s, struct err *err)
{
	int32_t separator = tokenizer_separator(s->tokenizer);
	const char *prompt = s->cfg->prompt ? s->cfg->prompt : "";
	struct token_encoder *encoder = token_encoder_new(s->tokenizer);
	const int32_t *before = NULL;
	struct buf tokens;
	int n = tokenizer_before(s->tokenizer, &before), rc;

	buf_init(&tokens, SIZE_MAX);
	if (n)
		buf_add(&tokens, before, (size_t)n * sizeof(*before));
	if (!n && !*prompt && separator >= 0)
		buf_add(&tokens, &separator, sizeof(separator));
	s->prompt = (int64_t)(tokens.len / sizeof(int32_t));
	if (!*prompt && !s->prompt)
		prompt = "\n";
	rc = token_encode(encoder, &(struct token_request){ .text = prompt, .n = strlen(prompt), .tokens = &tokens },
			  err);
	if (!rc)
		rc = append_tokens(s, (const int32_t *)(const void *)tokens.data, tokens.len / sizeof(int32_t), err);
	buf_done(&tokens);
	token_encoder_free(encoder);
	return rc;
}

static int open_tokenizer(struct sampling *s, const struct gpt_file *f, struct err *err)
{
	const char *spec = s->cfg->tokenizer, *file = s->cfg->init_from;
	int rc;

	if (!spec && strcmp(f->tokenizer, "bytes"))
		return err_set(err, ERR_USAGE,
			       "%.200s: does not contain its tokenizer%s: add --tokenizer bytes or "
			       "--tokenizer DIR (tokenizer.json, or vocab.json and merges.txt)",
			       file, f->tokenizer[0] ? ", only a checksum" : "");
	rc = tokenizer_open(&s->tokenizer, spec ? spec : "bytes", err);
	if (rc)
		return rc;
	if (f->tokenizer[0] && strcmp(f->tokenizer, tokenizer_name(s->tokenizer)))
		return err_set(err, ERR_USAGE, "--tokenizer %.200s: %.200s was trained with another tokenizer (%s)",
			       spec, file, f->tokenizer);
	if (tokenizer_vocab(s->tokenizer) > f->config.vocab)
		return err_set(err, ERR_USAGE, "--tokenizer %.200s: has %lld tokens, but the model of %.200s has %lld",
			       spec, (long long)tokenizer_vocab(s->tokenizer), file, (long long)f->config.vocab);
	return 0;
}

/* Reads the model's sizes from the weights file, and opens the tokenizer. */
static int describe_gpt_model(struct sampling *s, struct err *err)
{
	struct run_config *cfg = s->cfg;
	struct gpt_file f;
	int rc;

	rc = initial_begin(cfg, err);
	if (rc)
		return rc;
	if (!cfg->init_from)
		return err_set(err, ERR_USAGE, "dptrain sample: needs the weights of a GPT: add --init-from FILE");
	if (cfg->decoder)
		return err_set(err, ERR_USAGE,
			       "--init-from %.300s: dptrain sample runs models of GPT-2 alone: load that folder in "
			       "transformers",
			       cfg->init_from);
	rc = gpt_file_describe(&f, cfg->init_from, err);
	if (rc)
		return rc;
	if (!f.config.heads && !cfg->n_head)
		return err_set(err, ERR_USAGE, "%.200s: the number of attention heads is unknown: add --n-head N",
			       cfg->init_from);
	s->model = (struct model_config){ .layers = f.config.layers,
					  .heads = cfg->n_head ? cfg->n_head : f.config.heads,
					  .width = f.config.width,
					  .context = f.config.context,
					  .seq_len = 1,
					  .vocab = f.config.vocab,
					  .tied = f.config.tied,
					  .decode = true,
					  .keep_logits = true };
	return open_tokenizer(s, &f, err);
}

/* Copies the position embedding, whose rows the host passes to the programs. */
static int read_positions(struct sampling *s, struct err *err)
{
	const struct tensor *t = graph_find(s->e->prepared.model, "transformer.wpe.weight");

	s->positions = mem_alloc(tensor_bytes(t));
	s->raw = mem_alloc((size_t)s->model.vocab * sizeof(double));
	s->logits = mem_alloc((size_t)s->model.vocab * sizeof(double));
	s->sorted = mem_alloc((size_t)s->model.vocab * sizeof(double));
	return tensors_get(&s->e->tensors, t, tensors_all(t), s->positions, err);
}

int sample_main(const struct job *job, struct err *err)
{
	static const int64_t sizes[] = { 1, CHUNK };
	struct sampling s = { .cfg = job->cfg };
	struct shared_status shared_status = { .stop_signal = 0 };
	struct rank_context context = {
		.world = 1, .local_world = 1, .nodes = 1, .shm_fd = -1, .signal_fd = -1, .shared_status = &shared_status
	};
	int rc = describe_gpt_model(&s, err);

	if (!rc)
		rc = encode_prompt(&s, err);
	if (!rc)
		rc = engine_open_evaluation(
			&s.e,
			&(struct engine_evaluation){ .job = job,
						     .context = &context,
						     .workload = { .model = &model_gpt2_124m, .config = s.model },
						     .sizes = { sizes, s.model.context < CHUNK ? 1 : 2 } },
			err);
	if (!rc)
		rc = read_positions(&s, err);
	if (!rc && s.n > s.model.context)
		s.begin = s.n - s.model.context;
	if (!rc)
		rc = generate_text(&s, err);
	engine_close(s.e);
	tokenizer_close(s.tokenizer);
	free(s.text);
	free(s.positions);
	free(s.raw);
	free(s.logits);
	free(s.sorted);
	return rc;
}
