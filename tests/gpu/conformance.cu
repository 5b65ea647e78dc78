/* SPDX-License-Identifier: Apache-2.0 */
/* conformance.cu: see conformance.h. Compiled by nvcc and g++, like kernels. Work is queued and checked at the end of
 * a row; many rounds detect what only shows in some execution orders. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/backends/cuda/device.h"

extern "C" {
#include "tests/gpu/conformance.h"
}

namespace {

constexpr int VALUES = 4096, THREADS = 128, ROUNDS = 50;

const char *differs(cudaError_t is, cudaError_t want)
{
	static char text[200];

	if (is == want)
		return nullptr;
	snprintf(text, sizeof(text), "error %d (%s), not %d (%s)", (int)is, cudaGetErrorString(is), (int)want,
		 cudaGetErrorString(want));
	return text;
}

const char *unless(bool ok, const char *text)
{
	return ok ? nullptr : text;
}

/* ---- helpers of rows ---- */

__global__ void add_kernel(int *v, int n, int by)
{
	const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < n)
		v[i] += by;
}

__global__ void double_kernel(int *v, int n)
{
	const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < n)
		v[i] *= 2;
}

/* Every block reverses its part, through shared memory. */
__global__ void turn_kernel(int *v)
{
	SHARED(int, part, THREADS);
	const int at = (int)(blockIdx.x * blockDim.x), i = (int)threadIdx.x;

	part[i] = v[at + i];
	__syncthreads();
	v[at + i] = part[THREADS - 1 - i];
}

__global__ void warp_sum_kernel(int *v)
{
	const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	v[i] = (int)warp_sum((double)v[i]);
}

struct stand { /* two streams and memory for rows; device memory is zero initially */
	cudaStream_t s[2] = {};
	int *device = nullptr, *pinned = nullptr;

	stand()
	{
		cudaStreamCreateWithFlags(&s[0], cudaStreamNonBlocking);
		cudaStreamCreateWithFlags(&s[1], cudaStreamNonBlocking);
		cudaMalloc((void **)&device, VALUES * sizeof(int));
		cudaMallocHost((void **)&pinned, VALUES * sizeof(int));
		cudaMemset(device, 0, VALUES * sizeof(int));
		cudaStreamSynchronize(nullptr);
		cudaGetLastError();
	}
	stand(const stand &) = delete;
	stand &operator=(const stand &) = delete;
	~stand()
	{
		for (cudaStream_t one : s) {
			cudaStreamSynchronize(one);
			cudaStreamDestroy(one);
		}
		cudaFree(device);
		cudaFreeHost(pinned);
		cudaGetLastError();
	}
	struct kernel_args on(int stream)
	{
		struct kernel_args a = {};

		a.stream = (struct stream_handle *)s[stream];
		return a;
	}
	void add(int stream, int by)
	{
		const struct kernel_args a = on(stream);

		launch(&a, dim3(VALUES / THREADS), THREADS, add_kernel, device, VALUES, by);
	}
	void twice(int stream)
	{
		const struct kernel_args a = on(stream);

		launch(&a, dim3(VALUES / THREADS), THREADS, double_kernel, device, VALUES);
	}
	/* Whether every value equals `want`, when a stream is done. */
	const char *all(int stream, int want)
	{
		static char text[80];

		cudaMemcpyAsync(pinned, device, VALUES * sizeof(int), cudaMemcpyDefault, s[stream]);
		cudaStreamSynchronize(s[stream]);
		for (int i = 0; i < VALUES; i++)
			if (pinned[i] != want) {
				snprintf(text, sizeof(text), "value %d is %d, not %d", i, pinned[i], want);
				return text;
			}
		return nullptr;
	}
};

struct event { /* without timing, unless requested */
	cudaEvent_t e = nullptr;

	explicit event(bool timed = false)
	{
		cudaEventCreateWithFlags(&e, timed ? cudaEventDefault : cudaEventDisableTiming);
	}
	event(const event &) = delete;
	event &operator=(const event &) = delete;
	~event()
	{
		cudaEventDestroy(e);
	}
};

/* ---- device and memory ---- */

const char *device_is_refused(void)
{
	int count = 0;

	cudaGetDeviceCount(&count);
	const char *found = differs(cudaSetDevice(count), cudaErrorInvalidDevice);

	cudaGetLastError();
	return found;
}

const char *properties_agree(void)
{
	struct cudaDeviceProp p;
	int major = 0, minor = 0;

	cudaGetDeviceProperties(&p, 0);
	cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
	cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
	return unless(p.name[0] && p.major == major && p.minor == minor && p.multiProcessorCount > 0 &&
			      p.totalGlobalMem > 0,
		      "name, capability, multiprocessors or memory differ from the attributes");
}

const char *too_much_memory(void)
{
	void *p = nullptr;
	const char *found = differs(cudaMalloc(&p, (size_t)1 << 50), cudaErrorMemoryAllocation);

	if (!found)
		found = differs(cudaGetLastError(), cudaErrorMemoryAllocation);
	if (!found)
		found = differs(cudaGetLastError(), cudaSuccess);
	if (!found)
		found = differs(cudaMalloc(&p, 4096), cudaSuccess);
	cudaFree(p);
	return found;
}

const char *memory_is_counted(void)
{
	const size_t bytes = (size_t)64 << 20;
	size_t before = 0, during = 0, after = 0, all = 0;
	void *p = nullptr;

	cudaMemGetInfo(&before, &all);
	cudaMalloc(&p, bytes);
	cudaMemGetInfo(&during, &all);
	cudaFree(p);
	cudaMemGetInfo(&after, &all);
	return unless(before <= all && before - during >= bytes && after == before,
		      "free memory does not fall by an allocation, or does not rise again");
}

const char *copies_arrive(void)
{
	stand t;

	for (int i = 0; i < VALUES; i++)
		t.pinned[i] = 7;
	cudaMemcpyAsync(t.device, t.pinned, VALUES * sizeof(int), cudaMemcpyDefault, t.s[0]);
	cudaStreamSynchronize(t.s[0]);
	memset(t.pinned, 0, VALUES * sizeof(int));
	return t.all(0, 7);
}

const char *copies_on_the_device(void)
{
	stand t;
	const char *found;
	int *other = nullptr;

	cudaMalloc((void **)&other, VALUES * sizeof(int));
	t.add(0, 3);
	cudaMemcpyAsync(other, t.device, VALUES * sizeof(int), cudaMemcpyDefault, t.s[0]);
	t.add(0, 4);
	cudaMemcpyAsync(t.device, other, VALUES * sizeof(int), cudaMemcpyDefault, t.s[0]);
	found = t.all(0, 3);
	cudaFree(other);
	return found;
}

/* Streams that do not block the legacy one start before it is done; the host waits for it. */
const char *legacy_stream_is_waited_for(void)
{
	stand t;
	int values[VALUES];

	for (int i = 0; i < VALUES; i++)
		values[i] = 6;
	cudaMemcpy(t.device, values, VALUES * sizeof(int), cudaMemcpyDefault);
	cudaMemset(t.device, 0, sizeof(int));
	cudaStreamSynchronize(nullptr);
	t.add(0, 1);
	cudaMemcpyAsync(t.pinned, t.device, VALUES * sizeof(int), cudaMemcpyDefault, t.s[0]);
	cudaStreamSynchronize(t.s[0]);
	return unless(t.pinned[0] == 1 && t.pinned[VALUES - 1] == 7, "a copy or a memset finished later");
}

const char *bytes_are_set(void)
{
	stand t;

	cudaMemsetAsync(t.device, 1, VALUES * sizeof(int), t.s[0]);
	return t.all(0, 0x01010101);
}

/* ---- kernels ---- */

const char *operands_are_copied(void)
{
	stand t;
	int by = 3;

	t.add(0, by);
	by = 5;
	return t.all(0, 3);
}

const char *shared_memory_and_barrier(void)
{
	stand t;
	const struct kernel_args a = t.on(0);

	for (int i = 0; i < VALUES; i++)
		t.pinned[i] = i;
	cudaMemcpyAsync(t.device, t.pinned, VALUES * sizeof(int), cudaMemcpyDefault, t.s[0]);
	launch(&a, dim3(VALUES / THREADS), THREADS, turn_kernel, t.device);
	cudaMemcpyAsync(t.pinned, t.device, VALUES * sizeof(int), cudaMemcpyDefault, t.s[0]);
	cudaStreamSynchronize(t.s[0]);
	for (int i = 0; i < VALUES; i++)
		if (t.pinned[i] != i / THREADS * THREADS + THREADS - 1 - i % THREADS)
			return "a block's part is not reversed";
	return nullptr;
}

const char *lanes_exchange(void)
{
	stand t;
	const struct kernel_args a = t.on(0);

	t.add(0, 2);
	launch(&a, dim3(VALUES / THREADS), THREADS, warp_sum_kernel, t.device);
	return t.all(0, 2 * WARP);
}

const char *launch_fails(dim3 grid, int threads)
{
	stand t;
	const struct kernel_args a = t.on(0);

	launch(&a, grid, threads, add_kernel, t.device, VALUES, 1);
	const char *found = differs(cudaGetLastError(), cudaErrorInvalidValue);

	if (!found)
		found = differs(cudaGetLastError(), cudaSuccess);
	return found ? found : t.all(0, 0);
}

const char *too_many_threads(void)
{
	return launch_fails(dim3(1), 1025);
}

const char *grid_too_tall(void)
{
	return launch_fails(dim3(1, 65536), THREADS);
}

const char *empty_grid(void)
{
	return launch_fails(dim3(0), THREADS);
}

/* ---- streams and events ---- */

const char *stream_keeps_order(void)
{
	stand t;
	int want = 0;

	for (int i = 0; i < 10; i++) {
		t.add(0, i);
		t.twice(0);
		want = 2 * (want + i);
	}
	return t.all(0, want);
}

const char *waits_order_streams(void)
{
	stand t;
	int want = 0;

	for (int i = 0; i < ROUNDS; i++) {
		event e, back;

		t.add(0, 1);
		cudaEventRecord(e.e, t.s[0]);
		cudaStreamWaitEvent(t.s[1], e.e, 0);
		t.twice(1);
		cudaEventRecord(back.e, t.s[1]);
		cudaStreamWaitEvent(t.s[0], back.e, 0);
		want = (int)(2u * ((unsigned)want + 1u));
		cudaStreamSynchronize(t.s[0]);
	}
	return t.all(0, want);
}

const char *wait_for_nothing(void)
{
	stand t;
	event e;
	cudaError_t rc = cudaStreamWaitEvent(t.s[0], e.e, 0);

	t.add(0, 1);
	return rc == cudaSuccess ? t.all(0, 1) : differs(rc, cudaSuccess);
}

/* If it meant the later record, the two streams would wait for each other. */
const char *wait_means_the_record_before(void)
{
	stand t;
	event e, back;

	cudaEventRecord(e.e, t.s[0]);
	cudaStreamWaitEvent(t.s[1], e.e, 0);
	t.add(1, 1);
	cudaEventRecord(back.e, t.s[1]);
	cudaStreamWaitEvent(t.s[0], back.e, 0);
	cudaEventRecord(e.e, t.s[0]);
	return t.all(0, 1);
}

const char *query_of_no_record(void)
{
	event e;

	return differs(cudaEventQuery(e.e), cudaSuccess);
}

const char *query_behind_work(void)
{
	stand t;
	event e;

	t.add(0, 1);
	cudaEventRecord(e.e, t.s[0]);
	cudaEventSynchronize(e.e);
	return differs(cudaEventQuery(e.e), cudaSuccess);
}

const char *elapsed(bool timed, bool recorded, cudaError_t want)
{
	stand t;
	event from(timed), to(timed);
	float ms = -1;

	if (recorded)
		cudaEventRecord(from.e, t.s[0]);
	t.add(0, 1);
	if (recorded)
		cudaEventRecord(to.e, t.s[0]);
	cudaStreamSynchronize(t.s[0]);
	const char *found = differs(cudaEventElapsedTime(&ms, from.e, to.e), want);

	return !found && want == cudaSuccess ? unless(ms >= 0, "time goes backwards") : found;
}

const char *time_of_events(void)
{
	return elapsed(true, true, cudaSuccess);
}

const char *time_without_timing(void)
{
	return elapsed(false, true, cudaErrorInvalidResourceHandle);
}

const char *time_of_no_record(void)
{
	return elapsed(true, false, cudaErrorInvalidResourceHandle);
}

/* ---- graphs ---- */

cudaError_t begin(stand &t)
{
	return cudaStreamBeginCapture(t.s[0], cudaStreamCaptureModeThreadLocal);
}

/* Ends the capture of stream 0 and instantiates the graph; nullptr if that failed, with the error in *ret. */
cudaGraphExec_t end(stand &t, cudaError_t *ret)
{
	cudaGraph_t graph = nullptr;
	cudaGraphExec_t exec = nullptr;

	*ret = cudaStreamEndCapture(t.s[0], &graph);
	if (*ret == cudaSuccess)
		*ret = cudaGraphInstantiate(&exec, graph, 0);
	if (graph)
		cudaGraphDestroy(graph);
	return exec;
}

/* add on stream 0, twice on stream 1, add on stream 0. */
void fork_and_join(stand &t, event &there, event &back)
{
	t.add(0, 1);
	cudaEventRecord(there.e, t.s[0]);
	cudaStreamWaitEvent(t.s[1], there.e, 0);
	t.twice(1);
	cudaEventRecord(back.e, t.s[1]);
	cudaStreamWaitEvent(t.s[0], back.e, 0);
	t.add(0, 1);
}

const char *graph_does_what_was_recorded(void)
{
	stand t;
	event there, back;
	cudaError_t rc;
	int want = 0;

	begin(t);
	fork_and_join(t, there, back);
	cudaGraphExec_t exec = end(t, &rc);

	if (!exec)
		return differs(rc, cudaSuccess);
	const char *found = t.all(0, 0); /* recording does not run anything */

	for (int i = 0; i < 20; i++) {
		cudaGraphLaunch(exec, t.s[0]);
		t.add(0, 1);
		want = 2 * (want + 1) + 2;
	}
	if (!found)
		found = t.all(0, want);
	cudaGraphExecDestroy(exec);
	return found;
}

void CUDART_CB host_doubles(void *pinned)
{
	for (int i = 0; i < VALUES; i++)
		static_cast<int *>(pinned)[i] *= 2;
}

/* Adds 1, has the host double the values, and adds 1. */
void with_the_host(stand &t)
{
	t.add(0, 1);
	cudaMemcpyAsync(t.pinned, t.device, VALUES * sizeof(int), cudaMemcpyDefault, t.s[0]);
	cudaLaunchHostFunc(t.s[0], host_doubles, t.pinned);
	cudaMemcpyAsync(t.device, t.pinned, VALUES * sizeof(int), cudaMemcpyDefault, t.s[0]);
	t.add(0, 1);
}

const char *host_works_in_order(void)
{
	stand t;
	cudaError_t rc;
	int want = 0;

	begin(t);
	with_the_host(t);
	cudaGraphExec_t exec = end(t, &rc);

	if (!exec)
		return differs(rc, cudaSuccess);
	for (int i = 0; i < 5; i++) {
		cudaGraphLaunch(exec, t.s[0]);
		with_the_host(t);
		want = 4 * want + 9;
	}
	const char *found = t.all(0, want);

	cudaGraphExecDestroy(exec);
	return found;
}

/* A graph that adds 1 between two events; NULL with the error in *ret. */
cudaGraphExec_t timed_graph(stand &t, const event &from, const event &to, cudaError_t *ret)
{
	begin(t);
	cudaEventRecordWithFlags(from.e, t.s[0], cudaEventRecordExternal);
	t.add(0, 1);
	cudaEventRecordWithFlags(to.e, t.s[0], cudaEventRecordExternal);
	return end(t, ret);
}

const char *graph_times_are_read(void)
{
	stand t;
	event from(true), to(true);
	cudaError_t rc;
	float ms = -1;
	cudaGraphExec_t exec = timed_graph(t, from, to, &rc);

	if (!exec)
		return differs(rc, cudaSuccess);
	const char *found = nullptr;

	for (int i = 0; !found && i < 3; i++) {
		cudaGraphLaunch(exec, t.s[0]);
		cudaStreamSynchronize(t.s[0]);
		found = differs(cudaEventElapsedTime(&ms, from.e, to.e), cudaSuccess);
	}
	cudaGraphExecDestroy(exec);
	return found ? found : unless(ms >= 0, "time goes backwards");
}

const char *times_beside_a_graph(void)
{
	stand t;
	event from[2] = { event(true), event(true) }, to[2] = { event(true), event(true) }, over;
	cudaGraphExec_t exec[2] = { nullptr, nullptr };
	cudaError_t rc = cudaSuccess;
	const char *found = nullptr;
	float ms = -1;

	for (int i = 0; i < 2 && rc == cudaSuccess; i++)
		exec[i] = timed_graph(t, from[i], to[i], &rc);
	for (int i = 0; i < 6 && rc == cudaSuccess && !found; i++) {
		cudaGraphLaunch(exec[i % 2], t.s[0]);
		cudaEventRecord(over.e, t.s[0]);
		cudaGraphLaunch(exec[1 - i % 2], t.s[0]);
		cudaEventSynchronize(over.e);
		found = differs(cudaEventElapsedTime(&ms, from[i % 2].e, to[i % 2].e), cudaSuccess);
	}
	if (rc == cudaSuccess && !found)
		found = t.all(0, 12);
	for (int i = 0; i < 2; i++)
		if (exec[i])
			cudaGraphExecDestroy(exec[i]);
	return rc != cudaSuccess ? differs(rc, cudaSuccess) : found;
}

/* A call that waits for the device, or changes its memory, is refused during a capture, and the capture fails. */
const char *refused_in_capture(cudaError_t (*call)(stand &t))
{
	stand t;
	cudaError_t rc;

	begin(t);
	t.add(0, 1);
	const char *found = differs(call(t), cudaErrorStreamCaptureUnsupported);

	cudaGraphExec_t exec = end(t, &rc);

	cudaGetLastError();
	if (exec)
		cudaGraphExecDestroy(exec);
	return found ? found : differs(rc, cudaErrorStreamCaptureInvalidated);
}

const char *no_memory_in_capture(void)
{
	return refused_in_capture([](stand &) {
		void *p = nullptr;

		return cudaMalloc(&p, 4096);
	});
}

const char *no_sync_in_capture(void)
{
	return refused_in_capture([](stand &t) { return cudaStreamSynchronize(t.s[0]); });
}

const char *unjoined_stream(void)
{
	stand t;
	event there;
	cudaError_t rc;

	begin(t);
	t.add(0, 1);
	cudaEventRecord(there.e, t.s[0]);
	cudaStreamWaitEvent(t.s[1], there.e, 0);
	t.twice(1);
	cudaGraphExec_t exec = end(t, &rc);

	cudaGetLastError();
	if (exec)
		cudaGraphExecDestroy(exec);
	return differs(rc, cudaErrorStreamCaptureUnjoined);
}

/* Refused by the wait itself or at the end. */
const char *wait_for_what_is_outside(void)
{
	stand t;
	event e;
	cudaError_t rc;

	t.add(1, 1);
	cudaEventRecord(e.e, t.s[1]);
	begin(t);
	cudaError_t waited = cudaStreamWaitEvent(t.s[0], e.e, 0);

	t.add(0, 1);
	cudaGraphExec_t exec = end(t, &rc);

	cudaGetLastError();
	if (exec)
		cudaGraphExecDestroy(exec);
	return waited != cudaSuccess ? differs(waited, cudaErrorStreamCaptureIsolation)
				     : unless(rc != cudaSuccess, "a graph waits for work outside of it");
}

} // namespace

extern const struct conformance_row conformance_runtime[] = {
	{ "a device beyond the last one is refused", device_is_refused },
	{ "properties and attributes of a device agree", properties_agree },
	{ "too large an allocation is refused once, and the device still works", too_much_memory },
	{ "free memory falls and rises by allocated and freed bytes", memory_is_counted },
	{ "copies of pinned memory arrive in both directions", copies_arrive },
	{ "copies on the device keep their stream's order", copies_on_the_device },
	{ "bytes are set in the order of a stream", bytes_are_set },
	{ "work of the legacy stream is done after a wait for it", legacy_stream_is_waited_for },
	{ "a launch copies its operands", operands_are_copied },
	{ "a block shares memory across a barrier", shared_memory_and_barrier },
	{ "lanes of a warp exchange values", lanes_exchange },
	{ "1025 threads a block are refused, once", too_many_threads },
	{ "65536 rows of blocks are refused, once", grid_too_tall },
	{ "an empty grid is refused, once", empty_grid },
	{ "a stream keeps its order", stream_keeps_order },
	{ "waits for events order two streams", waits_order_streams },
	{ "a wait for an event that was never recorded does nothing", wait_for_nothing },
	{ "a wait refers to the record before it", wait_means_the_record_before },
	{ "an event that was never recorded is done", query_of_no_record },
	{ "an event is done when the work before it is", query_behind_work },
	{ "the time between two events can be read", time_of_events },
	{ "events without timing have no time", time_without_timing },
	{ "events that were never recorded have no time", time_of_no_record },
	{ "a graph runs what was recorded, at each launch, in its stream's order", graph_does_what_was_recorded },
	{ "a function of the host runs in its stream's order, in a graph too", host_works_in_order },
	{ "times of events inside a graph can be read after each launch", graph_times_are_read },
	{ "times of a graph can be read while another one with other events is running", times_beside_a_graph },
	{ "an allocation during a capture is refused, and the capture fails", no_memory_in_capture },
	{ "a synchronisation during a capture is refused, and the capture fails", no_sync_in_capture },
	{ "a graph whose streams are not joined is refused", unjoined_stream },
	{ "a graph cannot wait for work outside of it", wait_for_what_is_outside },
	{ nullptr, nullptr },
};

/* Prints and counts the rows of a list that fail. */
static int check_all(const struct conformance_row *rows)
{
	int failed = 0;

	for (; rows->rule; rows++) {
		const char *found = rows->check();
		const bool out = found && !strncmp(found, CONFORMANCE_LEFT_OUT, strlen(CONFORMANCE_LEFT_OUT));

		printf("%s %s%s%s\n", !found ? "holds " : out ? "absent" : "FAILED", rows->rule, found ? ": " : "",
		       found ? found : "");
		failed += found && !out;
		fflush(stdout);
	}
	return failed;
}

int main(void)
{
	int count = 0;

	if (cudaGetDeviceCount(&count) != cudaSuccess || !count) {
		printf("there is no GPU\n");
		return 77;
	}
	return check_all(conformance_runtime) + check_all(conformance_libraries) ? 1 : 0;
}
