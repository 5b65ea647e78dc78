/* module.c: the cuda backend's device, memory and streams. Kernels stand beside their ops (<op>_cuda.cu). Uses the
 * statically linked runtime, so that the module loads on a machine without a driver and says so. */
#include "trainer/backends/backend.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

struct cuda_module {
	int device;
};

static int fail(struct err *err, cudaError_t rc, const char *what)
{
	return err_set(err, rc == cudaErrorMemoryAllocation ? ERR_NOMEM : ERR_IO, "cuda: %s: %s", what,
		       cudaGetErrorString(rc));
}

static void cuda_version(char *text, size_t n)
{
	int driver = 0, runtime = 0;

	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	snprintf(text, n, "CUDA runtime %d.%d, driver %d.%d", runtime / 1000, runtime % 1000 / 10, driver / 1000,
		 driver % 1000 / 10);
}

static int cuda_probe(char *reason, size_t n)
{
	int count = 0, major = 0;
	cudaError_t rc = cudaGetDeviceCount(&count);

	if (rc != cudaSuccess || !count) {
		snprintf(reason, n, "no usable GPU (%s)", rc == cudaSuccess ? "none found" : cudaGetErrorString(rc));
		return -1;
	}
	rc = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
	if (rc != cudaSuccess || major < 9) {
		snprintf(reason, n, "device 0 has compute capability %d.x; 9.0 or newer is needed", major);
		return -1;
	}
	return 0;
}

static bool cuda_takes(const struct precision *p)
{
	return p->master == DTYPE_F32 && (p->low == DTYPE_F32 || p->low == DTYPE_BF16);
}

static int cuda_open(const struct backend_opts *o, void **ret_module, struct err *err)
{
	struct cuda_module *m = calloc(1, sizeof(*m));
	int count = 0;
	cudaError_t rc;

	if (!m)
		return err_set(err, ERR_NOMEM, "cuda: out of memory");
	rc = cudaGetDeviceCount(&count);
	if (rc == cudaSuccess)
		rc = o->local_rank < count ? cudaSetDevice(o->local_rank) : cudaErrorInvalidDevice;
	if (rc != cudaSuccess) {
		free(m);
		return fail(err, rc, "choosing the device of this rank");
	}
	m->device = o->local_rank;
	*ret_module = m;
	return 0;
}

static void cuda_close(void *module)
{
	free(module);
}

static int cuda_alloc(void *module, enum space space, size_t bytes, void **ret, struct err *err)
{
	void *memory = NULL;
	cudaError_t rc;

	(void)module;
	rc = space == SPACE_PINNED ? cudaMallocHost(&memory, bytes) : cudaMalloc(&memory, bytes);
	if (rc == cudaSuccess)
		rc = cudaMemset(memory, 0, bytes);
	if (rc != cudaSuccess)
		return fail(err, rc, "allocating a slab");
	*ret = memory;
	return 0;
}

static void cuda_release(void *module, enum space space, void *memory, size_t bytes)
{
	(void)module, (void)bytes;
	if (space == SPACE_PINNED)
		cudaFreeHost(memory);
	else
		cudaFree(memory);
}

static int cuda_copy(void *module, void *to, const void *from, size_t bytes, struct err *err)
{
	cudaError_t rc = cudaMemcpy(to, from, bytes, cudaMemcpyDefault);

	(void)module;
	return rc == cudaSuccess ? 0 : fail(err, rc, "copying");
}

static int stream_create(void *module, struct stream_handle **ret, struct err *err)
{
	cudaStream_t s;
	cudaError_t rc = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);

	(void)module;
	if (rc != cudaSuccess)
		return fail(err, rc, "making a stream");
	*ret = (struct stream_handle *)s;
	return 0;
}

static void stream_destroy(void *module, struct stream_handle *s)
{
	(void)module;
	cudaStreamDestroy((cudaStream_t)s);
}

static int stream_wait(void *module, struct stream_handle *waiter, struct stream_handle *on, struct err *err)
{
	cudaEvent_t done;
	cudaError_t rc = cudaEventCreateWithFlags(&done, cudaEventDisableTiming);

	(void)module;
	if (rc != cudaSuccess)
		return fail(err, rc, "making an event");
	rc = cudaEventRecord(done, (cudaStream_t)on);
	if (rc == cudaSuccess)
		rc = cudaStreamWaitEvent((cudaStream_t)waiter, done, 0);
	cudaEventDestroy(done); /* lives on until the streams are past it */
	return rc == cudaSuccess ? 0 : fail(err, rc, "making one stream wait for another");
}

static int stream_sync(void *module, struct stream_handle *s, struct err *err)
{
	cudaError_t rc = cudaStreamSynchronize((cudaStream_t)s);

	(void)module;
	return rc == cudaSuccess ? 0 : fail(err, rc, "waiting for a stream");
}

static const struct backend_streams streams = {
	.create = stream_create,
	.destroy = stream_destroy,
	.wait = stream_wait,
	.sync = stream_sync,
};

#define NONE(op) static const struct kernel op##_cuda;
#include "trainer/backends/cuda/none.def"
#undef NONE

extern const struct kernel relu_cuda, relu_grad_cuda;

extern const struct backend dptrain_backend_v1;
BACKEND_EXPORT const struct backend dptrain_backend_v1 = {
	.abi = BACKEND_ABI,
	.op_count = OP_COUNT,
	.name = "cuda",
	.version = cuda_version,
	.probe = cuda_probe,
	.takes = cuda_takes,
	.open = cuda_open,
	.close = cuda_close,
	.alloc = cuda_alloc,
	.release = cuda_release,
	.copy = cuda_copy,
	.streams = &streams,
	.kernel = {
#define OP(op) [OP_##op] = &op##_cuda,
#include "trainer/ops/ops.def"
#undef OP
	},
};
