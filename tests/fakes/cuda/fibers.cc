/* fibers.cc: a pool of stacks. A thread gets one when it starts. When it ends, the warp's next thread that has not
 * started runs on it at once, so a kernel without barriers needs one stack and a switch per warp. A switch saves only the
 * registers that a call preserves. */
#include "tests/fakes/cuda/fibers.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/fakes/cuda/bounds.h"

#define THREADS_MAX 1024
#define WARP_THREADS 32
#define STACK_BYTES (128 << 10)
#define SHARED_BYTES (48 << 10) /* limit of a block's declarations on every GPU */
#define DECLARATIONS_MAX 16
#define SHARED_ALIGN 16

struct emulated_index threadIdx, blockIdx, blockDim, gridDim;

enum state { FRESH, READY, AT_BARRIER, AT_EXCHANGE, ENDED };

struct fiber {
	void *sp;
	struct bounds_stack stack;
};

struct declaration {
	const void *name;
	size_t at, bytes;
};

static struct {
	const struct emulated_launch *launch;
	struct fiber *of[THREADS_MAX];
	enum state state[THREADS_MAX];
	int order[THREADS_MAX];
	uint64_t brought[2][THREADS_MAX];
	int turn[THREADS_MAX]; /* which of the two a thread's last value is in */
	int current;
	const int *lane, *lanes_end; /* of the running warp, in their order: the current thread's and the end */
	void *scheduler; /* its stack pointer while a fiber runs */
	struct bounds_stack scheduler_stack;
	struct fiber *pool[THREADS_MAX];
	int pooled;
	struct declaration declared[DECLARATIONS_MAX];
	int n_declared;
	size_t shared_used;
	uint64_t draw;
} run;

alignas(SHARED_ALIGN) static unsigned char shared[SHARED_BYTES + DECLARATIONS_MAX * BOUNDS_GAP];

#if !defined(__x86_64__)
#error "the emulation switches stacks for x86-64 only"
#endif
extern "C" void emulated_switch(void **save, void *to);
asm(".text\n.globl emulated_switch\n.hidden emulated_switch\n.type emulated_switch,@function\n"
    "emulated_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".size emulated_switch, .-emulated_switch\n");

static void die(const char *what)
{
	fprintf(stderr, "fake device: %s (block %u of %u, %u threads)\n", what, blockIdx.x, gridDim.x, blockDim.x);
	abort();
}

static void give_way(enum state s)
{
	struct fiber *f = run.of[run.current];

	run.state[run.current] = s;
	bounds_leave(&f->stack, &run.scheduler_stack);
	emulated_switch(&f->sp, run.scheduler);
	bounds_arrive(&f->stack, &run.scheduler_stack);
}

/* The next thread of the warp, if it has not started yet. */
static bool go_to_next(struct fiber *f)
{
	if (run.lane + 1 == run.lanes_end || run.state[run.lane[1]] != FRESH)
		return false;
	run.state[run.current] = ENDED;
	run.current = *++run.lane;
	run.of[run.current] = f;
	threadIdx.x = (unsigned)run.current;
	return true;
}

/* Main function of the threads on this stack, one after the other. */
static void fiber_main(void)
{
	bounds_arrive(&run.of[run.current]->stack, &run.scheduler_stack);
	for (;;) {
		struct fiber *f = run.of[run.current];

		run.launch->body(run.launch->operands);
		if (go_to_next(f))
			continue;
		run.pool[run.pooled++] = f;
		give_way(ENDED);
	}
}

static struct fiber *fiber_take(void)
{
	struct fiber *f;
	char *stack;
	void **sp;

	if (run.pooled)
		return run.pool[--run.pooled];
	f = (struct fiber *)calloc(1, sizeof(*f));
	stack = (char *)aligned_alloc(64, STACK_BYTES);
	if (!f || !stack)
		die("out of memory for threads");
	f->stack = { stack, STACK_BYTES, NULL };
	sp = (void **)(stack + STACK_BYTES) - 2;
	*sp = (void *)fiber_main;
	f->sp = sp - 6; /* six registers, popped before the return into fiber_main */
	return f;
}

static void resume(int t)
{
	if (run.state[t] == FRESH)
		run.of[t] = fiber_take();
	run.state[t] = READY;
	run.current = t;
	threadIdx.x = (unsigned)t;
	bounds_leave(&run.scheduler_stack, &run.of[t]->stack);
	emulated_switch(&run.scheduler, run.of[t]->sp);
	bounds_arrive(&run.scheduler_stack, &run.of[t]->stack);
}

/* The threads from `first` on wait for each other; releases them once all have arrived. */
static bool release(int first, int n, enum state s)
{
	int there = 0, ended = 0;

	for (int t = first; t < first + n; t++) {
		there += run.state[t] == s;
		ended += run.state[t] == ENDED;
	}
	if (!there || there + ended < n)
		return false;
	if (ended)
		die("a barrier or shuffle that some of its threads never reach");
	for (int t = first; t < first + n; t++)
		run.state[t] = READY;
	return true;
}

static uint64_t drawn(void)
{
	run.draw ^= run.draw << 13;
	run.draw ^= run.draw >> 7;
	run.draw ^= run.draw << 17;
	return run.draw;
}

/* Stores the order of n blocks, warps or lanes in `to`. */
static void make_order(int *to, int n)
{
	static const char *asked = getenv("DPTRAIN_FAKE_ORDER");
	const bool down = asked && !strcmp(asked, "down"), draw = asked && !down && strcmp(asked, "up") != 0;

	if (!run.draw)
		run.draw = (draw ? strtoull(asked, NULL, 10) : 0) * 2654435769u + 88172645463325252u;
	for (int i = 0; i < n; i++)
		to[i] = down ? n - 1 - i : i;
	for (int i = n - 1; draw && i > 0; i--) {
		int k = (int)(drawn() % (unsigned)(i + 1)), other = to[k];

		to[k] = to[i];
		to[i] = other;
	}
}

static int lanes_of(int warp, int n)
{
	return n - warp * WARP_THREADS < WARP_THREADS ? n - warp * WARP_THREADS : WARP_THREADS;
}

/* The warps in sequence, each with its lanes. */
static void make_threads_order(int n)
{
	const int warps = (n + WARP_THREADS - 1) / WARP_THREADS;
	int warp[THREADS_MAX / WARP_THREADS], lane[WARP_THREADS], at = 0;

	make_order(warp, warps);
	for (int w = 0; w < warps; w++) {
		const int lanes = lanes_of(warp[w], n);

		make_order(lane, lanes);
		for (int i = 0; i < lanes; i++)
			run.order[at++] = warp[w] * WARP_THREADS + lane[i];
	}
}

/* Runs a warp, its lanes in the given order, until all of them have ended or wait for other warps: this exposes work
 * that is done too early. */
static void run_warp(const int *lane, int lanes, int first)
{
	run.lanes_end = lane + lanes;
	do {
		for (run.lane = lane; run.lane < run.lanes_end; run.lane++)
			if (run.state[*run.lane] == FRESH || run.state[*run.lane] == READY)
				resume(*run.lane);
	} while (release(first, lanes, AT_EXCHANGE));
}

static bool ended(int n)
{
	for (int t = 0; t < n; t++)
		if (run.state[t] != ENDED)
			return false;
	return true;
}

/* Memory that no declaration of the block has opened stays shut. */
static void shut_shared(void)
{
	static bool shut;

	if (!shut)
		bounds_shut(shared, sizeof(shared));
	shut = true;
	for (int i = 0; i < run.n_declared; i++)
		bounds_shut(shared + run.declared[i].at, run.declared[i].bytes);
	run.n_declared = 0;
	run.shared_used = 0;
}

static void run_block(int n)
{
	shut_shared();
	memset(run.state, FRESH, (size_t)n * sizeof(*run.state));
	memset(run.turn, 0, (size_t)n * sizeof(*run.turn));
	for (;;) {
		for (int at = 0, lanes; at < n; at += lanes) {
			const int warp = run.order[at] / WARP_THREADS;

			lanes = lanes_of(warp, n);
			run_warp(run.order + at, lanes, warp * WARP_THREADS);
		}
		if (ended(n))
			return;
		if (!release(0, n, AT_BARRIER))
			die("threads wait for each other for ever");
	}
}

void emulated_barrier(void)
{
	give_way(AT_BARRIER);
}

/* Values of one exchange stay until the one after the next, which no lane reaches before all have read these. */
const uint64_t *emulated_met(uint64_t bits)
{
	const int t = run.current, turn = run.turn[t] = !run.turn[t];

	run.brought[turn][t] = bits;
	give_way(AT_EXCHANGE);
	return run.brought[turn] + t / WARP_THREADS * WARP_THREADS;
}

/* Nothing that the values point to changes before all lanes have read it. */
void emulated_parted(void)
{
	give_way(AT_EXCHANGE);
}

uint64_t emulated_exchange(uint64_t bits, unsigned lane)
{
	const uint64_t *brought = emulated_met(bits);
	const bool there = run.current / WARP_THREADS * WARP_THREADS + (int)lane < (int)blockDim.x;

	return there ? brought[lane] : bits;
}

void *emulated_shared(const void *declaration, size_t bytes)
{
	const size_t begin = (run.shared_used + SHARED_ALIGN - 1) / SHARED_ALIGN * SHARED_ALIGN;
	const size_t at = begin + (size_t)run.n_declared * BOUNDS_GAP;

	for (int i = 0; i < run.n_declared; i++)
		if (run.declared[i].name == declaration)
			return shared + run.declared[i].at;
	if (begin + bytes > SHARED_BYTES || run.n_declared == DECLARATIONS_MAX)
		die("more shared memory than a block has");
	run.declared[run.n_declared++] = { declaration, at, bytes };
	run.shared_used = begin + bytes;
	bounds_open(shared + at, bytes);
	memset(shared + at, 0xff, bytes);
	return shared + at;
}

void fibers_run(const struct emulated_launch *l)
{
	const int64_t blocks = (int64_t)l->grid.x * l->grid.y * l->grid.z;
	int *order = (int *)malloc((size_t)blocks * sizeof(*order));

	if (!order)
		die("out of memory for blocks");
	run.launch = l;
	blockDim = { (unsigned)l->threads, 1, 1 };
	gridDim = { l->grid.x, l->grid.y, l->grid.z };
	make_order(order, (int)blocks);
	make_threads_order(l->threads);
	for (int64_t i = 0; i < blocks; i++) {
		unsigned b = (unsigned)order[i];

		blockIdx = { b % gridDim.x, b / gridDim.x % gridDim.y, b / gridDim.x / gridDim.y };
		run_block(l->threads);
	}
	free(order);
}
