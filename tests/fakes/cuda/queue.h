/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h: work queued on the fake device. Work of one stream runs in order; the next stream is chosen at random
 * ($DPTRAIN_FAKE_SEED, a number, "last" or "beside"), among those whose waits are satisfied. Nothing runs before a
 * synchronisation. It knows neither kernels nor memory. */
#ifndef DPT_TESTS_FAKES_CUDA_QUEUE_H
#define DPT_TESTS_FAKES_CUDA_QUEUE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include <memory>
#include <vector>

/* One piece of work; called with the device's memory open. */
struct work {
	virtual ~work()
	{
	}
	virtual void run() = 0;
	/* For work that other processes take part in: proceeds as far as possible without waiting for them; returns
	 * true if it is done, and may be started again. */
	virtual bool step()
	{
		run();
		return true;
	}
};

struct capture;

/* CUDA's opaque types. */
struct CUevent_st {
	bool timed;
	int number;	   /* in the order of creation */
	uint64_t recorded; /* records queued so far */
	uint64_t done;	   /* of these, those that ran */
	double at_s;	   /* time of the last one */
	struct capture *capture;    /* capture of its last record */
	std::vector<int> after;     /* nodes of that capture */
};

struct queued {
	std::shared_ptr<struct work> work; /* NULL: an event's record or wait */
	cudaEvent_t event;
	uint64_t count; /* wait: of records that must be done; record: 0 */
	bool waits;
};

struct CUstream_st {
	std::vector<struct queued> items;
	size_t next;
	struct capture *capture;
	std::vector<int> after; /* in the capture: predecessors of its next node */
};

struct graph_node {
	std::shared_ptr<struct work> work;
	cudaEvent_t event; /* recorded, if there is no work */
	std::vector<int> after;
	bool beside = false; /* of a stream that joined the capture */
};

struct capture {
	std::vector<struct graph_node> nodes;
	cudaStream_t origin;
	bool broken; /* it would wait for work outside of it */
	bool lost;   /* a forbidden function was called */
	int waits, events; /* so far */
};

struct CUgraph_st {
	std::vector<struct graph_node> nodes;
};

struct CUgraphExec_st {
	std::vector<struct graph_node> nodes;
};

/* Appends to the stream, or to the graph that it captures. */
void queue_work(cudaStream_t stream, std::shared_ptr<struct work> work);
void queue_record(cudaStream_t stream, cudaEvent_t event, bool into_graph);
void queue_wait(cudaStream_t stream, cudaEvent_t event);

/* Runs until the event's records are done, or the stream is empty; work of other streams runs too, at random. The last
 * one proceeds as far as possible without waiting for other processes; returns whether they are done. */
void queue_sync_event(cudaEvent_t event);
void queue_sync_stream(cudaStream_t stream);
bool queue_query_event(cudaEvent_t event);
extern bool queue_launched; /* a graph was launched: rehearsals before it do not count */
bool queue_is_idle(void);
bool queue_captures(void); /* whether any stream does */
void queue_lose_captures(void);

cudaError_t queue_begin_capture(cudaStream_t stream);
cudaError_t queue_end_capture(cudaStream_t stream, cudaGraph_t *ret);

/* One launch of a graph: its nodes in a random order that its edges allow. */
struct graph_run : work {
	const CUgraphExec_st *graph;
	std::vector<bool> done;
	size_t left;

	explicit graph_run(const CUgraphExec_st *g) : graph(g), done(g->nodes.size()), left(g->nodes.size())
	{
	}
	void run() override
	{
	}
	bool step() override;
};

void queue_add_stream(cudaStream_t stream);
void queue_drop_stream(cudaStream_t stream);

#endif
