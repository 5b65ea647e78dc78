/* SPDX-License-Identifier: Apache-2.0 */
/* cublaslt.c: cuBLASLt on the fake device: plain products as the descriptors specify. It offers and refuses what the
 * library's documentation lists; undefined calls end the process with a line.
 * $DPTRAIN_FAKE_CUBLASLT_VERSION: its version; $DPTRAIN_FAKE_CUBLASLT_WORKSPACE: bytes that its algorithms need.
 * Each query for algorithms is noted (enqueue.h).
 *
 * TF32 rounds factors to 10 bits, as the GPU does, so that a test sees where it is used. */
#include <cublasLt.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakes/cuda/enqueue.h"
#include "tests/fakes/cuda/tf32.h"
#include "trainer/ops/cast/float16.h"

struct layout {
	cudaDataType type;
	int64_t rows, columns, pitch; /* column-major */
};

struct desc {
	cublasComputeType_t compute;
	cudaDataType scale;
	int32_t turned[2];
	uint32_t epilogue;
	const void *bias;
	int32_t bias_type; /* -1: D's */
};

struct preference {
	uint64_t workspace;
	uint32_t schemes, align[4];
};

/* What an algorithm was made for; stored in the library's opaque struct. */
struct algorithm {
	uint64_t of; /* digest */
	uint32_t align;
	uint32_t workspace;
};

_Static_assert(sizeof(struct algorithm) <= sizeof(cublasLtMatmulAlgo_t), "an algorithm fits");

static long number(const char *name, long usual)
{
	const char *given = getenv(name);

	return given ? strtol(given, NULL, 10) : usual;
}

static void __attribute__((noreturn)) wrong(const char *what)
{
	fprintf(stderr, "fake cuBLASLt: %s\n", what);
	abort();
}

size_t cublasLtGetVersion(void)
{
	return (size_t)number("DPTRAIN_FAKE_CUBLASLT_VERSION", 130100);
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
	return status == CUBLAS_STATUS_NOT_SUPPORTED   ? "the requested functionality is not supported"
	       : status == CUBLAS_STATUS_INVALID_VALUE ? "an unsupported value or parameter was passed to the function"
						       : "an error of the fake";
}

struct cublasLtContext {
	int open;
};

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
	*handle = calloc(1, sizeof(struct cublasLtContext));
	return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
	free(handle);
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- descriptors ---- */

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *ret, cudaDataType type, uint64_t rows,
					  uint64_t columns, int64_t pitch)
{
	struct layout *l = calloc(1, sizeof(*l));

	if (!l)
		return CUBLAS_STATUS_ALLOC_FAILED;
	*l = (struct layout){ type, (int64_t)rows, (int64_t)columns, pitch };
	*ret = (cublasLtMatrixLayout_t)l;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
	free(layout);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *ret, cublasComputeType_t compute, cudaDataType_t scale)
{
	struct desc *d = calloc(1, sizeof(*d));

	if (!d)
		return CUBLAS_STATUS_ALLOC_FAILED;
	*d = (struct desc){ .compute = compute,
			    .scale = scale,
			    .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
			    .bias_type = -1 };
	*ret = (cublasLtMatmulDesc_t)d;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
	free(desc);
	return CUBLAS_STATUS_SUCCESS;
}

/* A field of a descriptor; the value must have its size. */
struct field {
	int attribute;
	size_t offset, bytes;
};

static cublasStatus_t put(void *of, const struct field *fields, int attribute, const void *value, size_t bytes)
{
	const struct field *f = fields;

	while (f->bytes && f->attribute != attribute)
		f++;
	if (!f->bytes || f->bytes != bytes || !value)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy((char *)of + f->offset, value, bytes);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
					      const void *value, size_t bytes)
{
	static const struct field fields[] = {
		{ CUBLASLT_MATMUL_DESC_TRANSA, offsetof(struct desc, turned[0]), 4 },
		{ CUBLASLT_MATMUL_DESC_TRANSB, offsetof(struct desc, turned[1]), 4 },
		{ CUBLASLT_MATMUL_DESC_EPILOGUE, offsetof(struct desc, epilogue), 4 },
		{ CUBLASLT_MATMUL_DESC_BIAS_POINTER, offsetof(struct desc, bias), sizeof(void *) },
		{ CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, offsetof(struct desc, bias_type), 4 },
		{ 0, 0, 0 },
	};

	return put(desc, fields, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *ret)
{
	struct preference *p = calloc(1, sizeof(*p));

	if (!p)
		return CUBLAS_STATUS_ALLOC_FAILED;
	p->schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
	for (int i = 0; i < 4; i++)
		p->align[i] = 256;
	*ret = (cublasLtMatmulPreference_t)p;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
	free(preference);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
						    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
						    size_t bytes)
{
	static const struct field fields[] = {
		{ CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, offsetof(struct preference, workspace), 8 },
		{ CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, offsetof(struct preference, schemes), 4 },
		{ CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, offsetof(struct preference, align[0]), 4 },
		{ CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, offsetof(struct preference, align[1]), 4 },
		{ CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, offsetof(struct preference, align[2]), 4 },
		{ CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, offsetof(struct preference, align[3]), 4 },
		{ 0, 0, 0 },
	};

	return put(preference, fields, attribute, value, bytes);
}

/* ---- offered algorithms ---- */

struct problem {
	struct desc desc;
	struct layout a, b, c, d;
};

static int64_t sides(const struct layout *l, int32_t turned, bool second)
{
	return turned == CUBLAS_OP_N ? (second ? l->columns : l->rows) : (second ? l->rows : l->columns);
}

static bool fits(const struct problem *p)
{
	const int64_t m = p->d.rows, n = p->d.columns, k = sides(&p->a, p->desc.turned[0], true);
	const struct layout *all[] = { &p->a, &p->b, &p->c, &p->d };

	for (int i = 0; i < 4; i++)
		if (all[i]->pitch < all[i]->rows || all[i]->rows < 1 || all[i]->columns < 1)
			return false;
	return sides(&p->a, p->desc.turned[0], false) == m && sides(&p->b, p->desc.turned[1], false) == k &&
	       sides(&p->b, p->desc.turned[1], true) == n && p->c.rows == m && p->c.columns == n &&
	       p->c.pitch >= m;
}

/* Rows of the library's table of types that the trainer uses. */
static bool has_types(const struct problem *p)
{
	static const struct {
		cudaDataType scale, ab, cd;
		bool tf32;
	} table[] = {
		{ CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, false },	{ CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, true },
		{ CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF, false }, { CUDA_R_32F, CUDA_R_16BF, CUDA_R_32F, false },
		{ CUDA_R_32F, CUDA_R_16F, CUDA_R_16F, false },	{ CUDA_R_32F, CUDA_R_16F, CUDA_R_32F, false },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const cublasComputeType_t usual =
			table[i].scale == CUDA_R_64F ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
		const bool tf32 = table[i].tf32 && p->desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
		const bool types = p->a.type == table[i].ab && p->b.type == table[i].ab && p->c.type == table[i].cd &&
				   p->d.type == table[i].cd && p->desc.scale == table[i].scale;

		if (types && (tf32 || p->desc.compute == usual))
			return true;
	}
	return false;
}

/* A bias has D's type. */
static bool has_epilogue(const struct problem *p)
{
	if (p->desc.epilogue == CUBLASLT_EPILOGUE_DEFAULT)
		return true;
	return p->desc.epilogue == CUBLASLT_EPILOGUE_BIAS &&
	       (p->desc.bias_type == -1 || p->desc.bias_type == (int32_t)p->d.type);
}

static size_t width(cudaDataType type)
{
	return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

/* Digest of everything except the bias address. */
static uint64_t digest(const struct problem *p)
{
	struct problem q = *p;
	uint64_t sum = 14695981039346656037u;

	q.desc.bias = NULL;
	for (size_t i = 0; i < sizeof(q) / 4; i++) {
		uint32_t word;

		memcpy(&word, (const char *)&q + 4 * i, 4);
		sum = (sum ^ word) * 1099511628211u;
	}
	return sum;
}

static bool pitches_are_wide(const struct problem *p)
{
	const struct layout *all[] = { &p->a, &p->b, &p->c, &p->d };

	for (int i = 0; i < 4; i++)
		if (all[i]->pitch * (int64_t)width(all[i]->type) % 16)
			return false;
	return true;
}

/* Aligned to 16 bytes if operands and pitches are known to be, otherwise to elements. */
static uint32_t alignment(const struct problem *p, const struct preference *f)
{
	uint32_t least = 256;

	for (int i = 0; i < 4; i++)
		least = f->align[i] < least ? f->align[i] : least;
	return least >= 16 && pitches_are_wide(p) ? 16 : (uint32_t)width(p->a.type);
}

static struct problem problem_of(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
				 cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d)
{
	struct problem p;

	memset(&p, 0, sizeof(p)); /* its padding is part of the digest */
	memcpy(&p.desc, desc, sizeof(p.desc));
	memcpy(&p.a, a, sizeof(p.a));
	memcpy(&p.b, b, sizeof(p.b));
	memcpy(&p.c, c, sizeof(p.c));
	memcpy(&p.d, d, sizeof(p.d));
	return p;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
					      cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
					      cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
					      cublasLtMatmulPreference_t preference, int asked,
					      cublasLtMatmulHeuristicResult_t *ret, int *ret_n)
{
	const struct problem p = problem_of(desc, a, b, c, d);
	const struct preference *f = (const struct preference *)preference;
	struct algorithm found = { digest(&p), alignment(&p, f), 0 };

	fake_note("algorithms");
	*ret_n = 0;
	if (!handle || asked < 1 || !fits(&p))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!has_types(&p) || !has_epilogue(&p))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (p.desc.epilogue == CUBLASLT_EPILOGUE_BIAS && (uintptr_t)p.desc.bias % found.align)
		found.align = (uint32_t)width(p.a.type);
	found.workspace = (uint32_t)number("DPTRAIN_FAKE_CUBLASLT_WORKSPACE", 4096);
	if (found.workspace > f->workspace)
		found.workspace = 0;
	memset(ret, 0, sizeof(*ret));
	memcpy(&ret->algo, &found, sizeof(found));
	ret->workspaceSize = found.workspace;
	ret->state = CUBLAS_STATUS_SUCCESS;
	*ret_n = 1;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
				       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
				       const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *ret)
{
	const struct problem p = problem_of(desc, a, b, c, d);
	struct algorithm algorithm;

	memcpy(&algorithm, algo, sizeof(algorithm));
	if (!handle || !fits(&p) || algorithm.of != digest(&p))
		return CUBLAS_STATUS_INVALID_VALUE;
	memset(ret, 0, sizeof(*ret)); /* the algorithm is not returned */
	ret->workspaceSize = algorithm.workspace;
	ret->state = CUBLAS_STATUS_SUCCESS;
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- products ---- */

struct product {
	struct problem p;
	double alpha, beta;
	const void *a, *b, *c;
	void *d, *workspace;
	size_t workspace_bytes;
};

static double element(const void *at, cudaDataType type, int64_t i)
{
	switch (type) {
	case CUDA_R_64F:
		return ((const double *)at)[i];
	case CUDA_R_32F:
		return ((const float *)at)[i];
	case CUDA_R_16BF:
		return bf16_to_float(((const uint16_t *)at)[i]);
	default:
		return f16_to_float(((const uint16_t *)at)[i]);
	}
}

static void put_element(void *at, cudaDataType type, int64_t i, double v)
{
	switch (type) {
	case CUDA_R_64F:
		((double *)at)[i] = v;
		break;
	case CUDA_R_32F:
		((float *)at)[i] = (float)v;
		break;
	case CUDA_R_16BF:
		((uint16_t *)at)[i] = bf16_from_float((float)v);
		break;
	default:
		((uint16_t *)at)[i] = f16_from_float((float)v);
	}
}

/* op(X), row-major or column-major. */
static double *unpacked(const struct product *m, const struct layout *l, const void *from, int32_t turned, bool by_rows)
{
	const int64_t rows = sides(l, turned, false), columns = sides(l, turned, true);
	double *to = malloc((size_t)(rows * columns) * sizeof(*to));

	if (!to)
		wrong("out of memory");
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++) {
			double v = element(from, l->type, turned == CUBLAS_OP_N ? j * l->pitch + i : i * l->pitch + j);

			if (m->p.desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32)
				v = to_tf32((float)v);
			to[by_rows ? i * columns + j : j * rows + i] = v;
		}
	return to;
}

static double dot(const double *a, const double *b, int64_t n, bool f64)
{
	double wide = 0;
	float narrow = 0;

	for (int64_t i = 0; i < n && f64; i++)
		wide += a[i] * b[i];
	for (int64_t i = 0; i < n && !f64; i++)
		narrow += (float)a[i] * (float)b[i];
	return f64 ? wide : narrow;
}

/* Previous values of D do not matter if beta is 0. */
static void multiply(const void *operands)
{
	const struct product *m = operands;
	const struct desc *desc = &m->p.desc;
	const struct layout *d = &m->p.d;
	const int64_t k = sides(&m->p.a, desc->turned[0], true);
	double *a = unpacked(m, &m->p.a, m->a, desc->turned[0], true);
	double *b = unpacked(m, &m->p.b, m->b, desc->turned[1], false);

	memset(m->workspace, 0xff, m->workspace_bytes);
	for (int64_t j = 0; j < d->columns; j++)
		for (int64_t i = 0; i < d->rows; i++) {
			double v = m->alpha * dot(a + i * k, b + j * k, k, desc->scale == CUDA_R_64F);

			if (m->beta != 0)
				v += m->beta * element(m->c, m->p.c.type, j * m->p.c.pitch + i);
			if (desc->epilogue == CUBLASLT_EPILOGUE_BIAS)
				v += element(desc->bias, d->type, i);
			put_element(m->d, d->type, j * d->pitch + i, v);
		}
	free(a);
	free(b);
}

static void check_addresses(const struct product *m, const struct algorithm *algorithm)
{
	const uintptr_t all = (uintptr_t)m->a | (uintptr_t)m->b | (uintptr_t)m->c | (uintptr_t)m->d;

	if (all % algorithm->align)
		wrong("an operand is less aligned than the algorithm was chosen for");
	if (m->workspace_bytes && (uintptr_t)m->workspace % 256)
		wrong("the workspace is not aligned to 256 bytes");
	if (!m->a || !m->b || !m->d || (m->workspace_bytes && !m->workspace))
		wrong("an operand is NULL");
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
			      cublasLtMatrixLayout_t a_is, const void *b, cublasLtMatrixLayout_t b_is, const void *beta,
			      const void *c, cublasLtMatrixLayout_t c_is, void *d, cublasLtMatrixLayout_t d_is,
			      const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes,
			      cudaStream_t stream)
{
	struct product m = { .p = problem_of(desc, a_is, b_is, c_is, d_is),
			     .a = a,
			     .b = b,
			     .c = c,
			     .d = d,
			     .workspace = workspace,
			     .workspace_bytes = workspace_bytes };
	struct algorithm algorithm;

	if (!handle || !algo || !fits(&m.p))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(&algorithm, algo, sizeof(algorithm));
	if (algorithm.of != digest(&m.p) || workspace_bytes < algorithm.workspace)
		return CUBLAS_STATUS_INVALID_VALUE;
	m.alpha = element(alpha, m.p.desc.scale, 0);
	m.beta = element(beta, m.p.desc.scale, 0);
	check_addresses(&m, &algorithm);
	fake_enqueue(stream, multiply, &m, sizeof(m));
	return CUBLAS_STATUS_SUCCESS;
}
