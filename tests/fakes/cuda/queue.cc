/* queue.cc: see queue.h. */
#include "tests/fakes/cuda/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "tests/fakes/cuda/enqueue.h"
#include "tests/fakes/cuda/memory.h"
#include "tests/fakes/cuda/mutant.h"

static std::vector<cudaStream_t> streams;
static std::vector<struct capture *> captures;

static uint64_t drawn(void)
{
	static uint64_t x;

	if (!x) {
		const char *seed = getenv("DPTRAIN_FAKE_SEED");

		x = strtoull(seed ? seed : "1", NULL, 10) * 2654435769u + 88172645463325252u;
	}
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void happen(cudaEvent_t e)
{
	e->done++;
	e->at_s = now_s();
}

static void add_once(std::vector<int> &to, int node)
{
	if (std::find(to.begin(), to.end(), node) == to.end())
		to.push_back(node);
}

static void capture_node(cudaStream_t s, struct graph_node node)
{
	node.after = s->after;
	node.beside = s != s->capture->origin;
	s->capture->nodes.push_back(node);
	s->after = { (int)s->capture->nodes.size() - 1 };
}

void queue_work(cudaStream_t s, std::shared_ptr<struct work> work)
{
	if (s->capture)
		capture_node(s, { work, NULL, {} });
	else
		s->items.push_back({ work, NULL, 0, false });
}

struct call : work {
	void (*body)(const void *operands);
	std::vector<char> operands;

	call(void (*f)(const void *), const void *from, size_t n)
		: body(f), operands((const char *)from, (const char *)from + n)
	{
	}
	void run() override
	{
		body(operands.data());
	}
};

/* One write call, so that ranks may share the file. */
void fake_note(const char *what)
{
	const char *path = getenv("DPTRAIN_FAKE_NOTES");
	FILE *f = path ? fopen(path, "ae") : NULL;

	if (!f)
		return;
	fprintf(f, "%s\n", what);
	fclose(f);
}

void fake_enqueue(cudaStream_t stream, void (*run)(const void *operands), const void *operands, size_t bytes)
{
	queue_work(stream, std::make_shared<call>(run, operands, bytes));
}

/* Whether to omit this wait or record of a captured graph. */
static bool left_out(const char *kind, int *count)
{
	++*count;
	return mutant_chosen && mutant_numbered(kind, *count);
}

bool queue_launched;

/* Whether to omit it around graphs: always the same event. Events with timing do not count. */
static bool left_out_around(const char *kind, cudaStream_t s, cudaEvent_t e)
{
	return mutant_chosen && queue_launched && !s->capture && !e->timed && mutant_numbered(kind, e->number);
}

void queue_record(cudaStream_t s, cudaEvent_t e, bool into_graph)
{
	if (left_out_around("event around", s, e))
		return;
	if (s->capture && !into_graph && left_out("event", &s->capture->events))
		return;
	if (s->capture && into_graph) {
		capture_node(s, { NULL, e, {} });
		return;
	}
	if (s->capture) {
		e->capture = s->capture;
		e->after = s->after;
		return;
	}
	e->capture = NULL;
	e->recorded++;
	s->items.push_back({ NULL, e, 0, false });
}

/* Waiting for an event of a capture makes the stream part of it. */
void queue_wait(cudaStream_t s, cudaEvent_t e)
{
	if (!e->capture && left_out_around("wait around", s, e))
		return;
	if (e->capture && left_out("wait", &e->capture->waits))
		return;
	if (e->capture) {
		s->capture = e->capture;
		for (int node : e->after)
			add_once(s->after, node);
		return;
	}
	if (s->capture)
		s->capture->broken = true; /* it would wait for work outside of the graph */
	if (e->recorded)
		s->items.push_back({ NULL, e, e->recorded, true });
}

static bool can_go_on(cudaStream_t s)
{
	const struct queued *q = s->next < s->items.size() ? &s->items[s->next] : NULL;

	return q && !(q->waits && q->event->done < q->count);
}

/* Returns false if the next item waits for other processes. */
static bool go_on(cudaStream_t s)
{
	struct queued q = s->items[s->next];

	if (q.work && !q.work->step())
		return false;
	s->next++;
	if (s->next == s->items.size()) {
		s->items.clear();
		s->next = 0;
	}
	if (!q.work && !q.waits)
		happen(q.event);
	return true;
}

/* Runs one piece of work of a random stream; returns false if all runnable work waits for other processes. */
static bool run_one(void)
{
	size_t first = drawn() % (streams.size() ? streams.size() : 1);
	bool others = false;

	for (size_t i = 0; i < streams.size(); i++) {
		cudaStream_t s = streams[(first + i) % streams.size()];

		if (!can_go_on(s))
			continue;
		if (go_on(s))
			return true;
		others = true;
	}
	if (others)
		return false;
	fprintf(stderr, "fake device: streams wait for each other, or for an event that is never recorded\n");
	abort();
}

static void run_or_wait(void)
{
	if (!run_one())
		usleep(50);
}

void queue_sync_event(cudaEvent_t e)
{
	const uint64_t recorded = e->recorded;

	memory_open();
	while (e->done < recorded)
		run_or_wait();
	memory_shut();
}

bool queue_query_event(cudaEvent_t e)
{
	const uint64_t recorded = e->recorded;
	bool goes_on = true;

	memory_open();
	while (e->done < recorded && goes_on)
		goes_on = run_one();
	memory_shut();
	return e->done >= recorded;
}

void queue_sync_stream(cudaStream_t s)
{
	memory_open();
	while (!s->items.empty())
		run_or_wait();
	memory_shut();
}

bool queue_is_idle(void)
{
	return std::all_of(streams.begin(), streams.end(), [](cudaStream_t s) { return s->items.empty(); });
}

bool queue_captures(void)
{
	return !captures.empty();
}

void queue_lose_captures(void)
{
	for (struct capture *c : captures)
		c->lost = true;
}

cudaError_t queue_begin_capture(cudaStream_t s)
{
	if (s->capture)
		return cudaErrorIllegalState;
	s->capture = new ::capture();
	s->capture->origin = s;
	s->after.clear();
	captures.push_back(s->capture);
	return cudaSuccess;
}

/* Whether every node is an ancestor of the last node of the origin's stream. */
static bool is_joined(const struct capture *c)
{
	std::vector<bool> seen(c->nodes.size());
	std::vector<int> open = c->origin->after;

	while (!open.empty()) {
		int at = open.back();

		open.pop_back();
		if (seen[(size_t)at])
			continue;
		seen[(size_t)at] = true;
		for (int before : c->nodes[(size_t)at].after)
			open.push_back(before);
	}
	return std::all_of(seen.begin(), seen.end(), [](bool b) { return b; });
}

cudaError_t queue_end_capture(cudaStream_t s, cudaGraph_t *ret)
{
	struct capture *c = s->capture;
	cudaError_t rc = cudaSuccess;

	if (!c || c->origin != s)
		return cudaErrorIllegalState;
	if (c->lost)
		rc = cudaErrorStreamCaptureInvalidated;
	else if (c->broken)
		rc = cudaErrorStreamCaptureIsolation;
	else if (!is_joined(c))
		rc = cudaErrorStreamCaptureUnjoined;
	else
		*ret = new CUgraph_st{ c->nodes };
	for (cudaStream_t other : streams)
		if (other->capture == c) {
			other->capture = NULL;
			other->after.clear();
		}
	captures.erase(std::find(captures.begin(), captures.end(), c));
	delete c;
	return rc;
}

static bool is_ready(const struct graph_node &node, const std::vector<bool> &done)
{
	return std::all_of(node.after.begin(), node.after.end(), [&](int k) { return done[(size_t)k]; });
}

#define PATIENCE 100 /* in units of 100 us */

/* $DPTRAIN_FAKE_SEED "last": of the ready nodes always the one recorded last, with some time for other processes to
 * reach it; "beside": nodes of other streams before those of the first. This exposes missing waits. */
static bool order_is(const char *name)
{
	const char *seed = getenv("DPTRAIN_FAKE_SEED");

	return seed && !strcmp(seed, name);
}

static bool step_patiently(struct work *w, bool patient)
{
	for (int tries = 0; !w->step(); tries++) {
		if (!patient || tries == PATIENCE)
			return false;
		usleep(100);
	}
	return true;
}

/* Returns false if the ready nodes wait for other processes. */
static bool run_node(const std::vector<struct graph_node> &nodes, std::vector<bool> &done)
{
	const size_t n = nodes.size(), first = drawn() % n;
	const bool last = order_is("last"), beside = order_is("beside");

	for (size_t i = 0; i < (beside ? 2 * n : n); i++) {
		const size_t at = last ? n - 1 - i : beside ? i % n : (first + i) % n;

		if (done[at] || !is_ready(nodes[at], done) || (beside && i < n && !nodes[at].beside))
			continue;
		if (nodes[at].work && !step_patiently(nodes[at].work.get(), last || beside))
			continue;
		if (!nodes[at].work)
			happen(nodes[at].event);
		done[at] = true;
		return true;
	}
	return false;
}

bool graph_run::step()
{
	while (left && run_node(graph->nodes, done))
		left--;
	return !left;
}

void queue_add_stream(cudaStream_t s)
{
	streams.push_back(s);
}

void queue_drop_stream(cudaStream_t s)
{
	streams.erase(std::find(streams.begin(), streams.end(), s));
}
