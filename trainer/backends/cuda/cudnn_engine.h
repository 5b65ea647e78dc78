/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_engine.h: engines of cuDNN: a graph's compiled plans and the choice among them. Between cudnn_graph.c,
 * cudnn_engine.c and cudnn_plan.c. */
#ifndef DPT_BACKENDS_CUDA_CUDNN_ENGINE_H
#define DPT_BACKENDS_CUDA_CUDNN_ENGINE_H

#include "trainer/backends/cuda/cudnn_plan.h"
#include "trainer/backends/cuda/kernel_trial.h"

#ifdef HAVE_CUDNN

#define WISHES_MAX 2
#define KEY_MAX (DNN_KEY_MAX + 2 * WISHES_MAX)

#define ATTR(name, type, count, value) { CUDNN_ATTR_##name, CUDNN_TYPE_##type, count, value }

/* cudnn_graph.c */

/* Fills err with what failed and the library's message; returns code. */
int dnn_fail(const struct cuda_module *m, int code, cudnnStatus_t status, const char *what, struct err *err);

/* Creates and finalises a descriptor that the caller owns. */
cudnnStatus_t dnn_make_owned(const struct cuda_calls *c, cudnnBackendDescriptor_t *ret,
			     cudnnBackendDescriptorType_t type, const struct dnn_attr *attrs, int n);

/* The addresses of a run; the caller owns it. */
cudnnStatus_t dnn_make_pack(const struct cuda_calls *c, cudnnBackendDescriptor_t *ret, const struct dnn_operands *o);

void dnn_graph_free(struct dnn_graph *g); /* its descriptors */

/* cudnn_engine.c */

/* An engine configuration and its compiled plan. */
struct dnn_candidate {
	cudnnBackendDescriptor_t config, plan;
	size_t workspace;
	bool tensor_cores;
};

/* A graph with its plan, shared by all nodes with the same graph. */
struct dnn_engine {
	struct dnn_engine *next;
	int users; /* number of plans, plus one if it was made ahead */
	struct dnn_graph graph;
	struct dnn_wish wishes[WISHES_MAX];
	int n_wishes;
	struct dnn_candidate candidates[TRIALS_MAX]; /* the first is in use; the others are candidates for timing */
	int n_candidates;			     /* 0: none; why has the reason */
	struct err why;
	bool recalled, ahead;
	int64_t key[KEY_MAX]; /* key of the graph, then of the wishes */
};

/* The live engine of the same graph and wishes, or NULL. */
struct dnn_engine *dnn_engine_find_same(const struct dnn_graph *g, const struct dnn_wish *wishes, int n);

/* Takes ownership of the graph. */
struct dnn_engine *dnn_engine_new(struct dnn_graph *g, const struct dnn_wish *wishes, int n);

/* Uses the cached plan, else searches the library's recommendations; e->why if none fits. By one thread per handle. */
void dnn_engine_search(struct dnn_engine *e);

/* Keeps the fastest candidate and caches it for later runs. */
void dnn_engine_settle(struct dnn_engine *e);

void dnn_engine_list(struct dnn_engine *e); /* makes it live */
void dnn_engine_drop(struct dnn_engine *e); /* drops one use of a live engine; the last one frees it */
void dnn_engine_free(struct dnn_engine *e); /* one that is not live */

void dnn_candidate_free(const struct cuda_calls *c, struct dnn_candidate *w);

/* The serialised form of a plan, after one byte that is left for the caller; NULL if the library cannot. And a plan
 * restored from it, for e's handle. */
char *dnn_plan_write(const struct dnn_engine *e, const struct dnn_candidate *w, size_t *ret_n);
bool dnn_plan_read(const struct dnn_engine *e, struct dnn_candidate *ret, const char *text, size_t n);

#endif

#endif
