/* SPDX-License-Identifier: Apache-2.0 */
/* conformance_libraries.c: rows of cuBLASLt, cuDNN and NCCL, opened as the module opens them. All numbers are small
 * integers, so results are exact in any order of sums. tests/ops checks the results of every op. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/gpu/conformance.h"
#include "trainer/backends/cuda/calls.h"
#include "trainer/backends/cuda/conv_plan.h"
#include "trainer/backends/cuda/cudnn_plan.h"
#include "trainer/backends/cuda/plan_cache.h"

#define TEXT_BYTES 300

static struct cuda_calls calls;

/* Returns NULL if it is open; otherwise the reason, as the result of a row. */
static const char *open_library(enum cuda_library which)
{
	static char text[TEXT_BYTES + 64];
	struct err err = ERR_INIT;

	if (which == CUDA_CUDNN) /* which loads NVRTC by name */
		cuda_calls_open(&calls, CUDA_NVRTC, NULL);
	if (!cuda_calls_open(&calls, which, &err))
		return NULL;
	snprintf(text, sizeof(text), CONFORMANCE_LEFT_OUT "%.*s", TEXT_BYTES, err.text);
	return text;
}

#ifdef HAVE_CUBLASLT

#define M 8 /* rows of D, columns of D, length of the sums: multiples of 16 bytes */
#define N 12
#define K 16

/* D = A B, column-major: A is M x K, B is K x N, each as it is or transposed. */
struct product {
	bool a_turned, b_turned, bias;
	int k_of_b;   /* K if the factors match */
	float add;    /* beta */
	cudaStream_t stream;
	cublasLtHandle_t handle;
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, d;
	float *memory; /* device: a, b, d, bias */
};

#define A_AT 0
#define B_AT (A_AT + M * K)
#define D_AT (B_AT + K * N)
#define BIAS_AT (D_AT + M * N)
#define FLOATS (BIAS_AT + M)

static float a_of(int i, int l)
{
	return (float)((3 * i + l) % 7 - 3);
}

static float b_of(int l, int j)
{
	return (float)((2 * l + 5 * j) % 9 - 4);
}

static void fill(const struct product *p, float to[FLOATS])
{
	for (int i = 0; i < M; i++)
		for (int l = 0; l < K; l++)
			to[A_AT + (p->a_turned ? i * K + l : l * M + i)] = a_of(i, l);
	for (int l = 0; l < K; l++)
		for (int j = 0; j < N; j++)
			to[B_AT + (p->b_turned ? l * N + j : j * K + l)] = b_of(l, j);
	for (int i = 0; i < M * N; i++)
		to[D_AT + i] = (float)i;
	for (int i = 0; i < M; i++)
		to[BIAS_AT + i] = (float)(10 * i);
}

static float want(const struct product *p, int i, int j)
{
	float sum = p->add * (float)(j * M + i) + (p->bias ? (float)(10 * i) : 0);

	for (int l = 0; l < K; l++)
		sum += a_of(i, l) * b_of(l, j);
	return sum;
}

static cublasStatus_t set(const struct product *p, cublasLtMatmulDescAttributes_t what, const void *value, size_t bytes)
{
	return calls.cublasLtMatmulDescSetAttribute(p->desc, what, value, bytes);
}

static cublasStatus_t describe(struct product *p)
{
	const cublasOperation_t ops[] = { CUBLAS_OP_N, CUBLAS_OP_T };
	const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
	const float *bias = p->memory + BIAS_AT;
	cublasStatus_t rc = calls.cublasLtMatmulDescCreate(&p->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);

	if (!rc)
		rc = set(p, CUBLASLT_MATMUL_DESC_TRANSA, &ops[p->a_turned], sizeof(ops[0]));
	if (!rc)
		rc = set(p, CUBLASLT_MATMUL_DESC_TRANSB, &ops[p->b_turned], sizeof(ops[0]));
	if (!rc && p->bias)
		rc = set(p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue));
	if (!rc && p->bias)
		rc = set(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
	if (!rc)
		rc = calls.cublasLtMatrixLayoutCreate(&p->a, CUDA_R_32F, p->a_turned ? K : M, p->a_turned ? M : K,
						      p->a_turned ? K : M);
	if (!rc)
		rc = calls.cublasLtMatrixLayoutCreate(&p->b, CUDA_R_32F, p->b_turned ? N : (uint64_t)p->k_of_b,
						      p->b_turned ? (uint64_t)p->k_of_b : N,
						      p->b_turned ? N : p->k_of_b);
	return rc ? rc : calls.cublasLtMatrixLayoutCreate(&p->d, CUDA_R_32F, M, N, M);
}

/* Queries without a workspace. */
static cublasStatus_t query(const struct product *p, cublasLtMatmulHeuristicResult_t *ret, int *ret_n)
{
	cublasLtMatmulPreference_t preference = NULL;
	cublasStatus_t rc = calls.cublasLtMatmulPreferenceCreate(&preference);

	if (!rc)
		rc = calls.cublasLtMatmulAlgoGetHeuristic(p->handle, p->desc, p->a, p->b, p->d, p->d, preference, 1,
							  ret, ret_n);
	if (preference)
		calls.cublasLtMatmulPreferenceDestroy(preference);
	return rc;
}

static cublasStatus_t multiply_by(const struct product *p, const cublasLtMatmulAlgo_t *algorithm)
{
	const float one = 1;

	return calls.cublasLtMatmul(p->handle, p->desc, &one, p->memory + A_AT, p->a, p->memory + B_AT, p->b, &p->add,
				    p->memory + D_AT, p->d, p->memory + D_AT, p->d, algorithm, NULL, 0, p->stream);
}

static cublasStatus_t multiply(const struct product *p)
{
	cublasLtMatmulHeuristicResult_t found;
	int n = 0;
	cublasStatus_t rc = query(p, &found, &n);

	if (rc || n != 1 || found.state)
		return rc ? rc : CUBLAS_STATUS_NOT_SUPPORTED;
	return multiply_by(p, &found.algo);
}

static void product_done(struct product *p)
{
	cublasLtMatrixLayout_t own[] = { p->a, p->b, p->d };

	for (int i = 0; i < 3; i++)
		if (own[i])
			calls.cublasLtMatrixLayoutDestroy(own[i]);
	if (p->desc)
		calls.cublasLtMatmulDescDestroy(p->desc);
	if (p->handle)
		calls.cublasLtDestroy(p->handle);
	if (p->stream)
		cudaStreamDestroy(p->stream);
	cudaFree(p->memory);
}

static const char *product_new(struct product *p)
{
	const char *closed = open_library(CUDA_CUBLASLT);
	float values[FLOATS];

	if (closed)
		return closed;
	fill(p, values);
	if (cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking) ||
	    cudaMalloc((void **)&p->memory, sizeof(values)) ||
	    cudaMemcpy(p->memory, values, sizeof(values), cudaMemcpyDefault) || cudaStreamSynchronize(NULL))
		return "no memory on the device";
	if (calls.cublasLtCreate(&p->handle) || describe(p))
		return "the product cannot be described";
	return NULL;
}

static const char *sums(const struct product *p)
{
	float d[M * N];

	if (cudaStreamSynchronize(p->stream) || cudaMemcpy(d, p->memory + D_AT, sizeof(d), cudaMemcpyDefault))
		return "the device failed";
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++)
			if (d[j * M + i] < want(p, i, j) || d[j * M + i] > want(p, i, j))
				return "a sum is wrong";
	return NULL;
}

static const char *multiplies(struct product p)
{
	const char *found = product_new(&p);

	if (!found && multiply(&p))
		found = "no product";
	if (!found)
		found = sums(&p);
	product_done(&p);
	return found;
}

/* An algorithm's bytes, used with another handle and other descriptors of the same product: as in the plan cache. */
static const char *algorithm_by_bytes(void)
{
	struct product first = { .k_of_b = K }, second = { .k_of_b = K };
	cublasLtMatmulHeuristicResult_t found, again;
	unsigned char bytes[sizeof(found.algo)] = { 0 };
	const char *why = product_new(&first);
	int n = 0;

	if (!why && (query(&first, &found, &n) || n != 1))
		why = "no algorithm";
	if (!why)
		memcpy(bytes, &found.algo, sizeof(bytes));
	product_done(&first);
	why = why ? why : product_new(&second);
	memset(&found, 0, sizeof(found));
	memcpy(&found.algo, bytes, sizeof(bytes));
	if (!why && calls.cublasLtMatmulAlgoCheck(second.handle, second.desc, second.a, second.b, second.d, second.d,
						  &found.algo, &again))
		why = "the check refuses it";
	if (!why && multiply_by(&second, &found.algo))
		why = "no product";
	if (!why)
		why = sums(&second);
	product_done(&second);
	return why;
}

static const char *turned_factors(void)
{
	for (int i = 0; i < 4; i++) {
		const char *found = multiplies((struct product){ .a_turned = i & 1, .b_turned = i & 2, .k_of_b = K });

		if (found)
			return found;
	}
	return NULL;
}

static const char *beta_adds(void)
{
	return multiplies((struct product){ .k_of_b = K, .add = 1 });
}

static const char *bias_by_row(void)
{
	return multiplies((struct product){ .k_of_b = K, .bias = true });
}

static const char *factors_must_meet(void)
{
	struct product p = { .k_of_b = K + 4 };
	cublasLtMatmulHeuristicResult_t first;
	const char *found = product_new(&p);
	int n = 0;

	if (!found && !query(&p, &first, &n) && n)
		found = "an algorithm is offered for factors that do not match";
	product_done(&p);
	return found;
}

#else

static const char *turned_factors(void)
{
	return open_library(CUDA_CUBLASLT);
}

static const char *beta_adds(void)
{
	return open_library(CUDA_CUBLASLT);
}

static const char *bias_by_row(void)
{
	return open_library(CUDA_CUBLASLT);
}

static const char *factors_must_meet(void)
{
	return open_library(CUDA_CUBLASLT);
}

static const char *algorithm_by_bytes(void)
{
	return open_library(CUDA_CUBLASLT);
}

#endif

static const char *tensor_needs_sizes(void)
{
	const char *closed = open_library(CUDA_CUDNN);
#ifdef HAVE_CUDNN
	cudnnBackendDescriptor_t d = NULL;
	bool finished;

	if (closed)
		return closed;
	if (calls.cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &d))
		return "no descriptor of a tensor";
	finished = calls.cudnnBackendFinalize(d) == CUDNN_STATUS_SUCCESS;
	calls.cudnnBackendDestroyDescriptor(d);
	return finished ? "a tensor without sizes is accepted" : NULL;
#else
	return closed;
#endif
}

#ifdef HAVE_CUDNN

#define SIDE 4
#define CHANNELS 8
#define PIXELS (SIDE * SIDE * CHANNELS)
#define WEIGHTS (9 * CHANNELS * CHANNELS)

struct images { /* on the device: one image of ones, weights of ones, the result; a workspace */
	float *x, *w, *y;
	void *room;
	cudaStream_t stream;
};

static const char *images_new(struct images *m, size_t room)
{
	static float ones[WEIGHTS];

	for (int i = 0; i < WEIGHTS; i++)
		ones[i] = 1;
	if (cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking) || cudaMalloc((void **)&m->x, PIXELS * 4) ||
	    cudaMalloc((void **)&m->w, WEIGHTS * 4) || cudaMalloc((void **)&m->y, PIXELS * 4) ||
	    cudaMalloc(&m->room, room + 1) || cudaMemcpy(m->x, ones, PIXELS * 4, cudaMemcpyDefault) ||
	    cudaMemcpy(m->w, ones, WEIGHTS * 4, cudaMemcpyDefault) || cudaStreamSynchronize(NULL))
		return "no memory on the device";
	return NULL;
}

static void images_done(struct images *m)
{
	if (m->stream)
		cudaStreamDestroy(m->stream);
	cudaFree(m->x);
	cudaFree(m->w);
	cudaFree(m->y);
	cudaFree(m->room);
}

/* Each sum has as many ones as there are pixels under the window. */
static const char *check_image(const struct images *m)
{
	float y[PIXELS];

	if (cudaStreamSynchronize(m->stream) || cudaMemcpy(y, m->y, sizeof(y), cudaMemcpyDefault))
		return "the device failed";
	for (int i = 0; i < PIXELS; i++) {
		const int row = i / CHANNELS / SIDE, column = i / CHANNELS % SIDE;
		const int high = row % (SIDE - 1) ? 3 : 2, wide = column % (SIDE - 1) ? 3 : 2;

		if ((int)y[i] != CHANNELS * high * wide)
			return "a sum is wrong";
	}
	return NULL;
}

static const char *convolve(struct cuda_module *m, bool recalled)
{
	const struct conv_spec spec = { .pass = CONV_FORWARD, .type = DTYPE_F32, .n = 1, .h = SIDE, .w = SIDE,
					.c = CHANNELS, .k = CHANNELS, .p = SIDE, .q = SIDE, .kernel = 3, .stride = 1,
					.pad = 1 };
	const struct node node = { .name = "a convolution" };
	const struct kernel_env env = { .module = m };
	struct images of = { NULL };
	struct dnn_plan *plan = NULL;
	struct err err = ERR_INIT;
	const char *found = NULL;

	if (conv_plan_new(&plan, &env, &spec, &err))
		return "no plan";
	if (dnn_plan_recalled(plan) != recalled)
		found = recalled ? "a plan's text gives no plan" : "a plan was cached before there was one";
	found = found ? found : images_new(&of, conv_plan_workspace(plan));
	const struct conv_operands operands = { of.x, of.w, of.y, of.room, (struct stream_handle *)of.stream };

	if (!found)
		conv_plan_run(plan, &node, &operands);
	if (!found && m->failed.code)
		found = "it does not run";
	if (!found)
		found = check_image(&of);
	images_done(&of);
	conv_plan_free(plan);
	return found;
}

static const char *plan_by_text(void)
{
	const char *found = open_library(CUDA_CUDNN);
	struct cuda_module m = { .calls = calls };
	struct err err = ERR_INIT;

	if (!found && dnn_open(&m, &err))
		found = "no handle";
	if (found)
		return found;
	m.kept = plan_cache_open(NULL, &err);
	found = convolve(&m, false);
	if (!found)
		found = convolve(&m, true);
	dnn_close(&m);
	plan_cache_close(m.kept);
	return found;
}

#else

static const char *plan_by_text(void)
{
	return open_library(CUDA_CUDNN);
}

#endif

#ifdef HAVE_NCCL

#define COUNT 100

struct lone { /* the only rank of a communicator */
	ncclComm_t comm;
	cudaStream_t stream;
	float *from, *to; /* device, COUNT each */
};

static const char *lone_new(struct lone *l)
{
	const char *closed = open_library(CUDA_NCCL);
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclResult_t state = ncclInProgress;
	ncclUniqueId id;
	float values[COUNT];

	if (closed)
		return closed;
	for (int i = 0; i < COUNT; i++)
		values[i] = (float)i;
	config.blocking = 0;
	if (cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking) ||
	    cudaMalloc((void **)&l->from, sizeof(values)) || cudaMalloc((void **)&l->to, sizeof(values)) ||
	    cudaMemcpy(l->from, values, sizeof(values), cudaMemcpyDefault) || cudaMemset(l->to, 0, sizeof(values)) ||
	    cudaStreamSynchronize(NULL))
		return "no memory on the device";
	if (calls.ncclGetUniqueId(&id))
		return "no id";
	state = calls.ncclCommInitRankConfig(&l->comm, 1, id, 0, &config);
	while (state == ncclInProgress && !calls.ncclCommGetAsyncError(l->comm, &state) && state == ncclInProgress)
		usleep(1000);
	return state == ncclSuccess ? NULL : "a communicator of one rank does not open";
}

static void lone_done(struct lone *l)
{
	if (l->comm)
		calls.ncclCommAbort(l->comm);
	if (l->stream)
		cudaStreamDestroy(l->stream);
	cudaFree(l->from);
	cudaFree(l->to);
}

/* The result of a call, once it is accepted. */
static ncclResult_t taken(const struct lone *l, ncclResult_t rc)
{
	while (rc == ncclInProgress) {
		usleep(100);
		if (calls.ncclCommGetAsyncError(l->comm, &rc))
			return ncclInternalError;
	}
	return rc;
}

static const char *values_of(const struct lone *l, const float *at, float first, int zeros_from)
{
	float values[COUNT];

	if (cudaStreamSynchronize(l->stream) || cudaMemcpy(values, at, sizeof(values), cudaMemcpyDefault))
		return "the device failed";
	for (int i = 0; i < COUNT; i++) {
		const float want = i < zeros_from ? first + (float)i : 0;

		if (values[i] < want || values[i] > want)
			return "a value is wrong";
	}
	return NULL;
}

static const char *one_rank_copies(void)
{
	struct lone l = { 0 };
	const char *found = lone_new(&l);

	if (!found && taken(&l, calls.ncclAllReduce(l.from, l.to, COUNT, ncclFloat32, ncclSum, l.comm, l.stream)))
		found = "no sum";
	if (!found)
		found = values_of(&l, l.to, 0, COUNT);
	if (!found && taken(&l, calls.ncclAllGather(l.from, l.to, COUNT, ncclFloat32, l.comm, l.stream)))
		found = "no gather";
	if (!found && taken(&l, calls.ncclReduceScatter(l.from, l.to, COUNT, ncclFloat32, ncclSum, l.comm, l.stream)))
		found = "no scatter";
	if (!found)
		found = values_of(&l, l.to, 0, COUNT);
	lone_done(&l);
	return found;
}

static const char *in_place(void)
{
	struct lone l = { 0 };
	const char *found = lone_new(&l);

	if (!found && taken(&l, calls.ncclAllReduce(l.from, l.from, COUNT, ncclFloat32, ncclSum, l.comm, l.stream)))
		found = "no sum";
	if (!found)
		found = values_of(&l, l.from, 0, COUNT);
	lone_done(&l);
	return found;
}

static const char *nothing_is_sent(void)
{
	struct lone l = { 0 };
	const char *found = lone_new(&l);

	if (!found && taken(&l, calls.ncclAllReduce(l.from, l.to, 0, ncclFloat32, ncclSum, l.comm, l.stream)))
		found = "a sum of nothing is refused";
	if (!found)
		found = values_of(&l, l.to, 0, 0);
	lone_done(&l);
	return found;
}

#else

static const char *one_rank_copies(void)
{
	return open_library(CUDA_NCCL);
}

static const char *in_place(void)
{
	return open_library(CUDA_NCCL);
}

static const char *nothing_is_sent(void)
{
	return open_library(CUDA_NCCL);
}

#endif

const struct conformance_row conformance_libraries[] = {
	{ "cuBLASLt: products of factors, plain and transposed", turned_factors },
	{ "cuBLASLt: beta adds to the previous values", beta_adds },
	{ "cuBLASLt: a bias is added to each row", bias_by_row },
	{ "cuBLASLt: factors that do not match get no algorithm", factors_must_meet },
	{ "cuBLASLt: an algorithm's bytes work for a later equal product", algorithm_by_bytes },
	{ "cuDNN: a tensor without sizes is refused", tensor_needs_sizes },
	{ "cuDNN: a plan's text gives the same plan", plan_by_text },
	{ "NCCL: collectives of one rank are copies", one_rank_copies },
	{ "NCCL: an in-place sum", in_place },
	{ "NCCL: an empty collective does nothing", nothing_is_sent },
	{ NULL, NULL },
};
