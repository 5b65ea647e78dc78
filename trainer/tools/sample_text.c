/* SPDX-License-Identifier: Apache-2.0 */
/* sample_text.c: `dptrain sample`: a text from a trained language model, token by token, on programs that keep the
 * keys and values of what has been read. When the context is full, the later half of the text is read again. */
#include "trainer/tools/subcommands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tracker/base/file.h"
#include "tracker/base/log.h"
#include "tracker/mem/mem.h"
#include "trainer/data/chat/chat.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/state/initial.h"
#include "trainer/weights/decoder_file.h"
#include "trainer/weights/gpt_file.h"
#include "trainer/weights/safetensors.h"

#define CHUNK 32 /* positions per forward pass */

struct sampling {
	struct run_config *cfg;
	struct engine *e;
	struct chat *chat;	  /* of --chat; its tokenizer is used */
	struct tokenizer *opened; /* without --chat */
	const struct tokenizer *tokenizer;
	const struct model *kind;
	struct model_config model;
	struct decoder_generation generation; /* its ends count besides the tokenizer's separator and chat_ends */
	struct chat_ends chat_ends;
	int32_t *text; /* every token so far */
	int64_t n, cap, context; /* context: of the model, which may get a shorter one */
	int64_t prompt;	   /* first token that is shown: those that begin a text are not */
	int64_t begin, at; /* text[begin] is at position 0; positions before `at` have been read */
	char *positions;   /* the position table, in the run's type; NULL: the model has none */
	void *raw;	   /* logits of one row, in their type */
	double *logits, *weights;
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
	size_t row = positions ? (size_t)s->model.width * dtype_bytes(positions->dtype) : 0;
	int32_t at = (int32_t)s->at, none[CHUNK];
	int rc = prepared_put(prepared, p->inputs, s->text + s->begin + s->at, (size_t)n * sizeof(int32_t), err);

	for (int i = 0; i < CHUNK; i++)
		none[i] = -1;
	if (!rc)
		rc = prepared_put(prepared, p->targets, none, (size_t)n * sizeof(int32_t), err);
	if (!rc)
		rc = prepared_put(prepared, first, &at, sizeof(at), err);
	if (!rc && positions)
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
	memcpy(s->weights, s->logits, (size_t)s->model.vocab * sizeof(double));
	return kth_largest(s->weights, s->model.vocab, k);
}

static int compare_descending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x < y) - (x > y);
}

/* Sets to 0 the weights of all but the most likely tokens, as many as have together the share p of the sum (Holtzman et
 * al. 2020; those of equal weight stay together). Returns the new sum. Those below (1 - p) / n have less than 1 - p, so
 * they need no sorting. */
static double keep_nucleus(struct sampling *s, double p, double sum, int64_t n)
{
	double *kept = s->logits; /* no longer needed */
	double part = 0, cut = 0;
	int64_t k = 0;

	for (int64_t i = 0; i < n; i++)
		if (s->weights[i] >= (1 - p) * sum / (double)n)
			kept[k++] = s->weights[i];
	qsort(kept, (size_t)k, sizeof(*kept), compare_descending);
	for (int64_t i = 0; i < k && part < p * sum; i++) {
		cut = kept[i];
		part += cut;
	}
	part = 0;
	for (int64_t i = 0; i < n; i++) {
		s->weights[i] = s->weights[i] < cut ? 0 : s->weights[i];
		part += s->weights[i];
	}
	return part;
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
		s->weights[i] = s->logits[i] < cut ? 0 : exp((s->logits[i] - s->logits[best]) / t);
		sum += s->weights[i];
	}
	if (s->cfg->top_p < 1)
		sum = keep_nucleus(s, s->cfg->top_p, sum, words);
	left = rng_uniform(key, (uint64_t)number) * sum;
	for (int64_t i = 0; i < words; i++) {
		left -= s->weights[i];
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

static bool ends_text(const struct sampling *s, int32_t token)
{
	for (int i = 0; i < s->generation.n_ends; i++)
		if (s->generation.end[i] == token)
			return true;
	return token == tokenizer_separator(s->tokenizer) ||
	       (s->chat && (token == s->chat_ends.of_template || token == s->chat_ends.of_tokenizer));
}

/* Prints the prompt, then draws and prints tokens up to --max-tokens or the end of the text. An answer also ends with
 * the context: without its beginning it would be another one. */
static int generate_text(struct sampling *s, struct err *err)
{
	bool ended = false;
	int rc = 0;

	for (int64_t i = s->prompt; !rc && i < s->n; i++)
		rc = print_token(s, s->text[i], i == s->prompt, err);
	for (int64_t i = 0; !rc && i < s->cfg->max_tokens; i++) {
		int32_t token;

		if (s->chat && s->n > s->model.context)
			break;
		if (s->n - s->begin > s->model.context) {
			s->begin = s->n - (s->model.context + 1) / 2;
			s->at = 0;
		}
		rc = read_unread_tokens(s, err);
		if (rc)
			break;
		token = draw_token(s, i);
		ended = ends_text(s, token);
		if (ended)
			break;
		rc = append_tokens(s, &token, 1, err);
		if (!rc)
			rc = print_token(s, token, s->n - 1 == s->prompt, err);
	}
	if (!rc && (putchar('\n') == EOF || fflush(stdout)))
		rc = err_set(err, ERR_IO, "cannot write to stdout");
	if (!rc && s->chat && !ended)
		log_warn("the answer did not end within --max-tokens %lld, or a context of %lld tokens",
			 (long long)s->cfg->max_tokens, (long long)s->context);
	return rc;
}

/* Encodes the messages of --system and --chat. */
static int encode_chat(struct sampling *s, struct err *err)
{
	const struct run_config *cfg = s->cfg;
	json_t *messages = json_array();
	struct buf tokens;
	int rc = 0;

	if (cfg->system)
		json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "system", "content", cfg->system));
	json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "user", "content", cfg->chat));
	if (json_array_size(messages) != 1 + (size_t)(cfg->system != NULL))
		rc = err_set(err, ERR_USAGE, "--chat, --system: expected UTF-8");
	buf_init(&tokens, SIZE_MAX);
	if (!rc)
		rc = chat_encode_prompt(s->chat, messages, &tokens, err);
	if (!rc)
		rc = append_tokens(s, (const int32_t *)(const void *)tokens.data, tokens.len / sizeof(int32_t), err);
	if (!rc && (!s->n || s->n > s->model.context))
		rc = err_set(err, ERR_USAGE,
			     "--chat: has %lld tokens with its template, but the context of %.200s is %lld",
			     (long long)s->n, cfg->init_from, (long long)s->model.context);
	s->prompt = s->n;
	s->chat_ends = chat_find_ends(s->chat);
	buf_done(&tokens);
	json_decref(messages);
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

static int open_chat(struct sampling *s, const char *tokenizer, struct err *err)
{
	const struct run_config *cfg = s->cfg;
	const int64_t now = (int64_t)time(NULL);
	struct chat_opts o = { .tokenizer = tokenizer,
			       .template_name = cfg->chat_template,
			       .allow_special = cfg->allow_special,
			       .date = (double)(now - now % 86400) };
	int rc = cfg->template_date ? chat_parse_date(&o.date, cfg->template_date, err) : 0;
	char trained[4200]; /* the adapter's */

	if (!o.template_name && cfg->adapter && file_join(trained, sizeof(trained), cfg->adapter, HF_CHAT_TEMPLATE) &&
	    !access(trained, F_OK))
		o.template_name = trained;
	return rc ? rc : chat_open(&s->chat, &o, err);
}

/* trained: name of the tokenizer that the weights know; "": unknown. */
static int open_tokenizer(struct sampling *s, const char *trained, struct err *err)
{
	const char *spec = s->cfg->tokenizer, *file = s->cfg->init_from;
	int rc;

	if (!spec && strcmp(trained, "bytes"))
		return err_set(err, ERR_USAGE,
			       "%.200s: does not contain its tokenizer%s: add --tokenizer bytes or "
			       "--tokenizer DIR (tokenizer.json, or vocab.json and merges.txt)",
			       file, trained[0] ? ", only a checksum" : "");
	rc = s->cfg->chat ? open_chat(s, spec ? spec : "bytes", err)
			  : tokenizer_open(&s->opened, spec ? spec : "bytes", err);
	if (rc)
		return rc;
	s->tokenizer = s->chat ? chat_tokenizer(s->chat) : s->opened;
	if (trained[0] && strcmp(trained, tokenizer_name(s->tokenizer)))
		return err_set(err, ERR_USAGE, "--tokenizer %.200s: %.200s was trained with another tokenizer (%s)",
			       spec, file, trained);
	if (tokenizer_vocab(s->tokenizer) > s->model.vocab)
		return err_set(err, ERR_USAGE, "--tokenizer %.200s: has %lld tokens, but the model of %.200s has %lld",
			       spec, (long long)tokenizer_vocab(s->tokenizer), file, (long long)s->model.vocab);
	return 0;
}

/* Draws as the folder wants it where no flag says otherwise. */
static int take_generation(struct sampling *s, struct err *err)
{
	const struct decoder_generation *g = &s->generation;
	const struct {
		enum flag_id id;
		const char *name;
		double value;
	} wanted[] = { { FLAG_temperature, "temperature", g->temperature },
		       { FLAG_top_k, "top-k", g->top_k },
		       { FLAG_top_p, "top-p", g->top_p } };
	char text[120] = "";
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(wanted) / sizeof(*wanted); i++) {
		char number[32];

		if (isnan(wanted[i].value) || config_given(s->cfg, wanted[i].id))
			continue;
		snprintf(number, sizeof(number), "%.10g", wanted[i].value);
		rc = config_put(s->cfg, wanted[i].id, "generation_config.json", number, err);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s %s", wanted[i].name, number);
	}
	if (n && !rc)
		log_info("as the model's folder says:%s", text);
	return rc;
}

/* The model in a folder of Hugging Face, or in a run that began with one. */
static int describe_decoder(struct sampling *s, struct err *err)
{
	const struct decoder_config *d = s->cfg->decoder;
	struct safetensors *file;
	const char *trained;
	int rc = decoder_file_generation(&s->generation, d, err);

	if (!rc)
		rc = take_generation(s, err);
	if (rc)
		return rc;
	s->kind = &model_decoder;
	s->model = (struct model_config){ .decoder = d,
					  .layers = d->layers,
					  .heads = d->heads,
					  .width = d->width,
					  .context = d->context,
					  .seq_len = 1,
					  .vocab = d->vocab,
					  .tied = d->tied,
					  .decode = true,
					  .keep_logits = true };
	rc = safetensors_open(&file, s->cfg->init_from, err);
	if (rc)
		return rc;
	trained = safetensors_meta(file, "tokenizer");
	rc = open_tokenizer(s, trained ? trained : "", err);
	safetensors_close(file);
	return rc;
}

/* A GPT-2's sizes, from its weights and config.json. */
static int describe_gpt(struct sampling *s, struct err *err)
{
	struct run_config *cfg = s->cfg;
	struct gpt_file f;
	int rc = gpt_file_describe(&f, cfg->init_from, err);

	if (rc)
		return rc;
	if (!f.config.heads && !cfg->n_head)
		return err_set(err, ERR_USAGE, "%.200s: the number of attention heads is unknown: add --n-head N",
			       cfg->init_from);
	s->kind = &model_gpt2_124m;
	s->model = (struct model_config){ .layers = f.config.layers,
					  .heads = cfg->n_head ? cfg->n_head : f.config.heads,
					  .width = f.config.width,
					  .context = f.config.context,
					  .seq_len = 1,
					  .vocab = f.config.vocab,
					  .tied = f.config.tied,
					  .decode = true,
					  .keep_logits = true };
	return open_tokenizer(s, f.tokenizer, err);
}

/* Reads the model's sizes, opens the tokenizer and encodes the prompt. */
static int prepare_sampling(struct sampling *s, struct err *err)
{
	int rc = initial_begin(s->cfg, err);

	if (!rc && s->cfg->chat && s->cfg->prompt)
		rc = err_set(err, ERR_USAGE, "--chat and --prompt contradict: give one of them");
	if (!rc && !s->cfg->init_from)
		rc = err_set(err, ERR_USAGE,
			     "dptrain sample: needs the weights of a language model: add --init-from FILE|DIR");
	if (!rc)
		rc = s->cfg->decoder ? describe_decoder(s, err) : describe_gpt(s, err);
	if (!rc)
		rc = s->chat ? encode_chat(s, err) : encode_prompt(s, err);
	s->context = s->model.context;
	if (!rc && s->cfg->decoder && s->n + s->cfg->max_tokens < s->model.context)
		s->model.context = s->n + s->cfg->max_tokens;
	return rc;
}

/* Copies the position embedding, if there is one: the host passes its rows to the programs. */
static int read_positions(struct sampling *s, struct err *err)
{
	const struct tensor *t = graph_find(s->e->prepared.model, "transformer.wpe.weight");

	s->raw = mem_alloc((size_t)s->model.vocab * sizeof(double));
	s->logits = mem_alloc((size_t)s->model.vocab * sizeof(double));
	s->weights = mem_alloc((size_t)s->model.vocab * sizeof(double));
	if (!t)
		return 0;
	s->positions = mem_alloc(tensor_bytes(t));
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
	int rc = prepare_sampling(&s, err);

	if (!rc)
		rc = engine_open_evaluation(
			&s.e,
			&(struct engine_evaluation){ .job = job,
						     .context = &context,
						     .workload = { .model = s.kind, .config = s.model },
						     .sizes = { sizes, s.model.context < CHUNK ? 1 : 2 } },
			err);
	if (!rc)
		rc = read_positions(&s, err);
	if (!rc && s.n > s.model.context)
		s.begin = s.n - s.model.context;
	if (!rc)
		rc = generate_text(&s, err);
	engine_close(s.e);
	chat_close(s.chat);
	tokenizer_close(s.opened);
	free(s.text);
	free(s.positions);
	free(s.raw);
	free(s.logits);
	free(s.weights);
	return rc;
}
