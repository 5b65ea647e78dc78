/* product.c: picks the implementation of a matrix product that the processor has, and runs it. */
#include "trainer/backends/cpu/product.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/backends/cpu/onednn_memory.h"
#include "trainer/backends/cpu/few_rows.h"
#include "trainer/backends/cpu/cpu_pick.h"
#include "trainer/backends/cpu/tiles.h"

#define SMALL_PRODUCT (INT64_C(1) << 26) /* multiplications */
#define OWN_TILES "own:tiles"
#define PACKING_MOST (1LL << 32)
#define GEMM_PANEL 9984 /* columns of b, rows of a, terms that oneDNN's gemm packs at a time on AVX-512 */
#define GEMM_ROWS 384
#define GEMM_TERMS 384
#define GEMM_ASIDE (32 << 10) /* further bytes that it allocates */
#define GEMM_PART 8 /* packing below this part of the operands is not expected: a plan is made sooner without */

enum product_by { BY_NOBODY, BY_FEW_ROWS, BY_TILES, BY_LIBRARY }; /* BY_NOBODY: a size is 0 */

struct cpu_product {
	struct dnn_matmul_spec spec;
	int threads;
	const struct cpu_module *module;
	enum product_by by;
	struct dnn_matmul *dnn; /* of the library's */
	size_t packing;		/* bytes of workspace after its own, into which it packs operands; 0: not known */
};

static void set_product_threads(int threads)
{
	if (omp_get_max_threads() != threads)
		omp_set_num_threads(threads);
}

/* The library's gemm packs operands at every call; small products gain nothing by it. */
static bool is_small_product(const struct dnn_matmul_spec *s)
{
	return s->m * s->n * s->k < SMALL_PRODUCT;
}

/* What timing found: tiles where there are some, and without a turned b, and for long sums of turned a, copying into
 * panels pays off. */
static void pick_product_by_rule(struct cpu_module *m, const struct dnn_matmul_spec *s, char *name)
{
	name[0] = '\0';
	if (tiles_takes(m, s) && !is_small_product(s)) {
		snprintf(name, PICK_NAME_BYTES, OWN_TILES);
		return;
	}
	for (int i = 0; !s->b_turned && !is_small_product(s) &&
	     dnn_matmul_candidate(m->dnn, s, i, name, PICK_NAME_BYTES); i++)
		if (strstr(name, "gemm"))
			return;
	name[0] = '\0';
}

static int64_t count_out_elements(const struct dnn_matmul_spec *s)
{
	return s->m * (s->out_step ? s->out_step : s->n);
}

/* What the library's gemm packs, where the clock may choose it. */
static size_t estimate_packing(const struct cpu_module *m, const struct dnn_matmul_spec *s, int threads)
{
	const int64_t item = s->bf16 ? 2 : 4, operands = (s->m + s->n) * s->k * item + count_out_elements(s) * 4;
	const int64_t columns = s->n < GEMM_PANEL ? s->n : GEMM_PANEL, rows = s->m < GEMM_ROWS ? s->m : GEMM_ROWS;
	const int64_t terms = s->k < GEMM_TERMS ? s->k : GEMM_TERMS;
	const int64_t bytes = (columns + threads * rows) * terms * item + GEMM_ASIDE;

	return is_small_product(s) || tiles_takes(m, s) || bytes * GEMM_PART < operands ? 0 : (size_t)bytes;
}

struct product_trial {
	const struct cpu_module *module;
	const struct dnn_matmul_spec *spec;
	int threads;
	char *memory;
	size_t bytes, a, b, bias, out, workspace;
	struct dnn_matmul *list[PICK_CANDIDATES]; /* NULL: own tiles */
	size_t packing[PICK_CANDIDATES];	  /* of the last run */
};

static size_t round_operand_bytes(int64_t elements, size_t item)
{
	return ((size_t)elements * item + 4095) / 4096 * 4096;
}

static int open_product_trial(struct product_trial *t, size_t workspace)
{
	const struct dnn_matmul_spec *s = t->spec;
	int64_t a_rows = s->a_turned ? s->k : s->m;
	size_t item = s->bf16 ? 2 : 4;

	t->b = round_operand_bytes(s->a_step ? a_rows * s->a_step : s->m * s->k, item);
	t->bias = t->b + round_operand_bytes(s->k * s->n, item);
	t->out = t->bias + round_operand_bytes(s->n, 4);
	t->workspace = t->out + round_operand_bytes(count_out_elements(s), 4);
	t->bytes = t->workspace + workspace + 4096;
	t->memory = cpu_pick_room(t->module->picks, t->bytes);
	if (!t->memory)
		return -1;
	memset(t->memory, PICK_FILL, t->out);
	return 0;
}

static double run_product_once(void *arg, int i)
{
	struct product_trial *t = arg;
	const struct dnn_matmul_args args = { .a = t->memory,
					      .b = t->memory + t->b,
					      .bias = t->spec->bias ? (const float *)(t->memory + t->bias) : NULL,
					      .out = t->memory + t->out,
					      .workspace = t->memory + t->workspace };
	struct err err = ERR_INIT;
	double seconds;

	dnn_memory_most();
	seconds = -cpu_pick_clock(t->threads);
	if (!t->list[i])
		tiles_run(t->module, t->spec, t->threads, &args);
	else if (dnn_matmul_run(t->list[i], &args, &err))
		return 1e9;
	seconds += cpu_pick_clock(t->threads);
	t->packing[i] = dnn_memory_most();
	return seconds;
}

/* Candidates worth their trial, by name; returns how many. Widens the workspace to what each of them needs. */
static int list_product_candidates(struct product_trial *t, struct dnn *dnn, char names[][PICK_NAME_BYTES],
				   size_t *workspace)
{
	const struct dnn_matmul_spec *s = t->spec;
	int n = 0;

	if (tiles_takes(t->module, s)) {
		*workspace = tiles_workspace_bytes(s, t->threads);
		snprintf(names[n++], PICK_NAME_BYTES, OWN_TILES);
	}
	for (int i = 0; n < PICK_CANDIDATES && dnn_matmul_candidate(dnn, s, i, names[n], PICK_NAME_BYTES); i++) {
		if (!cpu_pick_worth_trying(t->module, names[n]) || (is_small_product(s) && strstr(names[n], "gemm")) ||
		    dnn_matmul_new(&t->list[n], dnn, s, names[n], NULL))
			continue;
		if (dnn_matmul_workspace_bytes(t->list[n]) > *workspace)
			*workspace = dnn_matmul_workspace_bytes(t->list[n]);
		n++;
	}
	return n;
}

/* "NAME BYTES": the packing is part of the choice. copies: how many will run at a time. */
static void format_product_choice(char *ret, const char *name, size_t packing, int copies)
{
	if (packing)
		snprintf(ret, PICK_NAME_BYTES, "%.40s %zu", name, packing * (size_t)copies);
	else
		snprintf(ret, PICK_NAME_BYTES, "%s", name);
}

/* What format_product_choice made becomes the name alone. */
static size_t split_product_choice(char *name)
{
	char *space = strchr(name, ' ');
	long long bytes = space ? strtoll(space, NULL, 10) : 0;

	if (space)
		*space = '\0';
	return bytes > 0 && bytes < PACKING_MOST ? (size_t)bytes : 0;
}

/* False where the machine is too busy to tell. copies: of the spec, that will run at the same time. */
static bool time_product_candidates(struct cpu_module *m, const struct dnn_matmul_spec *s, int threads, int copies,
				    char *name)
{
	char names[PICK_CANDIDATES][PICK_NAME_BYTES];
	struct product_trial t = { .module = m, .spec = s, .threads = threads };
	size_t workspace = 0;
	int n = list_product_candidates(&t, m->dnn, names, &workspace), best = 0;
	bool clear = true;

	if (n > 0)
		snprintf(name, PICK_NAME_BYTES, "%s", names[0]);
	if (n > 1 && open_product_trial(&t, workspace) == 0) {
		clear = cpu_pick_fastest(&best, n, threads, run_product_once, &t);
		format_product_choice(name, names[best], t.packing[best], copies);
	}
	for (int i = 0; i < n; i++)
		dnn_matmul_free(t.list[i]);
	return clear;
}

/* What a choice is remembered under. */
static void describe_product(const struct cpu_module *m, const struct dnn_matmul_spec *s, char *what, size_t n)
{
	char steps[48] = "";

	if (s->a_step || s->out_step)
		snprintf(steps, sizeof(steps), " step %lld,%lld", (long long)s->a_step, (long long)s->out_step);
	snprintf(what, n, "matmul %s%s %lldx%lldx%lld%s%s%s%s%s", s->bf16 ? "bf16" : m->split ? "f32 split" : "f32",
		 s->out_bf16 ? ">bf16" : ">f32", (long long)s->m, (long long)s->n, (long long)s->k,
		 s->a_turned ? " at" : "", s->b_turned ? " bt" : "", s->bias ? " bias" : "", s->add ? " add" : "",
		 steps);
}

static void pick_product(struct cpu_module *m, const struct dnn_matmul_spec *s, int threads, char *name)
{
	char key[PICK_KEY_BYTES], what[160];
	struct dnn_matmul_spec share = *s;

	if (m->deterministic || !m->picks) {
		pick_product_by_rule(m, s, name);
		return;
	}
	describe_product(m, s, what, sizeof(what));
	cpu_pick_key(key, m, threads, what);
	name[0] = '\0';
	if (cpu_pick_recall(m, key, name))
		return;
	if (!time_product_candidates(m, s, threads, 1, name)) {
		share.m = s->m > threads ? s->m / threads : 1;
		set_product_threads(1);
		time_product_candidates(m, &share, 1, threads, name);
		set_product_threads(threads);
	}
	cpu_pick_keep(m, key, name);
}

/* A name that was remembered may have left the library since: then its first choice does. */
static int make_picked_product(struct cpu_product *c, struct cpu_module *m, struct err *err)
{
	char name[PICK_NAME_BYTES];

	c->by = few_rows_takes(m, &c->spec) ? BY_FEW_ROWS : BY_LIBRARY;
	if (c->by == BY_FEW_ROWS)
		return 0;
	set_product_threads(c->threads);
	pick_product(m, &c->spec, c->threads, name);
	c->packing = m->dry ? estimate_packing(m, &c->spec, c->threads) : split_product_choice(name);
	if (strcmp(name, OWN_TILES) == 0 && tiles_takes(m, &c->spec)) {
		c->by = BY_TILES;
		return 0;
	}
	if (name[0] && dnn_matmul_new(&c->dnn, m->dnn, &c->spec, name, NULL) == 0)
		return 0;
	return dnn_matmul_new(&c->dnn, m->dnn, &c->spec, NULL, err);
}

int cpu_product_new(struct cpu_product **ret, const struct kernel_env *env, const struct dnn_matmul_spec *spec,
		    struct err *err)
{
	struct cpu_product *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return err_set(err, ERR_NOMEM, "backend cpu: out of memory while preparing a matrix product");
	c->spec = *spec;
	c->module = env->module;
	c->threads = env->threads;
	rc = spec->m > 0 && spec->n > 0 && spec->k > 0 ? make_picked_product(c, env->module, err) : 0;
	if (rc)
		cpu_product_free(c);
	else
		*ret = c;
	return rc;
}

void cpu_product_free(struct cpu_product *c)
{
	if (c)
		dnn_matmul_free(c->dnn);
	free(c);
}

size_t cpu_product_workspace_bytes(const struct cpu_product *c)
{
	if (c->by == BY_TILES)
		return tiles_workspace_bytes(&c->spec, c->threads);
	return c->dnn ? dnn_matmul_workspace_bytes(c->dnn) + c->packing : 0;
}

const char *cpu_product_impl(const struct cpu_product *c)
{
	static const char *const own[] = { "none", "own:few_rows", OWN_TILES };

	return c->by == BY_LIBRARY ? dnn_matmul_impl(c->dnn) : own[c->by];
}

static int run_dnn_product(const struct cpu_product *c, const struct dnn_matmul_args *args, struct err *err)
{
	struct dnn_matmul_args with = *args;

	with.packing = c->packing;
	set_product_threads(c->threads);
	return dnn_matmul_run(c->dnn, &with, err);
}

int cpu_product_run(struct cpu_product *c, const struct dnn_matmul_args *args, struct err *err)
{
	switch (c->by) {
	case BY_FEW_ROWS:
		few_rows_run(c->module, &c->spec, c->threads, args);
		return 0;
	case BY_TILES:
		tiles_run(c->module, &c->spec, c->threads, args);
		return 0;
	case BY_NOBODY:
		if (!c->spec.add)
			memset(args->out, 0, (size_t)count_out_elements(&c->spec) * (c->spec.out_bf16 ? 2 : 4));
		return 0;
	default:
		return run_dnn_product(c, args, err);
	}
}
