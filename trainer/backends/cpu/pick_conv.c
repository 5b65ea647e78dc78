/* pick_conv.c: times the candidates for a convolution on operands that the private caches no longer hold. */
#include <stdio.h>
#include <string.h>

#include "trainer/backends/cpu/cpu_conv.h"
#include "trainer/backends/cpu/cpu_pick.h"

/* Operations of one timed run, about: part of a large batch represents the whole. A gradient of weights needs a larger
 * part, because sums over threads and the layout of the result cost the same for any batch. */
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

/* Buffers of one convolution. Each run uses the next of several copies of its operands. As in a training step, operands
 * have left the caches since their last use, while code and workspace, which nodes of one shape share, have not. */
struct conv_trial {
	char *memory; /* the workspace, then the copies */
	size_t a, b, out, copy_bytes, copies, next, workspace;
	struct cpu_conv *list[PICK_CANDIDATES];
	int threads;
};

/* Of all copies: a step of small nodes leaves the private caches, but not the one that cores share; of a node as large
 * as this the step leaves both. */
#define COPIES_BYTES ((size_t)8 << 20)
#define LARGE_BYTES ((size_t)1 << 20)
#define COPIES_BYTES_LARGE ((size_t)32 << 20)

static size_t round_to_pages(size_t bytes)
{
	return (bytes + 4095) / 4096 * 4096;
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
	struct err err = ERR_INIT;
	const double start = cpu_pick_clock(t->threads);

	t->next = (t->next + 1) % t->copies;
	if (cpu_conv_run(t->list[i], &args, &err))
		return 1e9;
	return cpu_pick_clock(t->threads) - start;
}

static int list_conv_candidates(struct conv_trial *t, char names[][PICK_NAME_BYTES], struct cpu_module *m,
		      const struct dnn_conv_spec *spec)
{
	const char *own;
	int n = 0;

	for (int i = 0; (own = cpu_conv_own(m, spec, i)) != NULL; i++) {
		snprintf(names[n], PICK_NAME_BYTES, "%s", own);
		n += cpu_conv_make(&t->list[n], m, spec, t->threads, names[n], NULL) == 0;
	}
	for (int i = 0; n < PICK_CANDIDATES; i++) {
		bool again = false;

		if (!dnn_conv_candidate(m->dnn, spec, i, names[n], PICK_NAME_BYTES))
			break;
		for (int j = 0; j < n; j++)
			again = again || strcmp(names[j], names[n]) == 0;
		if (!again && cpu_pick_worth_trying(m, names[n]))
			n += cpu_conv_make(&t->list[n], m, spec, t->threads, names[n], NULL) == 0;
	}
	return n;
}

/* False where the machine is too busy to tell. */
static bool time_conv_candidates(struct cpu_module *m, const struct dnn_conv_spec *spec, int threads, char *name)
{
	char names[PICK_CANDIDATES][PICK_NAME_BYTES];
	struct conv_trial t = { .threads = threads };
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

/* Batch sizes near one another share a choice, and large ones are timed in part. */
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

/* What timing found on processors with AVX-512, as rules: the part of a name to look for first; NULL: the library's
 * own order is as good. */
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

void cpu_pick_conv(struct cpu_module *m, const struct dnn_conv_spec *spec, int threads, char *name)
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
