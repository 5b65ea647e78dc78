/* SPDX-License-Identifier: Apache-2.0 */
/* blas.c: see blas.h. A row-major matrix is its column-major transpose, so the library computes D^T = B^T A^T: its
 * first operand is our B. */
#include "trainer/backends/cuda/blas.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"
#include "trainer/backends/cuda/plan_cache.h"
#include "trainer/backends/cuda/kernel_trial.h"

#ifdef HAVE_CUBLASLT

#define WORKSPACE_MAX ((size_t)32 << 20)
#define WORKSPACE_ALIGN 256

/* One algorithm for operands aligned for vector access, one for any alignment. */
enum fit { FIT_WIDE, FIT_ANY, FITS };

/* The library's choice for a product, as it is cached: candidates may be copied bytewise. */
struct blas_choice {
	bool adds_bias;
	bool has[FITS];
	cublasLtMatmulAlgo_t algorithm[FITS];
	size_t workspace[FITS];
};

struct blas_plan {
	struct cuda_module *module;
	enum dtype in;
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, d; /* layouts of our A, B and D */
	struct blas_choice choice;
};

static int set_blas_error(const struct cuda_module *m, cublasStatus_t status, const char *what, struct err *err)
{
	return err_set(err, ERR_IO, "cuda: %s: cuBLASLt: %s", what, m->calls.cublasLtGetStatusString(status));
}

int blas_open(struct cuda_module *m, struct err *err)
{
	int rc = cuda_calls_open(&m->calls, CUDA_CUBLASLT, err);
	cublasStatus_t status;

	if (rc)
		return rc;
	status = m->calls.cublasLtCreate(&m->blas);
	if (status == CUBLAS_STATUS_SUCCESS)
		return 0;
	m->blas = NULL;
	return set_blas_error(m, status, "opening", err);
}

void blas_close(struct cuda_module *m)
{
	if (m->blas)
		m->calls.cublasLtDestroy(m->blas);
	m->blas = NULL;
}

static cudaDataType cublas_type(enum dtype t)
{
	return t == DTYPE_F64 ? CUDA_R_64F : t == DTYPE_F32 ? CUDA_R_32F : t == DTYPE_BF16 ? CUDA_R_16BF : CUDA_R_16F;
}

static enum dtype pick_master_type(enum dtype t)
{
	return t == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
}

static cublasStatus_t set_desc_attribute(const struct blas_plan *p, cublasLtMatmulDescAttributes_t attribute,
					 const void *value, size_t bytes)
{
	return p->module->calls.cublasLtMatmulDescSetAttribute(p->desc, attribute, value, bytes);
}

static cublasStatus_t set_bias(const struct blas_plan *p, const void *bias)
{
	return set_desc_attribute(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
}

/* fp32 follows IEEE: the library uses TF32 only on request. */
static cublasStatus_t make_desc(struct blas_plan *p, const struct matmul_spec *s)
{
	const cublasComputeType_t fp32 =
		p->module->tf32 && s->in == DTYPE_F32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
	const cublasOperation_t first = s->b_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
	const cublasOperation_t second = s->a_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
	cublasStatus_t status;

	status = p->module->calls.cublasLtMatmulDescCreate(&p->desc, s->in == DTYPE_F64 ? CUBLAS_COMPUTE_64F : fp32,
							   cublas_type(pick_master_type(s->in)));
	if (!status)
		status = set_desc_attribute(p, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof(first));
	if (!status)
		status = set_desc_attribute(p, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof(second));
	return status;
}

static cublasStatus_t make_layout(const struct blas_plan *p, cublasLtMatrixLayout_t *ret, enum dtype type,
				  const int64_t (*sizes)[3])
{
	const int64_t rows = (*sizes)[0], columns = (*sizes)[1], pitch = (*sizes)[2];

	return p->module->calls.cublasLtMatrixLayoutCreate(ret, cublas_type(type), (uint64_t)columns, (uint64_t)rows,
							   pitch);
}

static cublasStatus_t make_layouts(struct blas_plan *p, const struct matmul_spec *s)
{
	const int64_t a[3] = { s->a_turned ? s->k : s->m, s->a_turned ? s->m : s->k, s->a_pitch };
	const int64_t b[3] = { s->b_turned ? s->n : s->k, s->b_turned ? s->k : s->n, s->b_pitch };
	const int64_t d[3] = { s->m, s->n, s->d_pitch };
	cublasStatus_t status = make_layout(p, &p->a, s->in, &a);

	if (!status)
		status = make_layout(p, &p->b, s->in, &b);
	return status ? status : make_layout(p, &p->d, s->out, &d);
}

/* Constraints of the algorithm. With --deterministic no sum depends on the order in which blocks finish. */
static cublasStatus_t make_preference(const struct blas_plan *p, cublasLtMatmulPreference_t *ret, uint32_t align,
				      bool deterministic)
{
	static const cublasLtMatmulPreferenceAttributes_t of_operand[] = { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
									   CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
									   CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
									   CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES };
	const struct cuda_calls *c = &p->module->calls;
	const uint64_t most = WORKSPACE_MAX;
	const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	cublasStatus_t status = c->cublasLtMatmulPreferenceCreate(ret);

	if (!status)
		status = c->cublasLtMatmulPreferenceSetAttribute(*ret, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
								 sizeof(most));
	if (!status && deterministic)
		status = c->cublasLtMatmulPreferenceSetAttribute(*ret, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
								 &schemes, sizeof(schemes));
	for (int i = 0; !status && i < 4; i++)
		status = c->cublasLtMatmulPreferenceSetAttribute(*ret, of_operand[i], &align, sizeof(align));
	return status;
}

/* Operands for timing a product. */
struct blas_attempt {
	const struct blas_plan *plan;
	const cublasLtMatmulHeuristicResult_t *candidates, *candidate;
	struct trial trial;
	void *a, *b, *d, *room;
};

static cublasStatus_t run_blas_matmul(const struct blas_plan *p, const struct matmul_operands *o,
				      const cublasLtMatmulAlgo_t *algorithm, size_t workspace)
{
	static const double one64 = 1, zero64 = 0;
	static const float one32 = 1, zero32 = 0;
	const bool f64 = p->in == DTYPE_F64;
	const void *one = f64 ? (const void *)&one64 : &one32, *zero = f64 ? (const void *)&zero64 : &zero32;

	return p->module->calls.cublasLtMatmul(p->module->blas, p->desc, one, o->b, p->b, o->a, p->a,
					       o->adds ? one : zero, o->d, p->d, o->d, p->d, algorithm, o->workspace,
					       workspace, (cudaStream_t)o->stream);
}

static int run_blas_attempt(void *user, cudaStream_t stream)
{
	const struct blas_attempt *t = user;
	const struct matmul_operands o = { t->a, t->b, t->d, NULL, false, t->room, (struct stream_handle *)stream };

	return (int)run_blas_matmul(t->plan, &o, &t->candidate->algo, t->candidate->workspaceSize);
}

/* Bytes of A, B and D; returns the bytes of all of them with bias and workspace. */
static size_t count_attempt_bytes(const struct matmul_spec *s, size_t (*ret)[3])
{
	const size_t in = dtype_bytes(s->in);

	(*ret)[0] = (size_t)((s->a_turned ? s->k : s->m) * s->a_pitch) * in;
	(*ret)[1] = (size_t)((s->b_turned ? s->n : s->k) * s->b_pitch) * in;
	(*ret)[2] = (size_t)(s->m * s->d_pitch) * dtype_bytes(s->out);
	return trial_room((*ret)[0]) + trial_room((*ret)[1]) + trial_room((*ret)[2]) +
	       trial_room((size_t)s->n * sizeof(double)) + WORKSPACE_MAX;
}

static double time_blas_algorithm(void *user, int k)
{
	struct blas_attempt *t = user;

	t->candidate = &t->candidates[k];
	return t->candidate->state == CUBLAS_STATUS_SUCCESS ? trial_ms(&t->trial, run_blas_attempt, t) : INFINITY;
}

/* Returns the fastest of n candidates, which the library ranks by expected speed. */
static int find_fastest_algorithm(struct blas_plan *p, const struct matmul_spec *s,
				  const cublasLtMatmulHeuristicResult_t *candidates, int n)
{
	size_t bytes[3], used = 0;
	struct blas_attempt t = { .plan = p, .candidates = candidates };
	int best;

	if (n < 2 || !trial_open(&t.trial, count_attempt_bytes(s, &bytes)))
		return 0;
	if (p->choice.adds_bias)
		set_bias(p, trial_piece(&t.trial, (size_t)s->n * sizeof(double), &used));
	t.a = trial_piece(&t.trial, bytes[0], &used);
	t.b = trial_piece(&t.trial, bytes[1], &used);
	t.d = trial_piece(&t.trial, bytes[2], &used);
	t.room = trial_piece(&t.trial, WORKSPACE_MAX, &used);
	best = trial_fastest(n, time_blas_algorithm, &t);
	trial_close(&t.trial);
	return best;
}

/* Chooses among the library's candidates. Unaligned operands are rare, so the first one is used for them. */
static void choose_algorithm(struct blas_plan *p, const struct matmul_spec *s, enum fit fit, uint32_t align,
			     bool deterministic)
{
	const struct cuda_calls *c = &p->module->calls;
	const int asked = fit == FIT_WIDE && !deterministic ? TRIALS_MAX : 1;
	cublasLtMatmulPreference_t preference = NULL;
	cublasLtMatmulHeuristicResult_t candidate[TRIALS_MAX] = { 0 };
	int found = 0;

	if (!make_preference(p, &preference, align, deterministic) &&
	    !c->cublasLtMatmulAlgoGetHeuristic(p->module->blas, p->desc, p->b, p->a, p->d, p->d, preference, asked,
					       candidate, &found) &&
	    found > 0 && candidate[0].state == CUBLAS_STATUS_SUCCESS) {
		const cublasLtMatmulHeuristicResult_t *best =
			&candidate[find_fastest_algorithm(p, s, candidate, found)];

		p->choice.has[fit] = true;
		p->choice.algorithm[fit] = best->algo;
		p->choice.workspace[fit] = best->workspaceSize;
	}
	if (preference)
		c->cublasLtMatmulPreferenceDestroy(preference);
}

/* The library considers the alignment of the bias address. */
static void set_expected_bias(const struct blas_plan *p, const struct matmul_spec *s, enum fit fit)
{
	const uintptr_t address = fit == FIT_WIDE ? BLAS_ALIGN : (uintptr_t)dtype_bytes(s->out);

	if (p->choice.adds_bias)
		set_bias(p, (const void *)address);
}

static void choose_algorithms(struct blas_plan *p, const struct matmul_spec *s, bool deterministic)
{
	set_expected_bias(p, s, FIT_WIDE);
	choose_algorithm(p, s, FIT_WIDE, BLAS_ALIGN, deterministic);
	set_expected_bias(p, s, FIT_ANY);
	choose_algorithm(p, s, FIT_ANY, (uint32_t)dtype_bytes(s->in), deterministic);
}

static cublasStatus_t set_epilogue(struct blas_plan *p, bool bias)
{
	const cublasLtEpilogue_t epilogue = bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;

	return set_desc_attribute(p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue));
}

/* Fuses the bias (of D's type) if the library supports that for these types. */
static cublasStatus_t choose_epilogue(struct blas_plan *p, const struct matmul_spec *s, bool deterministic)
{
	p->choice.adds_bias = s->bias && !set_epilogue(p, true);
	if (p->choice.adds_bias)
		choose_algorithms(p, s, deterministic);
	if (p->choice.has[FIT_WIDE])
		return CUBLAS_STATUS_SUCCESS;
	memset(&p->choice, 0, sizeof(p->choice));
	if (set_epilogue(p, false))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	choose_algorithms(p, s, deterministic);
	return p->choice.has[FIT_WIDE] ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* All parameters that the choice depends on. */
static void format_blas_key(char *key, size_t n, const struct blas_plan *p, const struct matmul_spec *s,
			    bool deterministic)
{
	snprintf(key, n, "product %lld %lld %lld %s %s%s%s %lld %lld %lld%s%s%s", (long long)s->m, (long long)s->n,
		 (long long)s->k, dtype_name(s->in), dtype_name(s->out), s->a_turned ? " a" : "",
		 s->b_turned ? " b" : "",
		 (long long)s->a_pitch, (long long)s->b_pitch, (long long)s->d_pitch, s->bias ? " bias" : "",
		 p->module->tf32 ? " tf32" : "", deterministic ? " deterministic" : "");
}

/* Returns true if the library still accepts a cached algorithm. */
static bool is_choice_valid(const struct blas_plan *p, const struct matmul_spec *s, enum fit fit)
{
	const struct cuda_calls *c = &p->module->calls;
	cublasLtMatmulHeuristicResult_t found = { 0 };

	set_expected_bias(p, s, fit);
	return !c->cublasLtMatmulAlgoCheck(p->module->blas, p->desc, p->b, p->a, p->d, p->d, &p->choice.algorithm[fit],
					   &found) &&
	       found.state == CUBLAS_STATUS_SUCCESS && found.workspaceSize <= p->choice.workspace[fit];
}

static bool load_cached_choice(struct blas_plan *p, const struct matmul_spec *s, const char *key)
{
	size_t n = 0;
	const void *known = plan_cache_find(p->module->kept, key, &n);
	bool valid = known && n == sizeof(p->choice);

	if (valid) {
		memcpy(&p->choice, known, n);
		valid = !set_epilogue(p, p->choice.adds_bias);
	}
	for (int fit = 0; fit < FITS; fit++)
		valid = valid && (!p->choice.has[fit] || is_choice_valid(p, s, (enum fit)fit));
	if (!valid)
		memset(&p->choice, 0, sizeof(p->choice));
	return valid;
}

/* Uses the cached choice for the same product, from this or an earlier run; else chooses. */
static cublasStatus_t choose_once(struct blas_plan *p, const struct matmul_spec *s, bool deterministic)
{
	char key[256];
	cublasStatus_t status;

	format_blas_key(key, sizeof(key), p, s, deterministic);
	if (load_cached_choice(p, s, key))
		return CUBLAS_STATUS_SUCCESS;
	status = choose_epilogue(p, s, deterministic);
	if (!status)
		plan_cache_put(p->module->kept, key, &p->choice, sizeof(p->choice));
	return status;
}

static void fill_offer(struct blas_offer *ret, const struct blas_plan *p)
{
	const struct blas_choice *c = &p->choice;
	const size_t most =
		c->workspace[FIT_WIDE] > c->workspace[FIT_ANY] ? c->workspace[FIT_WIDE] : c->workspace[FIT_ANY];

	ret->wide = c->has[FIT_WIDE];
	ret->any = c->has[FIT_ANY];
	ret->adds_bias = c->adds_bias;
	ret->workspace = most ? most + WORKSPACE_ALIGN : 0; /* the planner's alignment is smaller than the library's */
}

/* Without a device the library cannot choose: a plan for an absent device reserves the maximum workspace. */
static void reserve_blas_offer(struct blas_offer *ret)
{
	*ret = (struct blas_offer){ .any = true,
				    .wide = true,
				    .adds_bias = true,
				    .workspace = WORKSPACE_MAX + WORKSPACE_ALIGN };
}

int blas_plan_new(struct blas_plan **ret, struct blas_offer *ret_offer, const struct kernel_env *env,
		  const struct matmul_spec *spec, struct err *err)
{
	struct cuda_module *m = env->module;
	struct blas_plan *p;
	cublasStatus_t status;

	if (m && m->described) {
		reserve_blas_offer(ret_offer);
		return 0;
	}
	if (!m || !m->blas)
		return err_set(err, ERR_UNSUPPORTED, "cuBLASLt is not open");
	p = mem_zalloc(sizeof(*p));
	p->module = m;
	p->in = spec->in;
	status = make_desc(p, spec);
	if (!status)
		status = make_layouts(p, spec);
	if (!status)
		status = choose_once(p, spec, env->deterministic);
	if (status) {
		blas_plan_free(p);
		return err_set(err, ERR_UNSUPPORTED, "cuBLASLt: %s", m->calls.cublasLtGetStatusString(status));
	}
	fill_offer(ret_offer, p);
	*ret = p;
	return 0;
}

void blas_plan_free(struct blas_plan *p)
{
	if (!p)
		return;
	if (p->desc)
		p->module->calls.cublasLtMatmulDescDestroy(p->desc);
	if (p->a)
		p->module->calls.cublasLtMatrixLayoutDestroy(p->a);
	if (p->b)
		p->module->calls.cublasLtMatrixLayoutDestroy(p->b);
	if (p->d)
		p->module->calls.cublasLtMatrixLayoutDestroy(p->d);
	free(p);
}

void blas_plan_run(struct blas_plan *p, const struct node *n, const struct matmul_operands *o, bool wide)
{
	const uintptr_t room = ((uintptr_t)o->workspace + WORKSPACE_ALIGN - 1) / WORKSPACE_ALIGN * WORKSPACE_ALIGN;
	const enum fit fit = wide ? FIT_WIDE : FIT_ANY;
	struct matmul_operands aligned = *o;
	cublasStatus_t status = p->choice.adds_bias ? set_bias(p, o->bias) : CUBLAS_STATUS_SUCCESS;

	aligned.workspace = (void *)room;
	if (!status)
		status = run_blas_matmul(p, &aligned, &p->choice.algorithm[fit], p->choice.workspace[fit]);
	if (status && !p->module->failed.code)
		set_blas_error(p->module, status, n->name, &p->module->failed);
}

#else

int blas_open(struct cuda_module *m, struct err *err)
{
	return cuda_calls_open(&m->calls, CUDA_CUBLASLT, err);
}

void blas_close(struct cuda_module *m)
{
	(void)m;
}

int blas_plan_new(struct blas_plan **ret, struct blas_offer *ret_offer, const struct kernel_env *env,
		  const struct matmul_spec *spec, struct err *err)
{
	(void)ret, (void)ret_offer, (void)env, (void)spec;
	return err_set(err, ERR_UNSUPPORTED, "built without cuBLASLt");
}

void blas_plan_free(struct blas_plan *p)
{
	(void)p;
}

void blas_plan_run(struct blas_plan *p, const struct node *n, const struct matmul_operands *o, bool wide)
{
	(void)p, (void)n, (void)o, (void)wide;
}

#endif
