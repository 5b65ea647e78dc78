/* kernel.h: one backend's implementation of one op. prepare may allocate, choose and compile; run never allocates,
 * never reads host values that change, never synchronises. Tensors' shapes and types come from the node. */
#ifndef DPT_GRAPH_KERNEL_H
#define DPT_GRAPH_KERNEL_H

#include "trainer/graph/graph.h"
#include "trainer/graph/reduction_tree.h"

struct comm;
struct device_comm;
struct stream_handle; /* a backend's stream; NULL on host backends */

/* Values that change every step, written before it into memory that kernels can read. */
struct step_page {
	int64_t step;      /* optimiser step, from 1 */
	int64_t epoch;     /* from 1 */
	int64_t micro;     /* micro-batch of the step, from 0 */
	struct reduction_tree leaves; /* where each micro-batch is one (--deterministic): the rank's; this one is leaf
			       * leaves.first + micro, or none when the rank has no more; else all 0 */
	uint64_t seed;
	double lr;
	int64_t first_sample; /* of this micro-batch, within the global batch: what random draws are keyed by */
	double inv_count;  /* 1 / samples (or tokens) of the global batch, over all ranks and micro-batches */
	double loss_scale; /* 1 unless fp16 */
	int64_t watch;	   /* not 0: a step in which the nodes of trainer/ops/watch act */
	int64_t rehearsal; /* not 0: the program is run to be warm; the step is skipped and counts for nothing */
};

struct kernel_env {
	int threads; /* that run may use */
	bool deterministic;
	struct comm *comm; /* of a collective node: of its stream and group; NULL when planning without ranks */
	struct device_comm *devices; /* of the same ranks, where they compute on devices; else NULL */
	void *module;      /* what backend->open returned */
};

struct kernel_args {
	void *const *in;  /* base addresses, in the node's order; NULL for absent optional operands */
	void *const *out;
	void *workspace;  /* 64-byte aligned, node->workspace_bytes long */
	const struct step_page *page;
	struct stream_handle *stream;
};

struct kernel {
	/* Optional (NULL: plain layout always): the bytes of input `index` in the layout this kernel wants it packed
	 * into, once per step by a pack node; 0 for plain. */
	size_t (*pack_bytes)(const struct kernel_env *env, const struct node *n, int index);

	/* Chooses an implementation; writes node->workspace_bytes. *ret_state is passed to run and release. A kernel
	 * that cannot take the node says why in err (ERR_UNSUPPORTED). */
	int (*prepare)(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err);

	/* 0, or negative with err filled (collectives: a peer died). Batches of zero samples are legal: weight
	 * gradients and sums must then come out as zeros. */
	int (*run)(void *state, const struct kernel_args *args, struct err *err);

	/* Optional: run of n nodes, none of which touches what another one writes; they may have one workspace. All of
	 * them have this kernel, stream and page, and operands of the same types; states and args by node. The same
	 * bits as one by one. */
	int (*run_many)(void *const *states, const struct kernel_args *args, int n, struct err *err);

	void (*release)(void *state); /* NULL state is fine */

	/* Optional: name of the implementation that was chosen, for bench and dumps. */
	const char *(*impl)(const void *state);
};

#endif
