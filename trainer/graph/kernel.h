/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h: one backend's implementation of one op. prepare may allocate, choose and compile. run never allocates,
 * never reads host values that change and never synchronises. Shapes and types of tensors come from the node. */
#ifndef DPT_GRAPH_KERNEL_H
#define DPT_GRAPH_KERNEL_H

#include "trainer/graph/graph.h"
#include "trainer/graph/reduction_tree.h"

struct comm;
struct device_comm;
struct stream_handle; /* a backend's stream; NULL on host backends */

/* Values that change every step. The host writes them before the step into memory that kernels can read. */
struct step_page {
	int64_t step;		      /* optimiser step, from 1 */
	int64_t epoch;		      /* from 1 */
	int64_t epoch_step;	      /* of the epoch, from 0 */
	int64_t micro;		      /* micro-batch of the step, from 0 */
	struct reduction_tree leaves; /* with --deterministic each micro-batch is one leaf of the summation tree: this
				       * rank's leaves; the current one is leaf leaves.first + micro, or none when the
				       * rank has no more. Otherwise all 0 */
	uint64_t seed;
	double lr;
	int64_t first_sample; /* index of this micro-batch's first sample in the global batch: key of random draws */
	double inv_count;     /* 1 / samples (or tokens) of the global batch, over all ranks and micro-batches */
	double loss_scale;    /* 1 unless fp16 */
	double label_weight;  /* of a sample's first label where it has two (trainer/ops/xent) */
	int64_t watch;	      /* nonzero: nodes of trainer/ops/watch run in this step */
	int64_t rehearsal;    /* nonzero: warm-up run; the step updates nothing and is not counted */
};

struct kernel_env {
	int threads; /* available to run */
	bool deterministic;
	struct comm *comm; /* collective nodes: communicator of the node's stream and group; NULL when planning without
			    * ranks */
	struct device_comm *devices; /* the same ranks' device communicator if they compute on devices; else NULL */
	void *module;		     /* what backend->open returned */
};

struct kernel_args {
	void *const *in; /* base addresses, in the node's order; NULL for absent optional operands */
	void *const *out;
	void *workspace; /* 64-byte aligned, node->workspace_bytes long */
	const struct step_page *page;
	struct stream_handle *stream;
};

struct kernel {
	/* Optional (NULL: always plain layout). Returns the size in bytes of input `index` in the layout this kernel
	 * wants; a pack node converts it once per step. 0: plain layout. */
	size_t (*pack_bytes)(const struct kernel_env *env, const struct node *n, int index);

	/* Chooses an implementation and writes node->workspace_bytes. *ret_state is passed to run and release. A kernel
	 * that does not support the node explains why in err (ERR_UNSUPPORTED). */
	int (*prepare)(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err);

	/* What can fail is checked by prepare; of libraries and launches backend->take_failure tells. A batch may have
	 * zero samples: weight gradients and sums must then be zero. */
	void (*run)(void *state, const struct kernel_args *args);

	/* In place of run, of ops that communicate. Returns 0, or a negative code with err filled: a peer died. */
	int (*communicate)(void *state, const struct kernel_args *args, struct err *err);

	/* Optional: runs n nodes at once. No node touches what another one writes, but they may share a workspace. All
	 * have this kernel, the same stream, page and operand types; states and args are indexed by node. The results
	 * have the same bits as n separate runs. */
	void (*run_many)(void *const *states, const struct kernel_args *args, int n);

	void (*release)(void *state); /* optional: the state needs none */

	/* Optional: name of the chosen implementation, for bench and dumps. */
	const char *(*impl)(const void *state);
};

#endif
