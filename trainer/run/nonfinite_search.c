/* nonfinite_search.c: repeats a step while every rank checks its own nodes; the lowest rank whose non-finite value did
 * not come from another rank is named. */
#include "trainer/run/nonfinite_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/ops/ops.h"

/* ---- one run of a program: what is known of each tensor's values ----
 *
 * Tensors that no node of the compute stream made (parameters, inputs, data of other ranks) are checked where they are
 * first read. */

enum nonfinite_kind {
	NONFINITE_NONE,	   /* every result was finite */
	NONFINITE_FOREIGN, /* the first one came from another rank */
	NONFINITE_MADE,	   /* a node made it from finite operands */
	NONFINITE_READ,	   /* a node read it from a parameter or the inputs */
};

struct nonfinite {
	enum nonfinite_kind kind;
	char node[128], op[32], tensor[128]; /* tensor: where it was read; "" */
	bool backward, is_nan;
	int64_t sample; /* of this rank's micro-batch, from 0; -1: of no single sample */
	int64_t micro;
};

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

static void nonfinite_free(struct nonfinite_watch *w)
{
	if (!w)
		return;
	free(w->known);
	free(w->piece);
	free(w);
}

/* For programs of p, which is borrowed; NULL: out of memory. */
static struct nonfinite_watch *nonfinite_new(const struct prepared *p)
{
	struct nonfinite_watch *w = calloc(1, sizeof(*w));

	for (int i = 0; w && i < p->n_programs; i++)
		w->most = p->program[i]->graph->n_tensors > w->most ? p->program[i]->graph->n_tensors : w->most;
	if (!w)
		return NULL;
	w->prepared = p;
	w->known = calloc((size_t)w->most + 1, 1);
	w->piece = malloc(PIECE_BYTES);
	if (!w->known || !w->piece) {
		nonfinite_free(w);
		return NULL;
	}
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

static const struct nonfinite *nonfinite_first(const struct nonfinite_watch *w)
{
	return &w->first;
}

/* ---- all ranks ---- */

/* Skipped steps in a row before the run fails. */
#define IN_VAIN_MAX 10

struct nonfinite_finding { /* of one rank, as sent to the others */
	int kind; /* enum nonfinite_kind */
	char text[500];
};

/* Returns the index in the set of a sample of this rank's micro-batch; -1: unknown. */
static int64_t sample_number(const struct engine *e, const struct step_result *r, const struct nonfinite *f)
{
	const struct sampler *s = &e->course.train;
	const struct range own = sampler_micro(s, r->in_epoch - 1, rank_share(&e->rank), 0);

	if (f->sample < 0 || own.begin + f->sample >= own.end || sampler_micros(s, r->in_epoch - 1) > 1)
		return -1;
	return train_schedule_sample(&e->course, r->epoch - 1, own.begin + f->sample);
}

static void describe_sample(const struct engine *e, const struct step_result *r, const struct nonfinite *f, char *text,
			    size_t n)
{
	const int64_t number = sample_number(e, r, f);

	text[0] = '\0';
	if (number >= 0)
		snprintf(text, n, ", in sample %lld of its batch (number %lld of the set)", (long long)f->sample,
			 (long long)number);
	else if (f->sample >= 0)
		snprintf(text, n, ", in sample %lld of micro-batch %lld", (long long)f->sample, (long long)f->micro);
}

static void describe_finding(const struct engine *e, const struct step_result *r, const struct nonfinite *f,
			     struct nonfinite_finding *ret)
{
	const char *what = f->is_nan ? "nan" : "an infinite number";
	char sample[120];

	ret->kind = f->kind;
	describe_sample(e, r, f, sample, sizeof(sample));
	if (f->kind == NONFINITE_READ)
		snprintf(ret->text, sizeof(ret->text), "%s hold%s %s on rank %d%s, which %s (%s, %s) reads first",
			 f->tensor, f->tensor[strlen(f->tensor) - 1] == 's' ? "" : "s", what, e->rank.seat->rank,
			 sample, f->node, f->op, f->backward ? "backward" : "forward");
	else
		snprintf(ret->text, sizeof(ret->text), "%s (%s, %s) was the first to make %s of finite numbers, on "
			 "rank %d%s", f->node, f->op, f->backward ? "backward" : "forward", what, e->rank.seat->rank,
			 sample);
}

/* Takes the finding of the lowest rank that made or read the value itself; *ret stays empty when there is none. */
static int gather_findings(const struct engine *e, const struct nonfinite_finding *own, char *ret, size_t n,
			   struct err *err)
{
	struct comm *c = rank_comm(&e->rank);
	struct nonfinite_finding *all = calloc((size_t)c->world, sizeof(*all));
	int rc;

	if (!all)
		return err_nomem(err, "findings of the ranks");
	all[c->rank] = *own;
	rc = c->ops->all_gather(c, all, (int64_t)sizeof(*all), err);
	for (int k = c->world - 1; !rc && k >= 0; k--)
		if (all[k].kind == NONFINITE_MADE || all[k].kind == NONFINITE_READ)
			snprintf(ret, n, "%s", all[k].text);
	free(all);
	return rc;
}

/* Repeats the step with its batch loaded again. */
static int rerun_step(struct engine *e, const struct step_result *r, struct nonfinite_watch *w, struct err *err)
{
	struct step_result ignored;
	int rc;

	loader_close(e->loader);
	e->loader = NULL;
	e->step = r->step - 1;
	rc = engine_begin(e, err);
	e->suspects = w;
	if (!rc)
		rc = step_run(e, &ignored, err);
	e->suspects = NULL;
	return rc < 0 ? rc : 0;
}

/* Describes the node that made the first non-finite value; "": unknown, as all values are finite this time. */
static int find_nonfinite_node(struct engine *e, const struct step_result *r, char *ret, size_t n, struct err *err)
{
	struct nonfinite_watch *w;
	struct nonfinite_finding own = { .kind = NONFINITE_NONE };
	int rc;

	ret[0] = '\0';
	w = nonfinite_new(&e->prepared);
	if (!w)
		return err_nomem(err, "search of non-finite values");
	rc = rerun_step(e, r, w, err);
	if (!rc && nonfinite_first(w)->kind != NONFINITE_NONE)
		describe_finding(e, r, nonfinite_first(w), &own);
	if (!rc)
		rc = gather_findings(e, &own, ret, n, err);
	nonfinite_free(w);
	return rc;
}

/* Finds the lowest rank whose own loss is not finite; -1: none, or the loss is on another stage. */
static int rank_of_loss(const struct engine *e, const struct step_result *r, int *ret, struct err *err)
{
	struct comm *c = rank_comm(&e->rank);
	double *loss = calloc((size_t)c->world, sizeof(*loss));
	int rc;

	*ret = -1;
	if (!loss)
		return err_nomem(err, "losses");
	loss[c->rank] = r->own_sum;
	rc = c->ops->all_gather(c, loss, sizeof(*loss), err);
	for (int k = c->world - 1; !rc && k >= 0; k--)
		*ret = isfinite(loss[k]) ? *ret : k;
	free(loss);
	return rc;
}

static int explain_loss(struct engine *e, const struct step_result *r, struct err *err)
{
	char who[500];
	int rank, rc = rank_of_loss(e, r, &rank, err);

	if (!rc)
		rc = find_nonfinite_node(e, r, who, sizeof(who), err);
	if (rc)
		return rc;
	return err_set(
		err, ERR_CANCELED,
		"the loss is %s at step %lld, in the samples of rank %d of batch %lld of epoch %lld; the step "
		"changed nothing.%s%s%s Try a lower --lr or a warm-up, and check the data for values that "
		"are not finite",
		isnan(r->loss) ? "nan" : "infinite", (long long)r->step, rank, (long long)r->in_epoch,
		(long long)r->epoch, *who ? " In a repeat of the step, " : "", who, *who ? "." : "");
}

static int explain_gradients(struct engine *e, const struct step_result *r, struct err *err)
{
	char who[500];
	int rc = find_nonfinite_node(e, r, who, sizeof(who), err);

	if (rc)
		return rc;
	return err_set(
		err, ERR_CANCELED,
		"the gradients were not finite in %lld steps in a row, the last of them step %lld (epoch %lld), "
		"loss %g; nothing was changed by them.%s%s%s Try a lower --lr, --clip-grad-norm or another "
		"--precision", (long long)r->in_a_row, (long long)r->step, (long long)r->epoch, r->loss,
		*who ? " In a repeat of the step, " : "", who, *who ? "." : "");
}

/* Counts the skipped steps in a row that a lower loss scale would not have repaired: their loss itself is not
 * finite, or their scale was below 1 already. */
static int64_t count_in_vain(struct engine *e, const struct step_result *r)
{
	if (!e->prepared.opts.optimizer.scaling)
		return r->in_a_row;
	if (r->in_a_row == 0)
		e->in_vain = 0;
	else if (!isfinite(r->loss) || r->loss_scale < 1)
		e->in_vain++;
	return e->in_vain;
}

int nonfinite_search_check(struct engine *e, const struct step_result *r, struct err *err)
{
	const bool scaling = e->prepared.opts.optimizer.scaling, ends = count_in_vain(e, r) >= IN_VAIN_MAX;

	if (!isfinite(r->loss) && (ends || !scaling))
		return explain_loss(e, r, err);
	return ends ? explain_gradients(e, r, err) : 0;
}
