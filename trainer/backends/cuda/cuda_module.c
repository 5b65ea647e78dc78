/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_module.c: the cuda backend: probing, device and memory, and the table of kernels, which are in the
 * folders of their ops (<op>_cuda.cu). It links the runtime statically, so that the module loads on a machine without a
 * driver and can report that. */
#include "trainer/backends/cuda/cuda_module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"
#include "trainer/backends/cuda/blas.h"
#include "trainer/backends/cuda/cudnn_plan.h"
#include "trainer/backends/cuda/plan_cache.h"

#define DRIVER_MIN 13000 /* CUDA 13.0: driver 580 */

/* Lists the libraries that are available here. */
static void list_libraries(char *text, size_t n)
{
	struct cuda_calls calls = { 0 };
	size_t used = 0;

	for (int k = 0; k < CUDA_LIBRARIES && used < n; k++) {
		char version[64];

		if (cuda_calls_open(&calls, (enum cuda_library)k, NULL) == 0)
			cuda_library_version(&calls, (enum cuda_library)k, version, sizeof(version));
		else
			snprintf(version, sizeof(version), "no %s", cuda_library_name((enum cuda_library)k));
		used += (size_t)snprintf(text + used, n - used, ", %s", version);
	}
}

static void write_cuda_version(char *text, size_t n)
{
	char rest[256] = "";
	int driver = 0, runtime = 0;

	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	list_libraries(rest, sizeof(rest));
	snprintf(text, n, "CUDA runtime %d.%d, driver %d.%d%s", runtime / 1000, runtime % 1000 / 10, driver / 1000,
		 driver % 1000 / 10, rest);
}

/* Checks driver, devices and compute capability. */
static int probe_cuda(char *reason, size_t n)
{
	int count = 0, driver = 0, found;
	cudaError_t rc = cudaDriverGetVersion(&driver);

	if (rc != cudaSuccess || !driver) {
		snprintf(reason, n, "no NVIDIA driver is installed: install driver 580 or newer");
		return -1;
	}
	if (driver < DRIVER_MIN) {
		snprintf(reason, n, "the NVIDIA driver supports only CUDA %d.%d: CUDA 13.0 needs driver 580 or newer",
			 driver / 1000, driver % 1000 / 10);
		return -1;
	}
	rc = cudaGetDeviceCount(&count);
	if (rc != cudaSuccess || !count) {
		snprintf(reason, n, "no usable GPU (%s)", rc == cudaSuccess ? "none found" : cudaGetErrorString(rc));
		return -1;
	}
	found = pick_capability(0);
	if (found < PICK_CAPABILITY_MIN) {
		snprintf(reason, n, "device 0 has compute capability %d.%d: 8.0 or newer is required", found / 10,
			 found % 10);
		return -1;
	}
	return 0;
}

static int count_cuda_devices(void)
{
	int count = 0;

	return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

static int probe_cuda_ranks(int ranks, char *reason, size_t n)
{
	const int count = count_cuda_devices();
	struct cuda_calls calls = { 0 };
	struct err err = ERR_INIT;

	if (count < ranks) {
		snprintf(reason, n, "there %s %d GPU%s for %d ranks", count == 1 ? "is" : "are", count,
			 count == 1 ? "" : "s", ranks);
		return -1;
	}
	if (cuda_calls_open(&calls, CUDA_NCCL, &err)) {
		snprintf(reason, n, "%s", err.text);
		return -1;
	}
	return 0;
}

static int cuda_device(void *module)
{
	return ((const struct cuda_module *)module)->device;
}

static bool cuda_takes(const struct precision *p)
{
	return !p->casts && p->master == (p->low == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32);
}

/* Appends a missing part to m->lacks. what: "…: " or "". */
static void append_lack(struct cuda_module *m, const char *what, const struct err *why)
{
	const size_t used = strlen(m->lacks);

	snprintf(m->lacks + used, sizeof(m->lacks) - used, "%s%s%s", used ? "; " : "", what, why->text);
}

/* Opens the libraries. NVRTC comes first, since cuDNN loads it by name. json: properties of an absent device, else
 * NULL. */
static void open_cuda_libraries(struct cuda_module *m, const char *json)
{
	struct err err = ERR_INIT;

	cuda_calls_open(&m->calls, CUDA_NVRTC, NULL);
	if (!m->described && blas_open(m, &err))
		append_lack(m, "products without cuBLASLt are far slower: ", &err);
	if (m->described ? dnn_open_for(m, json, &err) : dnn_open(m, &err))
		append_lack(m, "convolutions without cuDNN are far slower: ", &err);
}

/* Opens the plan cache. Plans are valid for this kind of GPU, its driver (both are in its properties) and these library
 * versions. */
static void open_plan_cache(struct cuda_module *m)
{
	static const enum cuda_library of[] = { CUDA_NVRTC, CUDA_CUBLASLT, CUDA_CUDNN };
	struct backend_device device;
	struct err err = ERR_INIT;
	char owner[sizeof(device.properties) + 256];
	size_t used;

	if (pick_describe(m->device, &device, &err))
		return;
	used = (size_t)snprintf(owner, sizeof(owner), "%s", device.properties);
	for (int i = 0; i < 3; i++) {
		char version[64];

		cuda_library_version(&m->calls, of[i], version, sizeof(version));
		used += (size_t)snprintf(owner + used, sizeof(owner) - used, ", %s", version);
	}
	m->kept = plan_cache_open(owner, &err);
	if (err.text[0])
		append_lack(m, "", &err);
}

static const char *cuda_lacks(void *module)
{
	const struct cuda_module *m = module;

	return m->lacks[0] ? m->lacks : NULL;
}

/* Chooses the device, then opens the libraries and the plan cache. */
static int open_cuda(const struct backend_opts *o, void **ret_module, struct err *err)
{
	struct cuda_module *m = mem_zalloc(sizeof(*m));
	cudaError_t set;
	int rc;

	m->described = o->described;
	rc = m->described ? 0 : pick_device(o, &m->device, err);
	set = rc || m->described ? cudaSuccess : cudaSetDevice(m->device);
	if (set != cudaSuccess)
		rc = cuda_fail(err, set, "choosing the device of this rank");
	if (rc) {
		free(m);
		return rc;
	}
	m->tf32 = o->tf32;
	m->direct = o->direct;
	open_cuda_libraries(m, o->described);
	if (!m->described)
		open_plan_cache(m);
	*ret_module = m;
	return 0;
}

static void close_cuda(void *module)
{
	struct cuda_module *m = module;

	staging_done(m);
	dnn_close(m);
	blas_close(m);
	plan_cache_close(m->kept);
	free(m);
}

/* Waits for CUDA's legacy stream, since the streams of runs do not: for memsets, and for data of pageable copies that
 * is still in the driver's buffers. */
static cudaError_t wait_legacy_stream(cudaError_t rc)
{
	return rc == cudaSuccess ? cudaStreamSynchronize(NULL) : rc;
}

static int cuda_alloc(void *module, enum space space, size_t bytes, void **ret, struct err *err)
{
	size_t room = 0, all = 0;
	void *memory = NULL;
	cudaError_t rc;

	(void)module;
	rc = space == SPACE_PINNED ? cudaMallocHost(&memory, bytes) : cudaMalloc(&memory, bytes);
	if (rc == cudaErrorMemoryAllocation && space != SPACE_PINNED) {
		cudaMemGetInfo(&room, &all);
		return err_set(err, ERR_NOMEM,
			       "cuda: the plan needs %.0f MiB on the GPU, but only %.0f of %.0f MiB are free now: "
			       "other processes use its memory (nvidia-smi lists them)",
			       (double)bytes / 0x1p20, (double)room / 0x1p20, (double)all / 0x1p20);
	}
	if (rc == cudaSuccess)
		rc = wait_legacy_stream(cudaMemset(memory, 0, bytes));
	if (rc != cudaSuccess)
		return cuda_fail(err, rc, "allocating a slab");
	*ret = memory;
	return 0;
}

static int cuda_room(void *module, int64_t *ret, struct err *err)
{
	size_t room = 0, all = 0;
	cudaError_t rc = cudaMemGetInfo(&room, &all);

	(void)module;
	if (rc != cudaSuccess)
		return cuda_fail(err, rc, "reading the free memory");
	*ret = (int64_t)room;
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
	cudaError_t rc = wait_legacy_stream(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));

	(void)module;
	return rc == cudaSuccess ? 0 : cuda_fail(err, rc, "copying");
}

/* A launch that failed leaves its error in the runtime. */
static int cuda_take_failure(void *module, const char *node, struct err *err)
{
	struct cuda_module *m = module;
	const cudaError_t launched = cudaGetLastError();
	int rc;

	if (!m->failed.code)
		return launched == cudaSuccess ? 0 : cuda_fail(err, launched, node);
	rc = err_set(err, m->failed.code, "%s", m->failed.text);
	m->failed.code = 0;
	return rc;
}

#define OP(op) extern const struct kernel op##_cuda;
#include "trainer/ops/ops.def"
#undef OP

extern const struct backend dptrain_backend_v1;
BACKEND_EXPORT const struct backend dptrain_backend_v1 = {
	.abi = BACKEND_ABI,
	.take_failure = cuda_take_failure,
	.op_count = OP_COUNT,
	.name = "cuda",
	.version = write_cuda_version,
	.probe = probe_cuda,
	.probe_ranks = probe_cuda_ranks,
	.count = count_cuda_devices,
	.describe = pick_describe,
	.device = cuda_device,
	.takes = cuda_takes,
	.open = open_cuda,
	.close = close_cuda,
	.lacks = cuda_lacks,
	.alloc = cuda_alloc,
	.release = cuda_release,
	.room = cuda_room,
	.copy = cuda_copy,
	.ahead_begin = dnn_ahead_begin,
	.ahead_end = dnn_ahead_end,
	.streams = &cuda_streams,
	.comms = &cuda_comms,
	.kernel = {
#define OP(op) [OP_##op] = &op##_cuda,
#include "trainer/ops/ops.def"
#undef OP
	},
};
