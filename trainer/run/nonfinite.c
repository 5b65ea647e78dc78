/* SPDX-License-Identifier: Apache-2.0 */
/* nonfinite.c: finds the first non-finite value that a run of a program makes or reads on this rank. */
#include "trainer/run/nonfinite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"

/* Tensors that no node of the compute stream made (parameters, inputs, data of other ranks) are checked where they are
 * first read. */
enum { UNKNOWN, FINITE, SPOILT };

#define PIECE_BYTES ((size_t)1 << 20) /* bytes checked at once */

struct nonfinite_watch {
	const struct prepared *prepared;
	unsigned char *piece;
	const struct program *program;
	unsigned char *known; /* by tensor id of program */
	int most;	      /* tensors of the largest program */
	struct nonfinite first;
};

void nonfinite_free(struct nonfinite_watch *w)
{
	if (!w)
		return;
	free(w->known);
	free(w->piece);
	free(w);
}

struct nonfinite_watch *nonfinite_new(const struct prepared *p)
{
	struct nonfinite_watch *w = mem_zalloc(sizeof(*w));

	for (int i = 0; i < p->n_programs; i++)
		w->most = p->program[i]->graph->n_tensors > w->most ? p->program[i]->graph->n_tensors : w->most;
	w->prepared = p;
	w->known = mem_array((size_t)w->most + 1, 1);
	w->piece = mem_alloc(PIECE_BYTES);
	return w;
}

static bool is_finite(enum dtype t, const void *data, int64_t i, bool *ret_nan)
{
	uint16_t bits;
	double v;

	if (t == DTYPE_BF16 || t == DTYPE_F16) {
		const uint16_t exponent = t == DTYPE_BF16 ? 0x7f80 : 0x7c00, rest = t == DTYPE_BF16 ? 0x7f : 0x3ff;

		memcpy(&bits, (const uint16_t *)data + i, sizeof(bits));
		*ret_nan = bits & rest;
		return (bits & exponent) != exponent;
	}
	v = t == DTYPE_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
	*ret_nan = isnan(v);
	return isfinite(v);
}

/* Returns the index of the first non-finite element; -1: none, or unknown. at: its memory in the backend. */
static int64_t find_nonfinite_element(struct nonfinite_watch *w, const struct tensor *t, const void *at, bool *ret_nan)
{
	const int64_t n = t && at && !t->opaque_bytes && dtype_is_float(t->dtype) ? shape_count(&t->shape) : 0;
	const size_t each = n ? dtype_bytes(t->dtype) : 1;
	const int64_t most = (int64_t)(PIECE_BYTES / each);
	struct err ignored = ERR_INIT;

	for (int64_t begin = 0; begin < n; begin += most) {
		const int64_t count = n - begin < most ? n - begin : most;

		if (prepared_copy(w->prepared, w->piece, (const char *)at + (size_t)begin * each, (size_t)count * each,
				  &ignored))
			return -1;
		for (int64_t i = 0; i < count; i++)
			if (!is_finite(t->dtype, w->piece, i, ret_nan))
				return begin + i;
	}
	return -1;
}

static bool is_copy_node(const struct node *n)
{
	return n->op->id == OP_cast || n->op->id == OP_pack;
}

/* Returns the sample of an element; -1: none. Rows of activations and inputs are divided evenly among samples. */
static int64_t find_sample_index(const struct nonfinite_watch *w, const struct tensor *t, int64_t element)
{
	const int64_t rows = t->shape.ndim ? t->shape.dim[0] : 0, micro = w->program->micro;
	const bool dealt = (t->kind == TENSOR_ACT || t->kind == TENSOR_INPUT) && micro > 0 && rows % micro == 0;

	if (!dealt || rows < micro ||
	    (t->producer && is_copy_node(t->producer) && t->producer->in[0]->kind == TENSOR_PARAM))
		return -1;
	return element / (shape_count(&t->shape) / micro);
}

static void note_first_nonfinite(struct nonfinite_watch *w, const struct node *n, enum nonfinite_kind kind, int slot)
{
	w->first.kind = kind;
	w->first.backward = n->phase == PHASE_BACKWARD;
	w->first.micro = slot;
	w->first.sample = -1;
	snprintf(w->first.node, sizeof(w->first.node), "%s", n->name);
	snprintf(w->first.op, sizeof(w->first.op), "%s", n->op->name);
}

static bool is_made_on_compute(const struct tensor *t)
{
	return t->producer && t->producer->stream == STREAM_COMPUTE && !t->producer->op->collective;
}

/* Checks the operands of n that no node of this stream made; returns true if one is not finite. */
static bool reads_nonfinite(struct nonfinite_watch *w, const struct node *n, int slot, const struct kernel_args *a)
{
	for (int i = 0; i < n->n_in; i++) {
		const struct tensor *t = n->in[i];
		bool held, is_nan = false;
		int64_t at;

		if (!t || w->known[t->id] == FINITE || is_made_on_compute(t))
			continue;
		at = find_nonfinite_element(w, t, a->in[i], &is_nan);
		w->known[t->id] = at < 0 ? FINITE : SPOILT;
		if (at < 0)
			continue;
		held = t->kind == TENSOR_PARAM || t->kind == TENSOR_INPUT || t->kind == TENSOR_STAT;
		note_first_nonfinite(w, n, held ? NONFINITE_READ : NONFINITE_FOREIGN, slot);
		w->first.is_nan = is_nan;
		w->first.sample = find_sample_index(w, t, at);
		snprintf(w->first.tensor, sizeof(w->first.tensor), "%s", t->name);
		return true;
	}
	return false;
}

/* Callback after each node: looks for the first non-finite value in its results. */
static void check_node_outputs(void *user, const struct node *n, int slot, const struct kernel_args *a)
{
	struct nonfinite_watch *w = user;

	if (w->first.kind != NONFINITE_NONE || (n->phase != PHASE_FORWARD && n->phase != PHASE_BACKWARD) ||
	    n->op->collective || n->op == &op_watch) /* its output is undefined in most steps */
		return;
	if (is_copy_node(n) && reads_nonfinite(w, n, slot, a)) /* its result may be in an opaque layout */
		return;
	for (int i = 0; i < n->n_out; i++) {
		bool is_nan = false;
		const int64_t at = find_nonfinite_element(w, n->out[i], a->out[i], &is_nan);

		if (n->out[i])
			w->known[n->out[i]->id] = at < 0 ? FINITE : SPOILT;
		if (at < 0)
			continue;
		if (!reads_nonfinite(w, n, slot, a)) {
			note_first_nonfinite(w, n, NONFINITE_MADE, slot);
			w->first.is_nan = is_nan;
			w->first.sample = find_sample_index(w, n->out[i], at);
		}
		return;
	}
}

struct exec_look nonfinite_look(struct nonfinite_watch *w, const struct program *p)
{
	w->program = p;
	memset(w->known, UNKNOWN, (size_t)w->most + 1);
	return (struct exec_look){ check_node_outputs, w };
}

const struct nonfinite *nonfinite_first(const struct nonfinite_watch *w)
{
	return &w->first;
}
