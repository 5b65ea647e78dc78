/* SPDX-License-Identifier: Apache-2.0 */
/* decoder.h: decoder-only language models as Hugging Face's transformers has them: what a class has (decoder_classes),
 * and what the config.json of one model says (decoder_config, read by trainer/weights/decoder_file.c). */
#ifndef DPT_MODELS_DECODER_H
#define DPT_MODELS_DECODER_H

#include "trainer/ops/glu/glu.h"
#include "trainer/ops/rope/rope.h"

/* What sets a class apart from Llama. */
enum {
	DECODER_QKV_BIAS = 1 << 0,   /* query, key and value have biases, without a key that says so */
	DECODER_HEAD_NORM = 1 << 1,  /* RMS norm of each query and key head */
	DECODER_FLAT_NORM = 1 << 2,  /* RMS norm of all queries, and of all keys, of a position */
	DECODER_NORM_AFTER = 1 << 3, /* attention and MLP are normalised after, not before */
	DECODER_NORM_BOTH = 1 << 4,  /* before and after */
	DECODER_GEMMA = 1 << 5,	     /* gains are 1 + weight; embeddings are scaled by the root of the width */
	DECODER_FUSED = 1 << 6,	     /* qkv_proj, gate_up_proj */
	DECODER_BIASES = 1 << 7,     /* attention_bias; with DECODER_MLP_BIAS mlp_bias too */
	DECODER_MLP_BIAS = 1 << 8,
	DECODER_QUERY_SCALAR = 1 << 9, /* query_pre_attn_scalar in place of head_dim */
	DECODER_SOFT_CAPS = 1 << 10,
	DECODER_GELU = 1 << 11,	      /* activation when no key says so */
	DECODER_SKIPS_ROPE = 1 << 12, /* no_rope_layers */
};

/* Windows: which layers attend to the last sliding_window positions alone, when layer_types does not say. */
enum decoder_windows {
	DECODER_WINDOW_NONE,
	DECODER_WINDOW_ALL,
	DECODER_WINDOW_SWITCHED /* use_sliding_window */,
	DECODER_WINDOW_PATTERN /* all but every n-th */
};

struct decoder_class {
	const char *architecture;
	unsigned has;
	enum decoder_windows windows;
	bool tied;			/* tie_word_embeddings when absent; so on */
	double eps, theta, local_theta; /* local_theta: of layers with a window; 0: the same */
	int64_t shared, head_dim;	/* 0: heads; width / heads */
	int64_t window, pattern;
};

extern const struct decoder_class decoder_classes[];
extern const int decoder_class_count;

/* Frequencies of one kind of layer: pair i has theta^(-2i/rotary) / stretch[i]. */
struct decoder_rope {
	char type[12]; /* of the scaling, as in config.json: "default", "linear", "llama3", "longrope" or "su", "yarn"
			*/
	int64_t rotary;
	double theta, factor;
	double stretch[ROPE_PAIRS_MAX]; /* 0: 1 */
	double longer[ROPE_PAIRS_MAX];	/* in place of stretch for sequences of more than `original` positions */
	int64_t original;		/* 0: stretch serves every length */
	double yarn;			/* yarn's factor; 0: another type, or not with its usual constants */
	int64_t yarn_context;		/* the context that it stretches */
};

enum { DECODER_FULL, DECODER_WINDOWED, DECODER_KINDS };

/* LoRA (Hu et al. 2021): y = x W^T + b + factor (x A^T) B^T. Only A [rank, in] and B [out, rank] are trained; they are
 * named as in PEFT's files: DECODER_ADAPTER, the module's name, ".lora_A.weight" or ".lora_B.weight". */
#define DECODER_ADAPTER "base_model.model."
struct decoder_lora {
	int64_t rank; /* 0: no LoRA */
	double alpha;
	bool rooted;	  /* factor is alpha / sqrt(rank), not alpha / rank */
	unsigned targets; /* bit set, by place in decoder_targets */
};

/* Last parts of the names of linear layers, "q_proj" first; NULL ends the list. */
extern const char *const decoder_targets[];
unsigned decoder_linears(const struct decoder_class *class); /* the targets that a class has */
double decoder_lora_factor(const struct decoder_lora *l);

struct decoder_config {
	const struct decoder_class *class;
	int64_t layers, heads, shared, head_dim, width, inner, vocab, context;
	bool tied, attention_bias, mlp_bias;
	double eps, embed_scale, query_scale, score_cap, logit_cap; /* caps: 0: none */
	struct glu_attr act;
	int64_t window;
	struct decoder_rope rope[DECODER_KINDS];
	const unsigned char *windowed, *turned; /* [layers]; NULL: none has a window, all have RoPE */
	int dtype;				/* enum dtype of the weights in the folder */
	const char *json;			/* config.json as it is; NULL: none */
	size_t json_bytes;
	const char *folder; /* it is in; NULL: none */
	struct decoder_lora lora;
};

#endif
