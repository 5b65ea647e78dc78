/* SPDX-License-Identifier: Apache-2.0 */
/* convs.c: the convolutions of a module, one for all nodes with the same shape, and the choice of their
 * implementations. The candidates are timed on operands that the private caches no longer hold. */
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/cpu_conv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/backends/cpu/cpu_pick.h"
#include "trainer/ops/conv/conv.h"
#include "trainer/ops/ops.h"

/* Operations of one timed run, about: a part of a large batch represents the whole. A gradient of weights needs a
 * larger part: its sums over threads and the layout of its result cost the same for any batch. */
#define TRIAL_FLOPS 1e9
#define TRIAL_FLOPS_WGRAD 2e9

static void make_conv_key(char *key, const struct cpu_module *m, const struct dnn_conv_spec *s, int threads)
{
	static const char *const passes[] = { "fwd", "dgrad", "wgrad" };
	char what[160];

	snprintf(what, sizeof(what), "%s%s %s %lldx%lldx%lldx%lld k%lld r%lld s%lld p%lld",
		 m->direct ? "direct " : "", passes[s->pass],
		 s->bf16 ? "bf16" : "f32", (long long)s->n, (long long)s->h, (long long)s->w, (long long)s->c,
		 (long long)s->k, (long long)s->kernel, (long long)s->stride, (long long)s->pad);
	cpu_pick_key(key, m, threads, what);
}

/* The buffers of one convolution. Each run uses the next of several copies of its operands. As in a training step, the
 * operands have left the caches since their last use; code and workspace, which nodes of one shape share, have not. */
struct conv_trial {
	char *memory; /* the workspace, then the copies */
	size_t a, b, out, copy_bytes, copies, next, workspace;
	struct cpu_conv *list[PICK_CANDIDATES];
	struct dnn *dnn;
	int threads;
};

/* Bytes of all copies. A step of small nodes exceeds the private caches, but not the shared one; a step of nodes as
 * large as this exceeds both. */
#define COPIES_BYTES ((size_t)8 << 20)
#define LARGE_BYTES ((size_t)1 << 20)
#define COPIES_BYTES_LARGE ((size_t)32 << 20)

static size_t round_to_pages(size_t bytes)
{
	return round_up_bytes(bytes, 4096);
}

static int open_conv_trial(struct conv_trial *t, struct cpu_picks *picks, const struct dnn_conv_spec *s, size_t packed,
			   size_t workspace)
{
	size_t item = s->bf16 ? 2 : 4;
	size_t x = round_to_pages((size_t)(s->n * s->h * s->w * s->c) * item),
	       y = round_to_pages((size_t)(s->n * s->p * s->q * s->k) * item);
	size_t w = round_to_pages((size_t)(s->k * s->kernel * s->kernel * s->c) * 4);

	packed = round_to_pages(packed > w ? packed : w);
	t->a = 0;
	t->b = s->pass == DNN_DGRAD ? y : x;
	t->out = t->b + (s->pass == DNN_WGRAD ? y : packed);
	t->copy_bytes = t->out + (s->pass == DNN_FORWARD ? y : s->pass == DNN_DGRAD ? x : packed);
	t->copies = 1 + (t->copy_bytes < LARGE_BYTES ? COPIES_BYTES : COPIES_BYTES_LARGE) / t->copy_bytes;
	t->workspace = round_to_pages(workspace);
	t->memory = cpu_pick_room(picks, t->workspace + t->copies * t->copy_bytes);
	if (!t->memory)
		return -1;
	memset(t->memory + t->workspace, PICK_FILL, t->copies * t->copy_bytes);
	return 0;
}

static double run_conv_once(void *arg, int i)
{
	struct conv_trial *t = arg;
	char *copy = t->memory + t->workspace + t->next * t->copy_bytes;
	const struct dnn_conv_args args = { copy + t->a, copy + t->b, copy + t->out, t->memory };
	const double start = cpu_pick_clock(t->threads);
	double seconds;

	t->next = (t->next + 1) % t->copies;
	cpu_conv_run(t->list[i], &args);
	seconds = cpu_pick_clock(t->threads) - start;
	return dnn_take_failure(t->dnn, NULL) ? PICK_FAILED : seconds;
}

static bool make_conv_candidate(struct conv_trial *t, const char *name, int n, struct cpu_module *m,
				const struct dnn_conv_spec *spec)
{
	return cpu_conv_make(&t->list[n], m, spec, (struct cpu_conv_choice){ name, t->threads }, NULL) == 0;
}

static int list_conv_candidates(struct conv_trial *t, char names[][PICK_NAME_BYTES], struct cpu_module *m,
				const struct dnn_conv_spec *spec)
{
	const char *own;
	int n = 0;

	for (int i = 0; (own = cpu_conv_own(m, spec, i)) != NULL; i++) {
		snprintf(names[n], PICK_NAME_BYTES, "%s", own);
		n += make_conv_candidate(t, names[n], n, m, spec);
	}
	for (int i = 0; n < PICK_CANDIDATES; i++) {
		bool again = false;

		if (!dnn_conv_candidate(m->dnn, spec, i, names[n], PICK_NAME_BYTES))
			break;
		for (int j = 0; j < n; j++)
			again = again || strcmp(names[j], names[n]) == 0;
		if (!again && cpu_pick_worth_trying(m, names[n]))
			n += make_conv_candidate(t, names[n], n, m, spec);
	}
	return n;
}

/* Returns false if the machine is too busy for a measurement. */
static bool time_conv_candidates(struct cpu_module *m, const struct dnn_conv_spec *spec, int threads, char *name)
{
	char names[PICK_CANDIDATES][PICK_NAME_BYTES];
	struct conv_trial t = { .dnn = m->dnn, .threads = threads };
	size_t packed = 0, workspace = 0;
	int n = list_conv_candidates(&t, names, m, spec), best = 0;
	bool clear = true;

	for (int i = 0; i < n; i++) {
		size_t p = cpu_conv_packed_bytes(t.list[i]), w = cpu_conv_workspace_bytes(t.list[i]);

		packed = p > packed ? p : packed;
		workspace = w > workspace ? w : workspace;
	}
	if (n > 0)
		snprintf(name, PICK_NAME_BYTES, "%s", names[0]);
	if (n > 1 && open_conv_trial(&t, m->picks, spec, packed, workspace) == 0) {
		clear = cpu_pick_fastest(&best, n, threads, run_conv_once, &t);
		snprintf(name, PICK_NAME_BYTES, "%s", names[best]);
	}
	for (int i = 0; i < n; i++)
		cpu_conv_free(t.list[i]);
	return clear;
}

/* Similar batch sizes share a choice, and only a part of a large batch is timed. */
static int64_t choose_trial_batch(const struct dnn_conv_spec *s, int threads)
{
	double image = 2.0 * (double)(s->p * s->q * s->k) * (double)(s->kernel * s->kernel * s->c);
	double trial = s->pass == DNN_WGRAD ? TRIAL_FLOPS_WGRAD : TRIAL_FLOPS;
	int64_t most = (int64_t)(trial / (image > 1 ? image : 1)), n = 1;

	if (most < 2 * (int64_t)threads)
		most = 2 * (int64_t)threads;
	while (n < s->n && 2 * n <= most)
		n *= 2;
	return n;
}

/* The measured preferences on processors with AVX-512, as rules: the part of a name to look for first; NULL: the
 * library's own order is as good. */
static const char *find_conv_rule(const struct dnn_conv_spec *s)
{
	int64_t thin = s->c < s->k ? s->c : s->k;

	if (s->pass == DNN_WGRAD)
		return s->kernel == 1 && thin >= 64 ? "gemm" : NULL;
	if (s->pass == DNN_FORWARD && s->kernel == 3 && (s->bf16 || thin <= 32) && s->stride == 1)
		return s->bf16 ? "jit_bf16:" : "jit:";
	return NULL;
}

static void pick_conv_by_rule(struct cpu_module *m, const struct dnn_conv_spec *spec, char *name)
{
	const char *part = m->isa >= CPU_AVX512 ? find_conv_rule(spec) : NULL, *own = cpu_conv_preferred(m, spec);

	name[0] = '\0';
	if (own) {
		snprintf(name, PICK_NAME_BYTES, "%s", own);
		return;
	}
	for (int i = 0; part && dnn_conv_candidate(m->dnn, spec, i, name, PICK_NAME_BYTES); i++)
		if (strstr(name, part))
			return;
	name[0] = '\0';
}

/* Sets name to an implementation for cpu_conv_make; "" means the library's first choice. */
static void pick_conv_name(struct cpu_module *m, const struct dnn_conv_spec *spec, int threads, char *name)
{
	struct dnn_conv_spec trial = *spec;
	char key[PICK_KEY_BYTES];

	if (m->deterministic || !m->picks) {
		pick_conv_by_rule(m, spec, name);
		return;
	}
	trial.n = choose_trial_batch(spec, threads);
	name[0] = '\0';
	make_conv_key(key, m, &trial, threads);
	if (cpu_pick_recall(m, key, name))
		return;
	if (!time_conv_candidates(m, &trial, threads, name)) {
		trial.n = trial.n > threads ? trial.n / threads : 1;
		time_conv_candidates(m, &trial, 1, name);
	}
	cpu_pick_keep(m, key, name);
}

struct cpu_convs {
	struct cpu_convs *next;
	struct dnn_conv_spec spec; /* n is 0 for an empty batch */
	int threads;
	struct cpu_conv *conv;
};

/* Finds the shapes of x, w and y among the op's operands. */
static int read_conv_spec(struct dnn_conv_spec *s, const struct node *n, struct err *err)
{
	const struct conv_attr *a = n->attr;
	const struct shape *x, *y;
	bool bf16;
	int rc;

	memset(s, 0, sizeof(*s));
	s->stride = a->stride;
	s->pad = a->pad;
	switch (n->op->id) {
	case OP_conv:
		s->pass = DNN_FORWARD;
		x = &n->in[0]->shape, y = &n->out[0]->shape;
		s->kernel = n->in[1]->shape.dim[1];
		break;
	case OP_conv_dgrad:
		s->pass = DNN_DGRAD;
		x = &n->out[0]->shape, y = &n->in[0]->shape;
		s->kernel = n->in[1]->shape.dim[1];
		break;
	default:
		s->pass = DNN_WGRAD;
		x = &n->in[0]->shape, y = &n->in[1]->shape;
		s->kernel = n->out[0]->shape.dim[1];
	}
	s->n = x->dim[0], s->h = x->dim[1], s->w = x->dim[2], s->c = x->dim[3];
	s->p = y->dim[1], s->q = y->dim[2], s->k = y->dim[3];
	if (s->pass == DNN_WGRAD)
		rc = cpu_one_type(n, (struct cpu_operands){ 2, 0 }, &bf16, err);
	else
		rc = cpu_one_type(n, (struct cpu_operands){ 1, 1 }, &bf16, err);
	s->bf16 = !rc && bf16;
	return rc;
}

static bool conv_specs_equal(const struct dnn_conv_spec *a, const struct dnn_conv_spec *b)
{
	return a->pass == b->pass && a->bf16 == b->bf16 && a->n == b->n && a->h == b->h && a->w == b->w &&
	       a->c == b->c && a->k == b->k && a->p == b->p && a->q == b->q && a->kernel == b->kernel &&
	       a->stride == b->stride && a->pad == b->pad;
}

/* Describes the computation for which implementations are listed: this module's own, or the library's. */
static struct dnn_conv_spec find_computed_spec(const struct cpu_module *m, const struct dnn_conv_spec *spec)
{
	const struct dnn_conv_spec reduced = cpu_conv_reduced(spec);

	return cpu_conv_own(m, &reduced, 0) ? reduced : cpu_conv_computed(m, &reduced);
}

/* The installed library may lack a remembered name: then its first choice is used. */
static int make_picked_conv(struct cpu_conv **ret, struct cpu_module *m, const struct dnn_conv_spec *spec, int threads,
			    struct err *err)
{
	struct dnn_conv_spec filled = find_computed_spec(m, spec);
	char name[PICK_NAME_BYTES];

	filled.n = spec->n ? spec->n : 1;
	pick_conv_name(m, &filled, threads, name);
	if (name[0] && cpu_conv_make(ret, m, spec, (struct cpu_conv_choice){ name, threads }, NULL) == 0)
		return 0;
	return cpu_conv_make(ret, m, spec, (struct cpu_conv_choice){ "", threads }, err);
}

static int add_shared_conv(struct cpu_module *m, const struct dnn_conv_spec *spec, int threads, struct err *err)
{
	struct cpu_convs *k = mem_zalloc(sizeof(*k));
	int rc;

	rc = make_picked_conv(&k->conv, m, spec, threads, err);
	if (rc) {
		free(k);
		return rc;
	}
	k->spec = *spec;
	k->threads = threads;
	k->next = m->convs;
	m->convs = k;
	return 0;
}

int cpu_convs_get(struct cpu_conv **ret, const struct kernel_env *env, const struct node *n, struct err *err)
{
	struct cpu_module *m = env->module;
	struct dnn_conv_spec spec;
	int rc = read_conv_spec(&spec, n, err);

	if (rc)
		return rc;
	for (const struct cpu_convs *k = m->convs; k; k = k->next)
		if (k->threads == env->threads && conv_specs_equal(&k->spec, &spec)) {
			*ret = k->conv;
			return 0;
		}
	rc = add_shared_conv(m, &spec, env->threads, err);
	if (!rc)
		*ret = m->convs->conv;
	return rc;
}

void cpu_convs_free(struct cpu_module *m)
{
	while (m->convs) {
		struct cpu_convs *k = m->convs;

		m->convs = k->next;
		cpu_conv_free(k->conv);
		free(k);
	}
}
