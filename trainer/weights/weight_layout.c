/* SPDX-License-Identifier: Apache-2.0 */
/* weight_layout.c: converts names and element orders of other programs' files. */
#include "trainer/weights/weight_layout.h"

#include "trainer/ops/cast/float16.h"

#define PREFIX "transformer."
#define TABLE PREFIX "wte.weight"
#define DECODER_TABLE "model.embed_tokens.weight"
#define HEAD "lm_head.weight"
#define TILE 32

static bool name_ends_with(const char *name, const char *tail)
{
	size_t n = strlen(name), k = strlen(tail);

	return n >= k && !strcmp(name + n - k, tail);
}

static bool is_conv(const struct tensor *t)
{
	return t->shape.ndim == 4;
}

/* Weights of GPT-2's Conv1D, which files store as [in, out]. */
static bool is_gpt2_conv1d(const struct tensor *t)
{
	return t->shape.ndim == 2 && !strncmp(t->name, PREFIX "h.", strlen(PREFIX "h.")) &&
	       (name_ends_with(t->name, ".c_attn.weight") || name_ends_with(t->name, ".c_proj.weight") ||
		name_ends_with(t->name, ".c_fc.weight"));
}

bool layout_differs(const struct tensor *t)
{
	return is_conv(t) || is_gpt2_conv1d(t);
}

int64_t layout_dim(const struct tensor *t, int i)
{
	static const int from[] = { 0, 3, 1, 2 };

	if (is_gpt2_conv1d(t))
		return t->shape.dim[1 - i];
	return t->shape.dim[is_conv(t) ? from[i] : i];
}

bool layout_same_shape(const struct tensor *t, const struct st_tensor *f)
{
	if (f->ndim != t->shape.ndim)
		return false;
	for (int i = 0; i < f->ndim; i++)
		if (f->dim[i] != layout_dim(t, i))
			return false;
	return true;
}

const struct st_tensor *layout_find(const struct safetensors *s, const char *name)
{
	const struct st_tensor *f = safetensors_find(s, name);

	if (!f && !strncmp(name, PREFIX, strlen(PREFIX)))
		f = safetensors_find(s, name + strlen(PREFIX));
	return f;
}

struct tensor *layout_owner(const struct graph *g, const char *file_name)
{
	char name[256];
	struct tensor *t = graph_find(g, file_name);

	if (t || strlen(file_name) >= sizeof(name) - strlen(PREFIX))
		return t;
	memcpy(name, PREFIX, strlen(PREFIX));
	memcpy(name + strlen(PREFIX), file_name, strlen(file_name) + 1);
	return graph_find(g, name);
}

bool layout_repeats_table(const struct safetensors *s)
{
	const struct st_tensor *head = safetensors_find(s, HEAD), *table = layout_find(s, TABLE);

	if (!table)
		table = safetensors_find(s, DECODER_TABLE);

	return head && table && head->bytes == table->bytes && head->dtype == table->dtype &&
	       !memcmp(head->data, table->data, head->bytes);
}

bool layout_ignorable(const struct graph *g, const struct safetensors *s, const char *file_name)
{
	bool words = graph_find(g, TABLE) || graph_find(g, DECODER_TABLE);

	if (name_ends_with(file_name, "num_batches_tracked") || name_ends_with(file_name, ".rotary_emb.inv_freq"))
		return true;
	if (words && !strcmp(file_name, HEAD))
		return layout_repeats_table(s);
	return words && (name_ends_with(file_name, ".attn.bias") || name_ends_with(file_name, ".attn.masked_bias"));
}

struct layout_rows layout_rows(const struct tensor *t)
{
	const int64_t n = t->shape.ndim ? t->shape.dim[0] : 1;

	return (struct layout_rows){ n, n ? shape_count(&t->shape) / n : 0 };
}

/* Other tensors are read from the file row by row. */
size_t layout_scratch(const struct tensor *t, int64_t rows)
{
	return (size_t)(is_gpt2_conv1d(t) ? rows * TILE : layout_rows(t).each);
}

/* Transposes TILE rows of the file at a time, so that each cache line is written once. */
static void transpose_from_file(const struct tensor *t, const struct st_tensor *f, const struct layout_piece *p)
{
	const int64_t out = t->shape.dim[0], in = t->shape.dim[1], rows = p->end - p->begin;

	for (int64_t first = 0; first < in; first += TILE) {
		const int64_t n = in - first < TILE ? in - first : TILE;

		for (int64_t i = 0; i < n; i++)
			safetensors_f64(f, (first + i) * out + p->begin, rows, p->scratch + i * rows);
		for (int64_t k = 0; k < rows; k++)
			for (int64_t i = 0; i < n; i++)
				float_put(p->to, t->dtype, k * in + first + i, p->scratch[i * rows + k]);
	}
}

void layout_from_file(const struct tensor *t, const struct st_tensor *f, const struct layout_piece *p)
{
	const int64_t n = layout_rows(t).each;
	const int64_t area = is_conv(t) ? t->shape.dim[1] * t->shape.dim[2] : 1, c = is_conv(t) ? t->shape.dim[3] : 1;

	if (is_gpt2_conv1d(t)) {
		transpose_from_file(t, f, p);
		return;
	}
	for (int64_t k = p->begin; k < p->end; k++) {
		const int64_t to = (k - p->begin) * n;

		safetensors_f64(f, k * n, n, p->scratch);
		for (int64_t i = 0; i < n; i++)
			float_put(p->to, t->dtype, to + (is_conv(t) ? i % area * c + i / area : i), p->scratch[i]);
	}
}

static void transpose_to_file(const struct tensor *t, const char *from, char *to, size_t each)
{
	size_t out = (size_t)t->shape.dim[0], in = (size_t)t->shape.dim[1];

	for (size_t first = 0; first < out; first += TILE)
		for (size_t i = 0; i < in; i++)
			for (size_t k = first; k < first + TILE && k < out; k++)
				memcpy(to + (i * out + k) * each, from + (k * in + i) * each, each);
}

void layout_to_file(const struct tensor *t, const void *from, void *to)
{
	size_t each = dtype_bytes(t->dtype), area, c;
	const char *in = from;
	char *out = to;

	if (is_gpt2_conv1d(t)) {
		transpose_to_file(t, from, to, each);
		return;
	}
	area = (size_t)(t->shape.dim[1] * t->shape.dim[2]);
	c = (size_t)t->shape.dim[3];
	for (int64_t k = 0; k < t->shape.dim[0]; k++, in += area * c * each, out += area * c * each)
		for (size_t p = 0; p < area; p++)
			for (size_t i = 0; i < c; i++)
				memcpy(out + (i * area + p) * each, in + (p * c + i) * each, each);
}
