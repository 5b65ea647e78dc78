/* cuda_streams.c: streams, events and graphs of a rank's device. Streams do not wait for CUDA's legacy stream, nor it for
 * them: the executor orders everything. */
#include <stdlib.h>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HAVE_NVTX 1
#endif

#include "trainer/backends/cuda/fail.h"
#include "trainer/backends/cuda/cuda_module.h"

static int done(struct err *err, cudaError_t rc, const char *what)
{
	return rc == cudaSuccess ? 0 : cuda_fail(err, rc, what);
}

static int stream_new(void *module, struct stream_handle **ret, struct err *err)
{
	(void)module;
	return done(err, cudaStreamCreateWithFlags((cudaStream_t *)ret, cudaStreamNonBlocking), "making a stream");
}

static void stream_free(void *module, struct stream_handle *s)
{
	(void)module;
	cudaStreamDestroy((cudaStream_t)s);
}

struct event_handle {
	cudaEvent_t event;
	bool timed;
};

static int event_new(void *module, bool timed, struct event_handle **ret, struct err *err)
{
	struct event_handle *e = malloc(sizeof(*e));
	int rc;

	(void)module;
	if (!e)
		return err_set(err, ERR_NOMEM, "cuda: out of memory: event");
	e->timed = timed;
	rc = done(err, cudaEventCreateWithFlags(&e->event, timed ? cudaEventDefault : cudaEventDisableTiming),
		  "making an event");
	if (rc)
		free(e);
	else
		*ret = e;
	return rc;
}

static void event_free(void *module, struct event_handle *e)
{
	(void)module;
	cudaEventDestroy(e->event);
	free(e);
}

/* A timed event becomes a node of the graph; the others are its edges. */
static int record(void *module, struct stream_handle *s, struct event_handle *e, struct err *err)
{
	const struct cuda_module *m = module;
	const bool outside = m->capturing && e->timed;

	return done(err,
		    cudaEventRecordWithFlags(e->event, (cudaStream_t)s,
					     outside ? cudaEventRecordExternal : cudaEventRecordDefault),
		    "recording an event");
}

static int stream_wait(void *module, struct stream_handle *s, struct event_handle *e, struct err *err)
{
	(void)module;
	return done(err, cudaStreamWaitEvent((cudaStream_t)s, e->event, 0), "making one stream wait for another");
}

static int copy_async(void *module, struct stream_handle *s, const struct backend_copy *c, struct err *err)
{
	(void)module;
	return done(err, cudaMemcpyAsync(c->to, c->from, c->bytes, cudaMemcpyDefault, (cudaStream_t)s), "copying");
}

static int event_sync(void *module, struct event_handle *e, struct err *err)
{
	(void)module;
	return done(err, cudaEventSynchronize(e->event), "waiting for the device");
}

static int event_done(void *module, struct event_handle *e, bool *ret, struct err *err)
{
	cudaError_t rc = cudaEventQuery(e->event);

	(void)module;
	*ret = rc == cudaSuccess;
	return done(err, rc == cudaErrorNotReady ? cudaSuccess : rc, "waiting for the device");
}

static int seconds(void *module, struct event_handle *from, struct event_handle *to, double *ret, struct err *err)
{
	float ms = 0;
	int rc = done(err, cudaEventElapsedTime(&ms, from->event, to->event), "reading a time");

	(void)module;
	if (!rc)
		*ret = ms / 1e3;
	return rc;
}

struct graph_handle {
	cudaGraphExec_t exec;
	struct backend_sent sent; /* each time it is launched */
};

static int capture_begin(void *module, struct stream_handle *s, struct err *err)
{
	struct cuda_module *m = module;
	int rc = done(err, cudaStreamBeginCapture((cudaStream_t)s, cudaStreamCaptureModeThreadLocal),
		      "recording a graph");

	m->capturing = !rc;
	m->sent_recorded = (struct backend_sent){ 0 };
	return rc;
}

static int capture_end(void *module, struct stream_handle *s, struct graph_handle **ret, struct err *err)
{
	struct cuda_module *m = module;
	struct graph_handle *g;
	cudaGraph_t graph = NULL;
	int rc = done(err, cudaStreamEndCapture((cudaStream_t)s, &graph), "recording a graph");

	m->capturing = false;
	if (rc)
		return rc;
	g = calloc(1, sizeof(*g));
	rc = g ? done(err, cudaGraphInstantiate(&g->exec, graph, 0), "making a graph")
	       : err_set(err, ERR_NOMEM, "cuda: out of memory: graph");
	cudaGraphDestroy(graph);
	if (rc) {
		free(g);
		return rc;
	}
	g->sent = m->sent_recorded;
	*ret = g;
	return 0;
}

static int graph_launch(void *module, struct stream_handle *s, struct graph_handle *g, struct err *err)
{
	struct cuda_module *m = module;

	m->sent.all += g->sent.all;
	m->sent.nodes += g->sent.nodes;
	return done(err, cudaGraphLaunch(g->exec, (cudaStream_t)s), "launching a graph");
}

static void recorded_free(void *module, struct graph_handle *g)
{
	(void)module;
	cudaGraphExecDestroy(g->exec);
	free(g);
}

#ifdef HAVE_NVTX
static void range_begin(const char *name)
{
	nvtxRangePushA(name);
}

static void range_end(void)
{
	nvtxRangePop();
}
#endif

const struct backend_streams cuda_streams = {
	.stream_new = stream_new,
	.stream_free = stream_free,
	.event_new = event_new,
	.event_free = event_free,
	.record = record,
	.wait = stream_wait,
	.copy_async = copy_async,
	.event_sync = event_sync,
	.event_done = event_done,
	.seconds = seconds,
	.capture_begin = capture_begin,
	.capture_end = capture_end,
	.graph_launch = graph_launch,
	.graph_free = recorded_free,
#ifdef HAVE_NVTX
	.range_begin = range_begin,
	.range_end = range_end,
#endif
};
