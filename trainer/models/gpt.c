/* SPDX-License-Identifier: Apache-2.0 */
/* gpt.c: language models of the GPT-2 family (Radford et al. 2019): pre-norm transformer blocks, learned positions,
 * tanh GELU. Names and initial values are those of Hugging Face's GPT2LMHeadModel; weights here are [out, in]. The
 * large models have the sizes of GPT-3's table and of later scaling studies, with an untied classifier. */
#include <math.h>

#include "trainer/models/models.h"
#include "trainer/ops/attention_decode/attention_decode.h"
#include "trainer/ops/attention/attention.h"
#include "trainer/ops/embed/embed.h"
#include "trainer/ops/gelu/gelu.h"
#include "trainer/ops/layernorm/layernorm.h"
#include "trainer/ops/linear/linear.h"
#include "trainer/ops/lmhead/lmhead.h"

#define INIT_STD 0.02

/* State of the builder. */
struct gpt_builder {
	struct graph *g;
	const struct model_config *c;
	struct tensor *first; /* decoding: first new position */
};

static struct tensor *add_gpt_param(const struct gpt_builder *b, const char *name, struct shape shape, struct init init)
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

/* x w^T + b. std: standard deviation of the initial weights. */
static struct tensor *add_gpt_linear(const struct gpt_builder *b, struct tensor *x, const char *name, int64_t out,
				     double std)
{
	struct init normal = { .kind = INIT_NORMAL, .scale = std }, zero = { .kind = INIT_ZERO };
	struct tensor *w, *bias;

	if (graph_failed(b->g))
		return NULL;
	w = add_gpt_param(b, graph_printf(b->g, "%s.weight", name), SHAPE(out, x->shape.dim[1]), normal);
	bias = add_gpt_param(b, graph_printf(b->g, "%s.bias", name), SHAPE(out), zero);
	return linear_add_low(b->g, x, w, bias);
}

/* Layer norm of x + delta; *x becomes the sum. */
static struct tensor *add_gpt_norm(const struct gpt_builder *b, struct tensor **x, struct tensor *delta,
				   const char *name)
{
	struct init one = { .kind = INIT_ONE }, zero = { .kind = INIT_ZERO };
	struct layernorm_tensors t = { .eps = LAYERNORM_EPS };

	if (graph_failed(b->g))
		return NULL;
	t.gamma = add_gpt_param(b, graph_printf(b->g, "%s.weight", name), SHAPE(b->c->width), one);
	t.beta = add_gpt_param(b, graph_printf(b->g, "%s.bias", name), SHAPE(b->c->width), zero);
	if (t.gamma && t.beta)
		t.gamma->of_norm = t.beta->of_norm = true;
	return layernorm_add(b->g, *x, delta, &t, x);
}

static struct tensor *add_gpt_dropout(const struct gpt_builder *b, struct tensor *x, const char *name)
{
	return dropout_add(b->g, x, b->c->dropout, b->c->seq_len * b->c->width, name);
}

static struct tensor *add_gpt_attention(const struct gpt_builder *b, struct tensor *qkv, const char *name)
{
	struct attention_attr attr = { .heads = b->c->heads, .seq = b->c->seq_len, .dropout.p = b->c->dropout };
	struct attention_decode_attr decode = { b->c->heads, b->c->heads, 0, b->c->context, 0 };

	return b->first ? attention_decode_add(b->g, qkv, b->first, &decode, name)
			: attention_add(b->g, qkv, NULL, &attr, name);
}

/* Adds one block. *x: residual stream without delta. delta: output of the previous block, not yet added. Returns this
 * block's output, which the next norm adds. */
static struct tensor *add_gpt_block(const struct gpt_builder *b, int layer, struct tensor **x, struct tensor *delta)
{
	double residual_std = INIT_STD / sqrt(2.0 * (double)b->c->layers);
	const char *h = graph_printf(b->g, "transformer.h.%d", layer);
	struct tensor *y = add_gpt_norm(b, x, delta, graph_printf(b->g, "%s.ln_1", h));

	y = add_gpt_linear(b, y, graph_printf(b->g, "%s.attn.c_attn", h), 3 * b->c->width, INIT_STD);
	y = add_gpt_attention(b, y, graph_printf(b->g, "%s.attn", h));
	y = add_gpt_linear(b, y, graph_printf(b->g, "%s.attn.c_proj", h), b->c->width, residual_std);
	y = add_gpt_dropout(b, y, graph_printf(b->g, "%s.attn.drop", h));
	y = add_gpt_norm(b, x, y, graph_printf(b->g, "%s.ln_2", h));
	y = add_gpt_linear(b, y, graph_printf(b->g, "%s.mlp.c_fc", h), 4 * b->c->width, INIT_STD);
	y = add_gpt_linear(b, gelu_add(b->g, y), graph_printf(b->g, "%s.mlp.c_proj", h), b->c->width, residual_std);
	return add_gpt_dropout(b, y, graph_printf(b->g, "%s.mlp.drop", h));
}

static struct tensor *add_gpt_input(struct graph *g, const char *name, enum dtype dtype, struct shape shape)
{
	return graph_tensor(
		g, &(struct tensor){
			   .name = name, .kind = TENSOR_INPUT, .dtype = dtype, .shape = shape, .life = LIFE_MICRO });
}

/* Adds embedding, blocks, final norm and head. With c->decode, evaluation reads one text with a KV cache. */
static int build_gpt(const struct model *m, struct graph *g, const struct model_config *c, int64_t batch,
		     struct err *err)
{
	struct gpt_builder b = { .g = g, .c = c };
	struct init normal = { .kind = INIT_NORMAL, .scale = INIT_STD };
	bool decode = c->decode && !g->training;
	struct shape rows = decode ? SHAPE(1, batch) : SHAPE(batch, c->seq_len);
	struct tensor *tokens = add_gpt_input(g, "tokens", DTYPE_I32, rows),
		      *targets = add_gpt_input(g, "targets", DTYPE_I32, rows);
	struct tensor *wte = add_gpt_param(&b, "transformer.wte.weight", SHAPE(c->vocab, c->width), normal);
	struct tensor *wpe = add_gpt_param(&b, "transformer.wpe.weight", SHAPE(c->context, c->width), normal);
	struct tensor *where = decode ? add_gpt_input(g, "positions", DTYPE_F32, SHAPE(batch, c->width)) : wpe;
	struct tensor *x = add_gpt_dropout(&b, embed_add(g, tokens, wte, where, 1), "transformer.drop"), *delta = NULL,
		      *head = wte;

	b.first = decode ? add_gpt_input(g, "first", DTYPE_I32, SHAPE(1)) : NULL;
	for (int i = 0; i < c->layers && !graph_failed(g); i++) {
		g->block = i + 1;
		delta = add_gpt_block(&b, i, &x, delta);
	}
	g->block = 0;
	delta = add_gpt_norm(&b, &x, delta, "transformer.ln_f");
	if (!c->tied)
		head = add_gpt_param(&b, "lm_head.weight", SHAPE(c->vocab, c->width), normal);
	lmhead_add(g, delta, head, targets, &(struct lmhead_opts){ .logits = c->keep_logits && !g->training });
	return graph_failed(g) ? err_set(err, g->err.code, "%s: %s", m->name, g->err.text) : 0;
}

#define GPT(n_layers, n_heads, n_width, is_tied)                                                                       \
	.reads_tokens = true, .build = build_gpt,                                                                      \
	.defaults = { .layers = (n_layers),                                                                            \
		      .heads = (n_heads),                                                                              \
		      .width = (n_width),                                                                              \
		      .context = 1024,                                                                                 \
		      .seq_len = 1024,                                                                                 \
		      .vocab = 50257,                                                                                  \
		      .tied = (is_tied) }

const struct model model_gpt2_124m = { .name = "gpt2-124m", GPT(12, 12, 768, true) };
const struct model model_gpt2_350m = { .name = "gpt2-350m", GPT(24, 16, 1024, true) };
const struct model model_gpt2_774m = { .name = "gpt2-774m", GPT(36, 20, 1280, true) };
const struct model model_gpt2_1558m = { .name = "gpt2-1558m", GPT(48, 25, 1600, true) };
const struct model model_gpt_2_7b = { .name = "gpt-2.7b", GPT(32, 32, 2560, false) };
const struct model model_gpt_6_7b = { .name = "gpt-6.7b", GPT(32, 32, 4096, false) };
const struct model model_gpt_13b = { .name = "gpt-13b", GPT(40, 40, 5120, false) };
const struct model model_gpt_34b = { .name = "gpt-34b", GPT(48, 64, 7680, false) };
const struct model model_gpt_81b = { .name = "gpt-81b", GPT(80, 64, 9216, false) };
const struct model model_gpt_175b = { .name = "gpt-175b", GPT(96, 96, 12288, false) };
const struct model model_gpt_1t = { .name = "gpt-1t", GPT(128, 160, 25600, false) };
