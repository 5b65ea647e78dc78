/* cudart.cc: the calls of the CUDA runtime that the module makes, by the prototypes of the real header. What CUDA forbids
 * fails, or ends the process with a line. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakes/cuda/fibers.h"
#include "tests/fakes/cuda/memory.h"
#include "tests/fakes/cuda/queue.h"

static cudaError_t last = cudaSuccess;
static cudaError_t fault = cudaSuccess; /* of a kernel: the device stops, and returns this error for ever */

static cudaError_t keep(cudaError_t rc)
{
	if (rc != cudaSuccess)
		last = rc;
	return fault != cudaSuccess ? fault : rc;
}

static bool host_works; /* the device is running a host function */

/* Calls that wait for the device, or allocate, are forbidden during a capture, which then fails; and in a function
 * that the device waits for. */
static bool forbidden(const char *call)
{
	if (host_works) {
		fprintf(stderr, "fake device: %s by a function for which the device waits\n", call);
		abort();
	}
	if (!queue_captures())
		return false;
	queue_lose_captures();
	fprintf(stderr, "fake device: %s during capture\n", call);
	keep(cudaErrorStreamCaptureUnsupported);
	return true;
}

/* ---- device ---- */

static int fake_number(const char *name, int usual)
{
	const char *given = getenv(name);

	return given ? (int)strtol(given, NULL, 10) : usual;
}

cudaError_t cudaGetDeviceCount(int *count)
{
	*count = fake_number("DPTRAIN_FAKE_DEVICES", 1);
	return *count ? cudaSuccess : cudaErrorNoDevice;
}

static int current;

cudaError_t cudaSetDevice(int device)
{
	if (device < 0 || device >= fake_number("DPTRAIN_FAKE_DEVICES", 1))
		return keep(cudaErrorInvalidDevice);
	current = device;
	return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
	*device = current;
	return cudaSuccess;
}

/* $DPTRAIN_FAKE_OLD: the number of a device of capability 7.5. */
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
	const bool old = fake_number("DPTRAIN_FAKE_OLD", -1) == device;
	const int capability = old ? 75 : fake_number("DPTRAIN_FAKE_CAPABILITY", 90);

	*value = attr == cudaDevAttrComputeCapabilityMajor   ? capability / 10
		 : attr == cudaDevAttrComputeCapabilityMinor ? capability % 10
							     : 0;
	return cudaSuccess;
}

/* An H200's limits. */
static void set_limits(struct cudaDeviceProp *p)
{
	const int grid[] = { 2147483647, 65535, 65535 }, block[] = { 1024, 1024, 64 };

	memcpy(p->maxGridSize, grid, sizeof(grid));
	memcpy(p->maxThreadsDim, block, sizeof(block));
	p->multiProcessorCount = 132;
	p->warpSize = 32;
	p->l2CacheSize = 62914560;
	p->maxThreadsPerBlock = 1024;
	p->maxThreadsPerMultiProcessor = 2048;
	p->maxBlocksPerMultiProcessor = 32;
	p->regsPerBlock = p->regsPerMultiprocessor = 65536;
	p->sharedMemPerBlock = 49152;
	p->sharedMemPerBlockOptin = 232448;
	p->reservedSharedMemPerBlock = 1024;
	p->cooperativeLaunch = 1;
}

/* Devices of one kind; the last byte of a UUID is the device's number. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
	size_t room;

	memset(p, 0, sizeof(*p));
	snprintf(p->name, sizeof(p->name), "Fake GPU");
	cudaDeviceGetAttribute(&p->major, cudaDevAttrComputeCapabilityMajor, device);
	cudaDeviceGetAttribute(&p->minor, cudaDevAttrComputeCapabilityMinor, device);
	memory_room(&room, &p->totalGlobalMem);
	set_limits(p);
	for (int i = 0; i < 15; i++)
		p->uuid.bytes[i] = (char)(0xa0 + i);
	p->uuid.bytes[15] = (char)device;
	return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
	*version = fake_number("DPTRAIN_FAKE_DRIVER", 13000);
	return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	*version = CUDART_VERSION;
	return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *ret_free, size_t *ret_total)
{
	memory_room(ret_free, ret_total);
	return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t rc)
{
	return rc == cudaErrorMemoryAllocation		   ? "out of memory"
	       : rc == cudaErrorNoDevice		   ? "no CUDA-capable device is detected"
	       : rc == cudaErrorStreamCaptureUnsupported   ? "operation not permitted when stream is capturing"
	       : rc == cudaErrorStreamCaptureUnjoined	   ? "unjoined work in a captured stream"
	       : rc == cudaErrorStreamCaptureInvalidated   ? "operation failed due to a previous error during capture"
	       : rc == cudaErrorInvalidValue		   ? "invalid argument"
	       : rc == cudaErrorIllegalAddress		   ? "an illegal memory access was encountered"
							   : "an error of the fake device";
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t rc = keep(last);

	last = cudaSuccess;
	return rc;
}

/* ---- memory ---- */

cudaError_t cudaMalloc(void **p, size_t bytes)
{
	if (forbidden("cudaMalloc"))
		return cudaErrorStreamCaptureUnsupported;
	*p = memory_device_new(bytes);
	return *p ? cudaSuccess : keep(cudaErrorMemoryAllocation);
}

cudaError_t cudaMallocHost(void **p, size_t bytes)
{
	*p = memory_pinned_new(bytes);
	return *p ? cudaSuccess : keep(cudaErrorMemoryAllocation);
}

static cudaError_t drop(void *p)
{
	if (!queue_is_idle() && fault == cudaSuccess) {
		fprintf(stderr, "fake device: memory is freed while work is queued\n");
		abort();
	}
	return !p || memory_free(p) ? cudaSuccess : keep(cudaErrorInvalidValue);
}

cudaError_t cudaFree(void *p)
{
	return drop(p);
}

cudaError_t cudaFreeHost(void *p)
{
	return drop(p);
}

/* CUDA's legacy stream; streams that do not block it do not wait for it. */
static cudaStream_t legacy(void)
{
	static cudaStream_t s;

	if (!s) {
		s = new CUstream_st{};
		queue_add_stream(s);
	}
	return s;
}

struct copying : work {
	void *to;
	const void *from;
	size_t bytes;

	copying(void *t, const void *f, size_t n) : to(t), from(f), bytes(n)
	{
	}
	void run() override
	{
		memmove(to, from, bytes);
	}
};

static bool reachable(const void *p)
{
	return memory_is_device(p) || memory_is_pinned(p);
}

/* Bytes that the driver has taken from pageable memory, on their way to the device. */
struct staged : work {
	void *to;
	std::vector<char> bytes;

	staged(void *t, const void *f, size_t n) : to(t), bytes((const char *)f, (const char *)f + n)
	{
	}
	void run() override
	{
		memcpy(to, bytes.data(), bytes.size());
	}
};

/* From pageable memory to the device: returns once the driver has the bytes. Other copies: once the bytes have
 * arrived. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind)
{
	if (forbidden("cudaMemcpy"))
		return cudaErrorStreamCaptureUnsupported;
	if (!bytes)
		return keep(cudaSuccess);
	if (memory_is_device(to) && !reachable(from)) {
		queue_work(legacy(), std::make_shared<staged>(to, from, bytes));
		return keep(cudaSuccess);
	}
	queue_sync_stream(legacy());
	memory_open();
	memcpy(to, from, bytes);
	memory_shut();
	return keep(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind, cudaStream_t stream)
{
	if (!reachable(to) || !reachable(from)) {
		fprintf(stderr, "fake device: an asynchronous copy of pageable memory would wait for the device\n");
		return keep(cudaErrorInvalidValue);
	}
	queue_work(stream, std::make_shared<copying>(to, from, bytes));
	return cudaSuccess;
}

struct setting : work {
	void *p;
	int value;
	size_t bytes;

	setting(void *q, int v, size_t n) : p(q), value(v), bytes(n)
	{
	}
	void run() override
	{
		memset(p, value, bytes);
	}
};

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream)
{
	queue_work(stream, std::make_shared<setting>(p, value, bytes));
	return cudaSuccess;
}

/* The host does not wait for device memory. */
cudaError_t cudaMemset(void *p, int value, size_t bytes)
{
	if (memory_is_device(p))
		return cudaMemsetAsync(p, value, bytes, legacy());
	memset(p, value, bytes);
	return cudaSuccess;
}

/* A host function, which cannot access device memory. */
struct host_call : work {
	cudaHostFn_t fn;
	void *user;

	host_call(cudaHostFn_t f, void *u) : fn(f), user(u)
	{
	}
	void run() override
	{
		memory_hide();
		host_works = true;
		fn(user);
		host_works = false;
		memory_show();
	}
};

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *user)
{
	queue_work(stream, std::make_shared<host_call>(fn, user));
	return cudaSuccess;
}

/* ---- streams and events ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned)
{
	*ret = new CUstream_st{};
	queue_add_stream(*ret);
	return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
	queue_sync_stream(s);
	queue_drop_stream(s);
	delete s;
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
	if (forbidden("cudaStreamSynchronize"))
		return cudaErrorStreamCaptureUnsupported;
	queue_sync_stream(s ? s : legacy());
	return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned flags)
{
	static int made;

	*ret = new CUevent_st{ !(flags & cudaEventDisableTiming), ++made, 0, 0, 0, NULL, {} };
	return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
	delete e;
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
	queue_record(s, e, false);
	return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned flags)
{
	queue_record(s, e, flags & cudaEventRecordExternal);
	return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned)
{
	queue_wait(s, e);
	return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
	if (forbidden("cudaEventSynchronize"))
		return cudaErrorStreamCaptureUnsupported;
	queue_sync_event(e);
	return keep(cudaSuccess);
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
	if (forbidden("cudaEventQuery"))
		return cudaErrorStreamCaptureUnsupported;
	return queue_query_event(e) ? keep(cudaSuccess) : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
	if (!from->timed || !to->timed || !from->done || !to->done)
		return keep(cudaErrorInvalidResourceHandle);
	*ms = (float)((to->at_s - from->at_s) * 1e3);
	return cudaSuccess;
}

/* ---- graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode)
{
	return keep(queue_begin_capture(s));
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *ret)
{
	return keep(queue_end_capture(s, ret));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ret, cudaGraph_t graph, unsigned long long)
{
	*ret = new CUgraphExec_st{ graph->nodes };
	return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	delete graph;
	return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	delete exec;
	return cudaSuccess;
}

/* Events that the graph records count from its launch on. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	queue_launched = true;
	for (const struct graph_node &n : exec->nodes)
		if (n.event)
			n.event->recorded++;
	queue_work(stream, std::make_shared<graph_run>(exec));
	return keep(cudaSuccess);
}

/* ---- kernels ---- */

struct launched_kernel : work {
	struct emulated_launch launch;
	void *operands;

	explicit launched_kernel(const struct emulated_launch *l) : launch(*l), operands(malloc(l->bytes))
	{
		memcpy(operands, l->operands, l->bytes);
		launch.operands = operands;
	}
	~launched_kernel() override
	{
		free(operands);
	}
	/* $DPTRAIN_FAKE_FAULT: the number of the faulting kernel, in the order of execution. */
	void run() override
	{
		static int runs;

		if (++runs == fake_number("DPTRAIN_FAKE_FAULT", 0))
			fault = cudaErrorIllegalAddress;
		if (fault == cudaSuccess)
			fibers_run(&launch);
	}
};

void emulated_enqueue(cudaStream_t stream, const struct emulated_launch *l)
{
	const bool fits = l->grid.x && l->grid.y && l->grid.z && l->grid.y <= 65535 && l->grid.z <= 65535 &&
			  l->grid.x <= 2147483647u && l->threads >= 1 && l->threads <= 1024;

	if (!fits)
		keep(cudaErrorInvalidValue);
	else
		queue_work(stream, std::make_shared<launched_kernel>(l));
	if (fake_number("CUDA_LAUNCH_BLOCKING", 0) && !queue_captures())
		queue_sync_stream(stream);
}
