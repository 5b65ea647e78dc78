/* queue.h: what waits to be done on the fake device. Work of one stream runs in its order; which stream goes on next is
 * drawn ($DPTRAIN_FAKE_SEED), among those whose waits are over. Nothing runs before somebody syncs. It knows no kernel
 * and no memory. */
#ifndef DPT_TESTS_FAKES_CUDA_QUEUE_H
#define DPT_TESTS_FAKES_CUDA_QUEUE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include <memory>
#include <vector>

/* One piece of work; run is called with the device's memory open. */
struct work {
	virtual ~work()
	{
	}
	virtual void run() = 0;
};

struct capture;

/* CUDA's opaque types. */
struct CUevent_st {
	bool timed;
	uint64_t recorded; /* records queued so far */
	uint64_t done;	   /* of them, those that ran */
	double at_s;	   /* when the last one did */
	struct capture *capture;    /* in which it was last recorded */
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
	std::vector<int> after; /* of the capture: what its next node comes behind */
};

struct graph_node {
	std::shared_ptr<struct work> work;
	cudaEvent_t event; /* recorded, when there is no work */
	std::vector<int> after;
};

struct capture {
	std::vector<struct graph_node> nodes;
	cudaStream_t origin;
	bool broken;
};

struct CUgraph_st {
	std::vector<struct graph_node> nodes;
};

struct CUgraphExec_st {
	std::vector<struct graph_node> nodes;
};

/* To the stream's end, or into the graph that it captures. */
void queue_work(cudaStream_t stream, std::shared_ptr<struct work> work);
void queue_record(cudaStream_t stream, cudaEvent_t event, bool into_graph);
void queue_wait(cudaStream_t stream, cudaEvent_t event);

/* Runs until the event's records are done, or the stream is empty; others' work runs too, as drawn. */
void queue_sync_event(cudaEvent_t event);
void queue_sync_stream(cudaStream_t stream);
bool queue_is_idle(void);
bool queue_captures(void); /* some stream does */

cudaError_t queue_begin_capture(cudaStream_t stream);
cudaError_t queue_end_capture(cudaStream_t stream, cudaGraph_t *ret);

/* The nodes of a graph in an order drawn among those that their edges allow. */
void queue_run_graph(const std::vector<struct graph_node> &nodes);

void queue_add_stream(cudaStream_t stream);
void queue_drop_stream(cudaStream_t stream);

#endif
