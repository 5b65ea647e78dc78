/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_streams.c: streams, events and graphs of a rank's device. Its streams and CUDA's legacy stream do not wait for
 * each other: the executor orders all work. */
#include <stdlib.h>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HAVE_NVTX 1
#endif

#include "tracker/mem/mem.h"
#include "trainer/backends/cuda/cuda_module.h"

static int check_cuda(struct err *err, cudaError_t rc, const char *what)
{
	return rc == cudaSuccess ? 0 : cuda_fail(err, rc, what);
}

static int new_stream(void *module, struct stream_handle **ret, struct err *err)
{
	(void)module;
	return check_cuda(err, cudaStreamCreateWithFlags((cudaStream_t *)ret, cudaStreamNonBlocking),
			  "creating a stream");
}

static void free_stream(void *module, struct stream_handle *s)
{
	(void)module;
	cudaStreamDestroy((cudaStream_t)s);
}

struct event_handle {
	cudaEvent_t event;
	bool timed;
};

static int new_event(void *module, bool timed, struct event_handle **ret, struct err *err)
{
	struct event_handle *e = mem_alloc(sizeof(*e));
	int rc;

	(void)module;
	e->timed = timed;
	rc = check_cuda(err, cudaEventCreateWithFlags(&e->event, timed ? cudaEventDefault : cudaEventDisableTiming),
			"creating an event");
	if (rc)
		free(e);
	else
		*ret = e;
	return rc;
}

static void free_event(void *module, struct event_handle *e)
{
	(void)module;
	cudaEventDestroy(e->event);
	free(e);
}

/* While recording, a timed event becomes a node of the graph; the others become edges. */
static int record_cuda_event(void *module, struct stream_handle *s, struct event_handle *e, struct err *err)
{
	const struct cuda_module *m = module;
	const bool outside = m->capturing && e->timed;

	return check_cuda(err,
			  cudaEventRecordWithFlags(e->event, (cudaStream_t)s,
						   outside ? cudaEventRecordExternal : cudaEventRecordDefault),
			  "recording an event");
}

static int wait_event(void *module, struct stream_handle *s, struct event_handle *e, struct err *err)
{
	(void)module;
	return check_cuda(err, cudaStreamWaitEvent((cudaStream_t)s, e->event, 0), "making one stream wait for another");
}

static int copy_on_stream(void *module, struct stream_handle *s, const struct backend_copy *c, struct err *err)
{
	(void)module;
	return check_cuda(err, cudaMemcpyAsync(c->to, c->from, c->bytes, cudaMemcpyDefault, (cudaStream_t)s),
			  "copying");
}

static int sync_event(void *module, struct event_handle *e, struct err *err)
{
	(void)module;
	return check_cuda(err, cudaEventSynchronize(e->event), "waiting for the device");
}

static int query_event(void *module, struct event_handle *e, bool *ret, struct err *err)
{
	cudaError_t rc = cudaEventQuery(e->event);

	(void)module;
	*ret = rc == cudaSuccess;
	return check_cuda(err, rc == cudaErrorNotReady ? cudaSuccess : rc, "waiting for the device");
}

static int read_seconds(void *module, struct event_handle *from, struct event_handle *to, double *ret, struct err *err)
{
	float ms = 0;
	int rc = check_cuda(err, cudaEventElapsedTime(&ms, from->event, to->event), "reading a time");

	(void)module;
	if (!rc)
		*ret = ms / 1e3;
	return rc;
}

struct graph_handle {
	cudaGraphExec_t exec;
	struct backend_sent sent; /* bytes sent per launch */
};

static int begin_capture(void *module, struct stream_handle *s, struct err *err)
{
	struct cuda_module *m = module;
	int rc = check_cuda(err, cudaStreamBeginCapture((cudaStream_t)s, cudaStreamCaptureModeThreadLocal),
			    "recording a graph");

	m->capturing = !rc;
	m->sent_recorded = (struct backend_sent){ 0 };
	return rc;
}

static int end_capture(void *module, struct stream_handle *s, struct graph_handle **ret, struct err *err)
{
	struct cuda_module *m = module;
	struct graph_handle *g;
	cudaGraph_t graph = NULL;
	int rc = check_cuda(err, cudaStreamEndCapture((cudaStream_t)s, &graph), "recording a graph");

	m->capturing = false;
	if (rc)
		return rc;
	g = mem_zalloc(sizeof(*g));
	rc = check_cuda(err, cudaGraphInstantiate(&g->exec, graph, 0), "creating a graph");
	cudaGraphDestroy(graph);
	if (rc) {
		free(g);
		return rc;
	}
	g->sent = m->sent_recorded;
	*ret = g;
	return 0;
}

static int launch_graph(void *module, struct stream_handle *s, struct graph_handle *g, struct err *err)
{
	struct cuda_module *m = module;

	m->sent.all += g->sent.all;
	m->sent.nodes += g->sent.nodes;
	return check_cuda(err, cudaGraphLaunch(g->exec, (cudaStream_t)s), "launching a graph");
}

static void free_graph_exec(void *module, struct graph_handle *g)
{
	(void)module;
	cudaGraphExecDestroy(g->exec);
	free(g);
}

#ifdef HAVE_NVTX
static void begin_range(const char *name)
{
	nvtxRangePushA(name);
}

static void end_range(void)
{
	nvtxRangePop();
}
#endif

const struct backend_streams cuda_streams = {
	.stream_new = new_stream,
	.stream_free = free_stream,
	.event_new = new_event,
	.event_free = free_event,
	.record = record_cuda_event,
	.wait = wait_event,
	.copy_async = copy_on_stream,
	.event_sync = sync_event,
	.event_done = query_event,
	.seconds = read_seconds,
	.capture_begin = begin_capture,
	.capture_end = end_capture,
	.graph_launch = launch_graph,
	.graph_free = free_graph_exec,
#ifdef HAVE_NVTX
	.range_begin = begin_range,
	.range_end = end_range,
#endif
};
