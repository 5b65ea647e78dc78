/* blas.c: see blas.h. A matrix in rows is its transpose in columns, so what is asked of the library is
 * D^T = B^T A^T: its first operand is our B. */
#include "trainer/backends/cuda/blas.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/backends/cuda/plan_cache.h"
#include "trainer/backends/cuda/kernel_trial.h"

#ifdef HAVE_CUBLASLT

#define WORKSPACE_MAX ((size_t)32 << 20)
#define WORKSPACE_ALIGN 256

/* One algorithm for operands that are aligned as vectors want it, one for any. */
enum fit { FIT_WIDE, FIT_ANY, FITS };

/* What the library recommends for a product, as it is kept: an algorithm may be copied byte by byte. */
struct choice {
	bool adds_bias;
	bool has[FITS];
	cublasLtMatmulAlgo_t algorithm[FITS];
	size_t workspace[FITS];
};

struct blas_plan {
	const struct cuda_module *module;
	enum dtype in;
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, d; /* ours */
	struct choice choice;
};

static int refused(const struct cuda_module *m, cublasStatus_t status, const char *what, struct err *err)
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
	return refused(m, status, "opening", err);
}

void blas_close(struct cuda_module *m)
{
	if (m->blas)
		m->calls.cublasLtDestroy(m->blas);
	m->blas = NULL;
}

static cudaDataType type_of(enum dtype t)
{
	return t == DTYPE_F64 ? CUDA_R_64F : t == DTYPE_F32 ? CUDA_R_32F : t == DTYPE_BF16 ? CUDA_R_16BF : CUDA_R_16F;
}

static enum dtype master_of(enum dtype t)
{
	return t == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
}

static cublasStatus_t set(const struct blas_plan *p, cublasLtMatmulDescAttributes_t attribute, const void *value,
			  size_t bytes)
{
	return p->module->calls.cublasLtMatmulDescSetAttribute(p->desc, attribute, value, bytes);
}

static cublasStatus_t set_bias(const struct blas_plan *p, const void *bias)
{
	return set(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
}

/* fp32 is IEEE: the library takes TF32 only where that is asked for. */
static cublasStatus_t make_desc(struct blas_plan *p, const struct matmul_spec *s)
{
	const cublasComputeType_t fp32 = p->module->tf32 && s->in == DTYPE_F32 ? CUBLAS_COMPUTE_32F_FAST_TF32
									       : CUBLAS_COMPUTE_32F;
	const cublasOperation_t first = s->b_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
	const cublasOperation_t second = s->a_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
	cublasStatus_t status;

	status = p->module->calls.cublasLtMatmulDescCreate(&p->desc, s->in == DTYPE_F64 ? CUBLAS_COMPUTE_64F : fp32,
							   type_of(master_of(s->in)));
	if (!status)
		status = set(p, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof(first));
	if (!status)
		status = set(p, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof(second));
	return status;
}

static cublasStatus_t make_layout(const struct blas_plan *p, cublasLtMatrixLayout_t *ret, enum dtype type,
				  const int64_t (*sizes)[3])
{
	const int64_t rows = (*sizes)[0], columns = (*sizes)[1], pitch = (*sizes)[2];

	return p->module->calls.cublasLtMatrixLayoutCreate(ret, type_of(type), (uint64_t)columns, (uint64_t)rows,
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

/* What an algorithm may count on. Under --deterministic no sum is taken in the order in which blocks arrive. */
static cublasStatus_t make_preference(const struct blas_plan *p, cublasLtMatmulPreference_t *ret, uint32_t align,
				      bool deterministic)
{
	static const cublasLtMatmulPreferenceAttributes_t of_operand[] = {
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES
	};
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

/* What a product is multiplied with, for the sake of its time. */
struct attempt {
	const struct blas_plan *plan;
	const cublasLtMatmulHeuristicResult_t *ways, *way;
	struct trial trial;
	void *a, *b, *d, *room;
};

static cublasStatus_t multiply(const struct blas_plan *p, const struct matmul_operands *o,
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

static int attempt_run(void *user, cudaStream_t stream)
{
	const struct attempt *t = user;
	const struct matmul_operands o = { t->a, t->b, t->d, NULL, false, t->room, (struct stream_handle *)stream };

	return (int)multiply(t->plan, &o, &t->way->algo, t->way->workspaceSize);
}

/* Bytes of A, B and D, the bias in front of them, and the room that ways may take. */
static size_t attempt_bytes(const struct matmul_spec *s, size_t (*ret)[3])
{
	const size_t in = dtype_bytes(s->in);

	(*ret)[0] = (size_t)((s->a_turned ? s->k : s->m) * s->a_pitch) * in;
	(*ret)[1] = (size_t)((s->b_turned ? s->n : s->k) * s->b_pitch) * in;
	(*ret)[2] = (size_t)(s->m * s->d_pitch) * dtype_bytes(s->out);
	return trial_room((*ret)[0]) + trial_room((*ret)[1]) + trial_room((*ret)[2]) +
	       trial_room((size_t)s->n * sizeof(double)) + WORKSPACE_MAX;
}

static double way_ms(void *user, int k)
{
	struct attempt *t = user;

	t->way = &t->ways[k];
	return t->way->state == CUBLAS_STATUS_SUCCESS ? trial_ms(&t->trial, attempt_run, t) : INFINITY;
}

/* The fastest of n ways, which the library ranks by what it expects. */
static int fastest(struct blas_plan *p, const struct matmul_spec *s, const cublasLtMatmulHeuristicResult_t *ways, int n)
{
	size_t bytes[3], used = 0;
	struct attempt t = { .plan = p, .ways = ways };
	int best;

	if (n < 2 || !trial_open(&t.trial, attempt_bytes(s, &bytes)))
		return 0;
	if (p->choice.adds_bias)
		set_bias(p, trial_piece(&t.trial, (size_t)s->n * sizeof(double), &used));
	t.a = trial_piece(&t.trial, bytes[0], &used);
	t.b = trial_piece(&t.trial, bytes[1], &used);
	t.d = trial_piece(&t.trial, bytes[2], &used);
	t.room = trial_piece(&t.trial, WORKSPACE_MAX, &used);
	best = trial_fastest(n, way_ms, &t);
	trial_close(&t.trial);
	return best;
}

/* Of what the library offers. Operands that are not aligned are rare: the first will do. */
static void choose(struct blas_plan *p, const struct matmul_spec *s, enum fit fit, uint32_t align, bool deterministic)
{
	const struct cuda_calls *c = &p->module->calls;
	const int asked = fit == FIT_WIDE && !deterministic ? TRIALS_MAX : 1;
	cublasLtMatmulPreference_t preference = NULL;
	cublasLtMatmulHeuristicResult_t way[TRIALS_MAX] = { 0 };
	int found = 0;

	if (!make_preference(p, &preference, align, deterministic) &&
	    !c->cublasLtMatmulAlgoGetHeuristic(p->module->blas, p->desc, p->b, p->a, p->d, p->d, preference, asked, way,
					       &found) &&
	    found > 0 && way[0].state == CUBLAS_STATUS_SUCCESS) {
		const cublasLtMatmulHeuristicResult_t *best = &way[fastest(p, s, way, found)];

		p->choice.has[fit] = true;
		p->choice.algorithm[fit] = best->algo;
		p->choice.workspace[fit] = best->workspaceSize;
	}
	if (preference)
		c->cublasLtMatmulPreferenceDestroy(preference);
}

/* The library looks at the alignment of the bias' address. */
static void expect_bias(const struct blas_plan *p, const struct matmul_spec *s, enum fit fit)
{
	const uintptr_t address = fit == FIT_WIDE ? BLAS_ALIGN : (uintptr_t)dtype_bytes(s->out);

	if (p->choice.adds_bias)
		set_bias(p, (const void *)address);
}

static void choose_both(struct blas_plan *p, const struct matmul_spec *s, bool deterministic)
{
	expect_bias(p, s, FIT_WIDE);
	choose(p, s, FIT_WIDE, BLAS_ALIGN, deterministic);
	expect_bias(p, s, FIT_ANY);
	choose(p, s, FIT_ANY, (uint32_t)dtype_bytes(s->in), deterministic);
}

static cublasStatus_t set_epilogue(struct blas_plan *p, bool bias)
{
	const cublasLtEpilogue_t epilogue = bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;

	return set(p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue));
}

/* With a bias, which is of D's type, in the product where the library has that for these types, else without. */
static cublasStatus_t choose_epilogue(struct blas_plan *p, const struct matmul_spec *s, bool deterministic)
{
	p->choice.adds_bias = s->bias && !set_epilogue(p, true);
	if (p->choice.adds_bias)
		choose_both(p, s, deterministic);
	if (p->choice.has[FIT_WIDE])
		return CUBLAS_STATUS_SUCCESS;
	memset(&p->choice, 0, sizeof(p->choice));
	if (set_epilogue(p, false))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	choose_both(p, s, deterministic);
	return p->choice.has[FIT_WIDE] ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* Everything that the choice depends on. */
static void key_of(char *key, size_t n, const struct blas_plan *p, const struct matmul_spec *s, bool deterministic)
{
	snprintf(key, n, "product %lld %lld %lld %s %s%s%s %lld %lld %lld%s%s%s", (long long)s->m, (long long)s->n,
		 (long long)s->k, dtype_name(s->in), dtype_name(s->out), s->a_turned ? " a" : "",
		 s->b_turned ? " b" : "",
		 (long long)s->a_pitch, (long long)s->b_pitch, (long long)s->d_pitch, s->bias ? " bias" : "",
		 p->module->tf32 ? " tf32" : "", deterministic ? " deterministic" : "");
}

/* Whether the library still takes what it has recommended. */
static bool is_valid(const struct blas_plan *p, const struct matmul_spec *s, enum fit fit)
{
	const struct cuda_calls *c = &p->module->calls;
	cublasLtMatmulHeuristicResult_t found = { 0 };

	expect_bias(p, s, fit);
	return !c->cublasLtMatmulAlgoCheck(p->module->blas, p->desc, p->b, p->a, p->d, p->d, &p->choice.algorithm[fit],
					   &found) &&
	       found.state == CUBLAS_STATUS_SUCCESS && found.workspaceSize <= p->choice.workspace[fit];
}

static bool recall(struct blas_plan *p, const struct matmul_spec *s, const char *key)
{
	size_t n = 0;
	const void *known = plan_cache_find(p->module->kept, key, &n);
	bool valid = known && n == sizeof(p->choice);

	if (valid) {
		memcpy(&p->choice, known, n);
		valid = !set_epilogue(p, p->choice.adds_bias);
	}
	for (int fit = 0; fit < FITS; fit++)
		valid = valid && (!p->choice.has[fit] || is_valid(p, s, (enum fit)fit));
	if (!valid)
		memset(&p->choice, 0, sizeof(p->choice));
	return valid;
}

/* As it was chosen before for the same product, here or in an earlier run; else now. */
static cublasStatus_t choose_once(struct blas_plan *p, const struct matmul_spec *s, bool deterministic)
{
	char key[256];
	cublasStatus_t status;

	key_of(key, sizeof(key), p, s, deterministic);
	if (recall(p, s, key))
		return CUBLAS_STATUS_SUCCESS;
	status = choose_epilogue(p, s, deterministic);
	if (!status)
		plan_cache_put(p->module->kept, key, &p->choice, sizeof(p->choice));
	return status;
}

static void fill_offer(struct blas_offer *ret, const struct blas_plan *p)
{
	const struct choice *c = &p->choice;
	const size_t most = c->workspace[FIT_WIDE] > c->workspace[FIT_ANY] ? c->workspace[FIT_WIDE]
									   : c->workspace[FIT_ANY];

	ret->wide = c->has[FIT_WIDE];
	ret->any = c->has[FIT_ANY];
	ret->adds_bias = c->adds_bias;
	ret->workspace = most ? most + WORKSPACE_ALIGN : 0; /* the plan aligns it less than the library wants it */
}

/* The library chooses nothing without a device: a plan for one that is not here has room for the most that it may
 * take. */
static void expect(struct blas_offer *ret)
{
	*ret = (struct blas_offer){ .any = true,
				    .wide = true,
				    .adds_bias = true,
				    .workspace = WORKSPACE_MAX + WORKSPACE_ALIGN };
}

int blas_plan_new(struct blas_plan **ret, struct blas_offer *ret_offer, const struct kernel_env *env,
		  const struct matmul_spec *spec, struct err *err)
{
	const struct cuda_module *m = env->module;
	struct blas_plan *p;
	cublasStatus_t status;

	if (m && m->described) {
		expect(ret_offer);
		return 0;
	}
	if (!m || !m->blas)
		return err_set(err, ERR_UNSUPPORTED, "cuBLASLt is not open");
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(err, ERR_NOMEM, "cuda: out of memory: product");
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

int blas_plan_run(struct blas_plan *p, const struct node *n, const struct matmul_operands *o, bool wide,
		  struct err *err)
{
	const uintptr_t room = ((uintptr_t)o->workspace + WORKSPACE_ALIGN - 1) / WORKSPACE_ALIGN * WORKSPACE_ALIGN;
	const enum fit fit = wide ? FIT_WIDE : FIT_ANY;
	struct matmul_operands aligned = *o;
	cublasStatus_t status = p->choice.adds_bias ? set_bias(p, o->bias) : CUBLAS_STATUS_SUCCESS;

	aligned.workspace = (void *)room;
	if (!status)
		status = multiply(p, &aligned, &p->choice.algorithm[fit], p->choice.workspace[fit]);
	return status ? refused(p->module, status, n->name, err) : 0;
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
	return err_set(err, ERR_UNSUPPORTED, "cuBLASLt is left out");
}

void blas_plan_free(struct blas_plan *p)
{
	(void)p;
}

int blas_plan_run(struct blas_plan *p, const struct node *n, const struct matmul_operands *o, bool wide,
		  struct err *err)
{
	(void)p, (void)o, (void)wide;
	return err_set(err, ERR_UNSUPPORTED, "cuda: %s: cuBLASLt is left out", n->name);
}

#endif
