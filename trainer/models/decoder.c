/* SPDX-License-Identifier: Apache-2.0 */
/* decoder.c: the builder of decoder-only language models. Names are those of Hugging Face's classes. */
#include "trainer/models/decoder.h"

#include <math.h>
#include <string.h>

#include "trainer/models/models.h"
#include "trainer/ops/add/add.h"
#include "trainer/ops/attention_decode/attention_decode.h"
#include "trainer/ops/attention/attention.h"
#include "trainer/ops/embed/embed.h"
#include "trainer/ops/layernorm/layernorm.h"
#include "trainer/ops/linear/linear.h"
#include "trainer/ops/lmhead/lmhead.h"
#include "trainer/ops/places/places.h"
#include "trainer/ops/scale/scale.h"

#define INIT_STD 0.02

/* Defaults are those of transformers' configuration classes. */
const struct decoder_class decoder_classes[] = {
	{ .architecture = "LlamaForCausalLM", .has = DECODER_BIASES | DECODER_MLP_BIAS, .eps = 1e-6, .theta = 1e4 },
	{ .architecture = "MistralForCausalLM",
	  .windows = DECODER_WINDOW_ALL,
	  .eps = 1e-6,
	  .theta = 1e4,
	  .shared = 8,
	  .window = 4096 },
	{ .architecture = "Qwen2ForCausalLM",
	  .has = DECODER_QKV_BIAS,
	  .windows = DECODER_WINDOW_SWITCHED,
	  .eps = 1e-6,
	  .theta = 1e4,
	  .shared = 32 },
	{ .architecture = "Qwen3ForCausalLM",
	  .has = DECODER_BIASES | DECODER_HEAD_NORM,
	  .windows = DECODER_WINDOW_SWITCHED,
	  .eps = 1e-6,
	  .theta = 1e4,
	  .shared = 32,
	  .head_dim = 128 },
	{ .architecture = "GemmaForCausalLM",
	  .has = DECODER_BIASES | DECODER_GEMMA | DECODER_GELU,
	  .tied = true,
	  .eps = 1e-6,
	  .theta = 1e4,
	  .shared = 16,
	  .head_dim = 256 },
	{ .architecture = "Gemma2ForCausalLM",
	  .has = DECODER_BIASES | DECODER_GEMMA | DECODER_GELU | DECODER_NORM_BOTH | DECODER_QUERY_SCALAR |
		 DECODER_SOFT_CAPS,
	  .windows = DECODER_WINDOW_PATTERN,
	  .tied = true,
	  .eps = 1e-6,
	  .theta = 1e4,
	  .shared = 4,
	  .head_dim = 256,
	  .window = 4096,
	  .pattern = 2 },
	{ .architecture = "Gemma3ForCausalLM",
	  .has = DECODER_BIASES | DECODER_GEMMA | DECODER_GELU | DECODER_NORM_BOTH | DECODER_QUERY_SCALAR |
		 DECODER_HEAD_NORM,
	  .windows = DECODER_WINDOW_PATTERN,
	  .tied = true,
	  .eps = 1e-6,
	  .theta = 1e6,
	  .local_theta = 1e4,
	  .shared = 4,
	  .head_dim = 256,
	  .window = 4096,
	  .pattern = 6 },
	{ .architecture = "Olmo2ForCausalLM",
	  .has = DECODER_BIASES | DECODER_FLAT_NORM | DECODER_NORM_AFTER,
	  .eps = 1e-5,
	  .theta = 1e4 },
	{ .architecture = "Phi3ForCausalLM",
	  .has = DECODER_FUSED,
	  .windows = DECODER_WINDOW_ALL,
	  .eps = 1e-5,
	  .theta = 1e4 },
	{ .architecture = "SmolLM3ForCausalLM",
	  .has = DECODER_BIASES | DECODER_MLP_BIAS | DECODER_SKIPS_ROPE,
	  .windows = DECODER_WINDOW_SWITCHED,
	  .tied = true,
	  .eps = 1e-6,
	  .theta = 2e6,
	  .shared = 4 },
};
const int decoder_class_count = sizeof(decoder_classes) / sizeof(decoder_classes[0]);

const char *const decoder_targets[] = { "q_proj",    "k_proj",	"v_proj",	"qkv_proj",  "o_proj",
					"gate_proj", "up_proj", "gate_up_proj", "down_proj", NULL };

unsigned decoder_linears(const struct decoder_class *class)
{
	unsigned all = 0;

	for (int i = 0; decoder_targets[i]; i++) {
		const bool fused =
			!strcmp(decoder_targets[i], "qkv_proj") || !strcmp(decoder_targets[i], "gate_up_proj");
		const bool both = !strcmp(decoder_targets[i], "o_proj") || !strcmp(decoder_targets[i], "down_proj");

		if (both || fused == ((class->has & DECODER_FUSED) != 0))
			all |= 1u << i;
	}
	return all;
}

double decoder_lora_factor(const struct decoder_lora *l)
{
	return l->alpha / (l->rooted ? sqrt((double)l->rank) : (double)l->rank);
}

/* State of the builder. */
struct decoder_builder {
	struct graph *g;
	const struct model_config *c;
	const struct decoder_config *d;
	struct tensor *first; /* decoding: first new position */
	struct tensor *marked; /* tokens, if samples hold several documents */
	int64_t seq;	      /* rows of a sample */
};

static struct tensor *add_decoder_param(const struct decoder_builder *b, const char *name, struct shape shape,
					struct init init)
{
	struct tensor like = { .name = name,
			       .kind = TENSOR_PARAM,
			       .dtype = DTYPE_F32,
			       .shape = shape,
			       .life = LIFE_PERSISTENT,
			       .init = init };

	like.decay = shape.ndim > 1;
	return name ? graph_tensor(b->g, &like) : NULL;
}

static bool is_lora_target(const struct decoder_lora *l, const char *name)
{
	for (int i = 0; decoder_targets[i]; i++)
		if (l->targets & 1u << i && !strcmp(strrchr(name, '.') + 1, decoder_targets[i]))
			return true;
	return false;
}

/* Adds to y, the output of the linear layer of that name, what LoRA adds. First values are PEFT's: A uniform in
 * +-1/sqrt(in), B zero. */
static struct tensor *add_lora(const struct decoder_builder *b, struct tensor *x, struct tensor *y, const char *name)
{
	const struct decoder_lora *l = &b->d->lora;
	struct init uniform = { .kind = INIT_UNIFORM }, zero = { .kind = INIT_ZERO };
	struct tensor *down, *up;

	if (graph_failed(b->g) || !l->rank || !is_lora_target(l, name))
		return y;
	uniform.scale = 1 / sqrt((double)x->shape.dim[1]);
	down = add_decoder_param(b, graph_printf(b->g, DECODER_ADAPTER "%s.lora_A.weight", name),
				 SHAPE(l->rank, x->shape.dim[1]), uniform);
	up = add_decoder_param(b, graph_printf(b->g, DECODER_ADAPTER "%s.lora_B.weight", name),
			       SHAPE(y->shape.dim[1], l->rank), zero);
	x = scale_add(b->g, linear_add_low(b->g, x, down, NULL), decoder_lora_factor(l));
	return add_add(b->g, y, linear_add_low(b->g, x, up, NULL));
}

static struct tensor *add_decoder_linear(const struct decoder_builder *b, struct tensor *x, const char *name,
					 int64_t out, bool biased)
{
	struct init normal = { .kind = INIT_NORMAL, .scale = INIT_STD }, zero = { .kind = INIT_ZERO };
	struct tensor *w, *bias = NULL;

	if (graph_failed(b->g))
		return NULL;
	w = add_decoder_param(b, graph_printf(b->g, "%s.weight", name), SHAPE(out, x->shape.dim[1]), normal);
	if (biased)
		bias = add_decoder_param(b, graph_printf(b->g, "%s.bias", name), SHAPE(out), zero);
	return add_lora(b, x, linear_add_low(b->g, x, w, bias), name);
}

/* RMS norm of x + delta, or of x if delta is NULL; *ret_sum as in layernorm_add. */
static struct tensor *add_decoder_norm(const struct decoder_builder *b, struct tensor *x, struct tensor *delta,
				       const char *name, struct tensor **ret_sum)
{
	const bool gemma = b->d->class->has & DECODER_GEMMA;
	struct layernorm_tensors t = { .eps = b->d->eps, .shift = gemma };

	if (graph_failed(b->g))
		return NULL;
	t.gamma = add_decoder_param(b, graph_printf(b->g, "%s.weight", name), SHAPE(x->shape.dim[1]),
				    (struct init){ .kind = gemma ? INIT_ZERO : INIT_ONE });
	if (t.gamma)
		t.gamma->of_norm = true;
	return layernorm_add(b->g, x, delta, &t, ret_sum);
}

/* The norm of queries or keys, before their rotation. */
static struct tensor *add_head_norm(const struct decoder_builder *b, struct tensor *x, const char *name)
{
	const unsigned has = b->d->class->has;
	struct layernorm_tensors t = { .eps = b->d->eps, .shift = (has & DECODER_GEMMA) != 0 };
	int64_t n;

	if (graph_failed(b->g) || !(has & (DECODER_HEAD_NORM | DECODER_FLAT_NORM)))
		return x;
	n = has & DECODER_HEAD_NORM ? b->d->head_dim : x->shape.dim[1];
	t.gamma = add_decoder_param(b, graph_printf(b->g, "%s.weight", name), SHAPE(n),
				    (struct init){ .kind = t.shift > 0 ? INIT_ZERO : INIT_ONE });
	if (t.gamma)
		t.gamma->of_norm = true;
	return layernorm_add(b->g, x, NULL, &t, NULL);
}

static struct tensor *rotate_heads(const struct decoder_builder *b, struct tensor *const operands[4], int layer,
				   const char *name)
{
	const struct decoder_config *d = b->d;
	const struct decoder_rope *r = &d->rope[d->windowed && d->windowed[layer] ? DECODER_WINDOWED : DECODER_FULL];
	const int64_t length = b->first ? b->c->context : b->c->seq_len;
	const double *stretch = r->original && length > r->original ? r->longer : r->stretch;
	struct rope_attr a = { .heads = b->c->heads,
			       .shared = d->shared,
			       .d = d->head_dim,
			       .seq = b->seq,
			       .rotary = d->turned && !d->turned[layer] ? 0 : r->rotary,
			       .query_scale = d->query_scale,
			       .factor = r->factor };

	for (int64_t i = 0; i < a.rotary / 2; i++)
		a.frequency[i] = pow(r->theta, -2 * (double)i / (double)a.rotary) / (stretch[i] > 0 ? stretch[i] : 1);
	return rope_add(b->g, operands, &a, graph_printf(b->g, "%s.rope", name));
}

/* Attention of a whole batch, or of new positions to a KV cache, between its two projections. */
static struct tensor *add_decoder_attention(const struct decoder_builder *b, struct tensor *x, int layer,
					    const char *name)
{
	const struct decoder_config *d = b->d;
	const int64_t window = d->windowed && d->windowed[layer] ? d->window : 0;
	struct attention_attr attr = {
		.heads = b->c->heads, .seq = b->seq, .window = window < b->seq ? window : 0, .cap = d->score_cap
	};
	struct attention_decode_attr decode = { b->c->heads, d->shared, window, b->c->context, d->score_cap };
	const int64_t of_queries = b->c->heads * d->head_dim, of_keys = d->shared * d->head_dim;
	const char *attended = graph_printf(b->g, "%s.attn", name);
	struct tensor *places = NULL; /* of its own, so that every stage of a pipeline has them */
	const bool fused = d->class->has & DECODER_FUSED;
	const bool biased = d->class->has & DECODER_QKV_BIAS || d->attention_bias;
	struct tensor *qkv[4] = { [3] = b->first };

	if (fused) {
		qkv[0] = add_decoder_linear(b, x, graph_printf(b->g, "%s.qkv_proj", name), of_queries + 2 * of_keys,
					    false);
	} else {
		qkv[0] = add_decoder_linear(b, x, graph_printf(b->g, "%s.q_proj", name), of_queries, biased);
		qkv[0] = add_head_norm(b, qkv[0], graph_printf(b->g, "%s.q_norm", name));
		qkv[1] = add_decoder_linear(b, x, graph_printf(b->g, "%s.k_proj", name), of_keys, biased);
		qkv[1] = add_head_norm(b, qkv[1], graph_printf(b->g, "%s.k_norm", name));
		qkv[2] = add_decoder_linear(b, x, graph_printf(b->g, "%s.v_proj", name), of_keys, biased);
	}
	x = rotate_heads(b, qkv, layer, name);
	if (b->marked)
		places = places_add(b->g, b->marked, graph_printf(b->g, "%s.places", name)).places;
	x = b->first ? attention_decode_add(b->g, x, b->first, &decode, attended)
		     : attention_add(b->g, x, places, &attr, attended);
	return add_decoder_linear(b, x, graph_printf(b->g, "%s.o_proj", name), b->c->width, d->attention_bias);
}

static struct tensor *add_decoder_mlp(const struct decoder_builder *b, struct tensor *x, const char *name)
{
	const struct decoder_config *d = b->d;
	struct tensor *gate, *up = NULL;

	if (d->class->has & DECODER_FUSED) {
		gate = add_decoder_linear(b, x, graph_printf(b->g, "%s.gate_up_proj", name), 2 * d->inner, false);
	} else {
		gate = add_decoder_linear(b, x, graph_printf(b->g, "%s.gate_proj", name), d->inner, d->mlp_bias);
		up = add_decoder_linear(b, x, graph_printf(b->g, "%s.up_proj", name), d->inner, d->mlp_bias);
	}
	return add_decoder_linear(b, glu_add(b->g, gate, up, d->act), graph_printf(b->g, "%s.down_proj", name),
				  b->c->width, d->mlp_bias);
}

/* Adds x and delta without a norm of the sum. */
static struct tensor *add_sum(const struct decoder_builder *b, struct tensor *x, struct tensor *delta)
{
	return delta && !graph_failed(b->g) ? add_add(b->g, x, delta) : x;
}

/* Adds one block. *x: residual stream without delta. delta: output of the previous block, not yet added. Returns this
 * block's output, which the next norm adds. */
static struct tensor *add_decoder_block(const struct decoder_builder *b, int layer, struct tensor **x,
					struct tensor *delta)
{
	const unsigned has = b->d->class->has;
	const bool before = !(has & DECODER_NORM_AFTER), after = has & (DECODER_NORM_AFTER | DECODER_NORM_BOTH);
	const char *h = graph_printf(b->g, "model.layers.%d", layer);
	const char *attention = graph_printf(b->g, "%s.self_attn", h), *mlp = graph_printf(b->g, "%s.mlp", h);
	const char *second = has & DECODER_NORM_BOTH ? "pre_feedforward_layernorm" : "post_attention_layernorm";
	struct tensor *y;

	if (before)
		y = add_decoder_norm(b, *x, delta, graph_printf(b->g, "%s.input_layernorm", h), x);
	else
		y = *x = add_sum(b, *x, delta);
	delta = add_decoder_attention(b, y, layer, attention);
	if (after)
		delta = add_decoder_norm(b, delta, NULL, graph_printf(b->g, "%s.post_attention_layernorm", h), NULL);
	if (before)
		y = add_decoder_norm(b, *x, delta, graph_printf(b->g, "%s.%s", h, second), x);
	else
		y = *x = add_sum(b, *x, delta);
	delta = add_decoder_mlp(b, y, mlp);
	if (after)
		delta = add_decoder_norm(b, delta, NULL, graph_printf(b->g, "%s.post_feedforward_layernorm", h), NULL);
	return delta;
}

/* Refuses what this builder does not compute. */
static int check_decoder(const struct model_config *c, struct err *err)
{
	const struct decoder_config *d = c->decoder;

	if (c->dropout > 0)
		return err_set(err, ERR_USAGE, "--dropout: models of this class are trained without it: omit it");
	if (!(d->class->has & DECODER_SOFT_CAPS) && (d->score_cap > 0 || d->logit_cap > 0))
		return err_set(err, ERR_USAGE,
			       "config.json: %s: soft caps are computed for Gemma 2 alone: choose a model without them",
			       d->score_cap > 0 ? "attn_logit_softcapping" : "final_logit_softcapping");
	return 0;
}

static struct tensor *add_decoder_input(struct graph *g, const char *name, struct shape shape)
{
	return graph_tensor(
		g,
		&(struct tensor){
			.name = name, .kind = TENSOR_INPUT, .dtype = DTYPE_I32, .shape = shape, .life = LIFE_MICRO });
}

/* Adds embedding, blocks, final norm and head. With c->decode, evaluation reads one text with a KV cache. */
static int build_decoder(const struct model *m, struct graph *g, const struct model_config *c, int64_t batch,
			 struct err *err)
{
	const bool decode = c->decode && !g->training;
	const struct shape rows = decode ? SHAPE(1, batch) : SHAPE(batch, c->seq_len);
	struct decoder_builder b = { .g = g, .c = c, .d = c->decoder, .seq = rows.dim[1] };
	struct init normal = { .kind = INIT_NORMAL, .scale = INIT_STD };
	struct tensor *tokens, *targets, *table, *head, *x, *delta = NULL;
	int rc = check_decoder(c, err);

	if (rc)
		return rc;
	tokens = add_decoder_input(g, "tokens", rows);
	targets = add_decoder_input(g, "targets", rows);
	if (c->documents && !decode) {
		b.marked = tokens;
		tokens = places_add(g, tokens, "tokens.places").tokens;
	}
	b.first = decode ? add_decoder_input(g, "first", SHAPE(1)) : NULL;
	head = table = add_decoder_param(&b, "model.embed_tokens.weight", SHAPE(c->vocab, c->width), normal);
	x = embed_add(g, tokens, table, NULL, b.d->embed_scale);
	for (int i = 0; i < c->layers && !graph_failed(g); i++) {
		g->block = i + 1;
		delta = add_decoder_block(&b, i, &x, delta);
	}
	g->block = 0;
	delta = add_decoder_norm(&b, x, delta, "model.norm", &x);
	if (!c->tied)
		head = add_decoder_param(&b, "lm_head.weight", SHAPE(c->vocab, c->width), normal);
	lmhead_add(g, delta, head, targets,
		   &(struct lmhead_opts){ .logits = c->keep_logits && !g->training,
					  .best = c->keep_best && !g->training,
					  .attr.cap = b.d->logit_cap });
	return graph_failed(g) ? err_set(err, g->err.code, "%s: %s", m->name, g->err.text) : 0;
}

/* The sizes of SmolLM2-135M, for runs without a folder. */
static const struct decoder_config smollm2 = {
	.class = &decoder_classes[0],
	.layers = 30,
	.heads = 9,
	.shared = 3,
	.head_dim = 64,
	.width = 576,
	.inner = 1536,
	.vocab = 49152,
	.context = 8192,
	.tied = true,
	.eps = 1e-5,
	.embed_scale = 1,
	.query_scale = 1,
	.act = { 1, 0 },
	.dtype = DTYPE_BF16,
	.rope = { { .rotary = 64, .theta = 1e5, .factor = 1 } },
};

const struct model model_decoder = {
	.name = "decoder",
	.reads_tokens = true,
	.build = build_decoder,
	.defaults = { .layers = 30,
		      .heads = 9,
		      .width = 576,
		      .context = 8192,
		      .seq_len = 2048,
		      .vocab = 49152,
		      .tied = true,
		      .decoder = &smollm2 },
};
