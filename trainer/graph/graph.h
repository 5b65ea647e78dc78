/* SPDX-License-Identifier: Apache-2.0 */
/* graph.h: a static description of a program: tensors with shapes and types, nodes in program order. A graph holds no
 * tensor memory, so a model of any size can be described, transformed by passes and planned on a laptop.
 *
 * Builder calls need no error check each. The graph stores the first failure; later calls return NULL and do nothing,
 * and graph_failed reports it at the end. All memory comes from the graph's arena and is freed with it. */
#ifndef DPT_GRAPH_GRAPH_H
#define DPT_GRAPH_GRAPH_H

#include "tracker/base/arena.h"
#include "tracker/base/buf.h"
#include "tracker/base/err.h"

#define SHAPE_DIMS_MAX 5

enum dtype { DTYPE_F64, DTYPE_F32, DTYPE_BF16, DTYPE_F16, DTYPE_I64, DTYPE_I32, DTYPE_U8 };

size_t dtype_bytes(enum dtype t);
const char *dtype_name(enum dtype t);
bool dtype_is_float(enum dtype t);

struct shape {
	int ndim;
	int64_t dim[SHAPE_DIMS_MAX];
};

#define SHAPE(...) ((struct shape){ sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), { __VA_ARGS__ } })

struct tensor_type {
	enum dtype dtype;
	struct shape shape;
};

#define TENSOR_TYPE(dtype, shape) ((struct tensor_type){ (dtype), (shape) })

int64_t shape_count(const struct shape *s); /* product of the dimensions; 1 for ndim 0 */
bool shape_equal(const struct shape *a, const struct shape *b);

enum tensor_kind {
	TENSOR_INPUT,	 /* written by the loader before the step: images, labels */
	TENSOR_PARAM,	 /* trained; persistent */
	TENSOR_STAT,	 /* persistent but not trained by gradient: running mean and variance */
	TENSOR_MOMENT,	 /* optimiser state; persistent */
	TENSOR_GRAD,	 /* gradient of a parameter */
	TENSOR_GATHERED, /* flat: parameters of all ranks, gathered for reading; each rank owns a range */
	TENSOR_BUCKET,	 /* flat: gradients of all parameters until they are summed; each rank then keeps a range */
	TENSOR_ACT,	 /* every intermediate value */
	TENSOR_RESULT,	 /* small, read by the host after the step: loss sum, counts, norms; always f64 */
};
#define TENSOR_KINDS (TENSOR_RESULT + 1)

enum lifetime {
	LIFE_PERSISTENT, /* from set-up to the end of the run; programs share the memory of a tensor by name */
	LIFE_ACROSS,	 /* one optimiser step that spans several programs; they share the memory by name */
	LIFE_STEP,	 /* one optimiser step, within one program */
	LIFE_MICRO,	 /* one micro-batch slot */
};

enum space {
	SPACE_PRIVATE, /* the rank's own */
	SPACE_COMM,    /* allocated by the communicator: can be reduced and sent without copying */
	SPACE_PINNED,  /* host memory the device reads and writes directly */
	SPACE_OFFLOAD, /* swapped out between uses: host memory or a file; copied, never read by kernels */
	SPACE_COUNT
};

/* Initial values of a persistent tensor. They come from a counter-based generator keyed by (seed, name, element), so
 * they do not depend on the order of creation, the strategy or the world size. */
enum init_kind { INIT_ZERO, INIT_ONE, INIT_NORMAL /* mean 0, std = scale */, INIT_UNIFORM /* in [-scale, scale) */ };

struct init {
	enum init_kind kind;
	double scale;
};

bool lifetime_spans(enum lifetime l); /* true if it outlives one program: its memory is the same in all that use it */

/* A sharded tensor: several tensors are concatenated into a flat unit, of which each sharing rank holds an equal,
 * contiguous range of elements. */
struct shard {
	int unit;	  /* from 1 */
	int64_t at;	  /* index in the unit of this tensor's first element */
	int64_t each;	  /* elements of the unit per rank; 0: every rank holds the whole tensor */
	enum dtype dtype; /* type in which nodes read the unit */
};

struct node;

struct tensor {
	int id;		  /* index in graph->tensors */
	const char *name; /* unique in the graph; parameters and statistics have torchvision's or Hugging Face's
			   * names */
	enum tensor_kind kind;
	enum dtype dtype;
	struct shape shape; /* in storage order: activations NHWC, convolution weights KRSC, linear weights [out, in] */
	enum lifetime life;
	enum space space;
	struct init init;      /* persistent tensors */
	struct shard shard;    /* persistent tensors and gradients; shape is then that of this rank's range (in a model,
				* which belongs to no rank: of the whole tensor) */
	uint64_t stages;       /* persistent tensors of a pipeline: bit mask of the stages that hold it; 0: all do */
	bool elsewhere;	       /* gradients: another stage holds a copy and counts it in norms */
	bool decay;	       /* parameters: weight decay applies (not to gains of norms, not to biases) */
	bool of_norm;	       /* parameters: gain or bias of a normalisation layer */
	bool master;	       /* parameters: the model reads a 16-bit copy that is kept between steps */
	bool copy;	       /* activations: such a copy */
	bool frozen;	       /* parameters and statistics: never changed; set by graph_tensor */
	bool keep;	       /* readable by the host after the program: lives until its end */
	bool wants_grad;       /* set by pass_grad: it is, or depends on, a trained parameter */
	size_t opaque_bytes;   /* > 0: stored in a backend's own layout of this many bytes; shape is then the logical
				* one */
	struct node *producer; /* NULL for inputs and persistent tensors */
	struct tensor *grad;   /* after pass_grad: its gradient; that of a parameter has kind TENSOR_GRAD */
	struct tensor *base;   /* a view: this tensor is base's bytes from base_offset on (base->base is NULL) */
	size_t base_offset;
	size_t offset; /* after planning: byte offset in the slab of its space (for a view: base's + base_offset) */
	size_t *slot_offset; /* the same per micro-batch slot if the schedule has several; else NULL */
};

size_t tensor_bytes(const struct tensor *t); /* size of the storage, without padding */

enum phase { PHASE_FORWARD, PHASE_BACKWARD, PHASE_COMM, PHASE_OPTIMIZER, PHASE_COUNT };

/* When a node runs in a step whose schedule has several micro-batches: once per micro-batch, or once. */
enum part { PART_STEP, PART_FORWARD, PART_BACKWARD };

/* Nodes of one stream run in program order; nodes of different streams run concurrently. */
enum stream {
	STREAM_COMPUTE, /* kernels, and communication they wait for at once */
	STREAM_COMM,	/* reductions, concurrent with the backward pass */
	STREAM_GATHER,	/* shards of other ranks, fetched before their use */
	STREAM_COPY_IN, /* copies to and from another space */
	STREAM_COPY_OUT,
	STREAM_SEND_FORWARD, /* to and from one neighbour each; none blocks another */
	STREAM_RECV_FORWARD,
	STREAM_SEND_BACKWARD,
	STREAM_RECV_BACKWARD,
	STREAM_COUNT
};

/* The ranks that take part in a collective node. */
enum group {
	GROUP_WORLD,
	GROUP_SHARD,	/* ranks that hold the shards of one whole */
	GROUP_REPLICA,	/* ranks that hold the same shard */
	GROUP_PIPELINE, /* the stages of one pipeline, in order */
	GROUP_ENDS,	/* first and last stage of a pipeline */
	GROUP_COUNT
};

const char *phase_name(enum phase p);
const char *stream_name(enum stream s);
/* The stream whose communicator s uses: what one rank sends on one stream, its peer receives on another. */
enum stream stream_meets(enum stream s);
const char *group_name(enum group g);

struct op;

struct node {
	int id; /* position in graph->nodes = program order */
	const struct op *op;
	const char *name;
	enum phase phase;
	enum stream stream;
	enum group group; /* of a collective op */
	enum part part;	  /* set by a strategy with a pipeline schedule */
	bool once;	  /* runs in the first micro-batch of a step only (page.micro 0); later ones reuse its result */
	int n_in, n_out;
	struct tensor **in, **out; /* NULL where the op's header says "optional" */
	struct node **after;	   /* [n_after]: nodes that must complete before this one starts; see node_after */
	int n_after;
	bool awaited;		   /* may be in `after` of other nodes */
	void *attr;		 /* struct <op>_attr of the op's folder, in the arena; NULL for none */
	int block;		 /* block of the model, from 1; activations between blocks are kept by recomputation;
				  * 0: none */
	int bucket;		 /* gradient bucket of the node, -1 for none; a label for dumps */
	size_t workspace_bytes;	 /* requested by the kernel's prepare */
	size_t workspace_offset; /* after planning: byte offset in the private slab */
	size_t *slot_workspace;	 /* the same per micro-batch slot, as for tensors */
};

bool node_has_dtype(const struct node *n, enum dtype t); /* true if any operand has it */

struct graph {
	struct arena *arena;
	struct tensor **tensors;
	int n_tensors, cap_tensors;
	struct node **nodes;
	int n_nodes, cap_nodes;
	bool training;	      /* false: evaluation, no gradients */
	bool low_frozen;      /* pass_precision stores frozen parameters in the type they are read in */
	bool exact;	      /* sums of squares have the same bits for any distribution over ranks: trainer/ops/norm */
	const char *freeze;   /* patterns of frozen tensors, see graph_frozen; NULL: none; borrowed */
	enum phase phase;     /* phase given to new nodes */
	int block;	      /* block given to new nodes; set by the model, 0 outside of blocks */
	const struct op *sum; /* the op that adds two gradients of one tensor; set by pass_grad */
	struct tensor *loss;  /* result whose gradient starts the backward pass; set by the model */
	struct err err;	      /* first failure */
	struct graph_names *names; /* index of tensor names; private to graph.c */
};

struct graph *graph_new(bool training); /* NULL when out of memory */
void graph_free(struct graph *g);	/* NULL is fine */
bool graph_failed(const struct graph *g);
void *graph_array(struct graph *g, int n, size_t bytes_each); /* n + 1 zeros */
void graph_fail(struct graph *g, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

struct tensor *graph_tensor(struct graph *g, const struct tensor *like); /* copies *like and its name, assigns an id */

/* Returns true if patterns name this parameter or statistic. patterns: a comma-separated list of globs; a later one
 * overrides earlier ones, and a leading '!' unfreezes. */
bool graph_frozen(const char *patterns, const char *name);
struct tensor *graph_act(struct graph *g, enum dtype dtype, struct shape shape, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
struct tensor *graph_find(const struct graph *g, const char *name); /* NULL when absent */

int graph_rename(struct graph *g, struct tensor *t, const char *name); /* fails the graph if the name is taken */

/* Text in the graph's arena; NULL once the graph failed. */
const char *graph_printf(struct graph *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* name without its last component ("layer1.0.conv1.weight" → "layer1.0.conv1"); in the arena. */
const char *graph_stem(struct graph *g, const char *name);

struct node_spec {
	const struct op *op;
	const char *name;	   /* NULL: derived from the op's name */
	struct tensor *const *in;  /* copied */
	struct tensor *const *out; /* copied; NULL entries are filled by op->shape */
	int n_in, n_out;
	const void *attr; /* copied, attr_bytes of it */
	size_t attr_bytes;
};

#define NODE_COUNT(...) ((int)(sizeof((struct tensor *[]){ __VA_ARGS__ }) / sizeof(struct tensor *)))
#define NODE_IN(...) .in = (struct tensor *[]){ __VA_ARGS__ }, .n_in = NODE_COUNT(__VA_ARGS__)
#define NODE_OUT(...) .out = (struct tensor *[]){ __VA_ARGS__ }, .n_out = NODE_COUNT(__VA_ARGS__)
#define NODE_ATTR(a) .attr = &(a), .attr_bytes = sizeof(a)

/* Appends a node, runs op->shape (which creates NULL outputs) and sets producers. NULL once the graph failed. */
struct node *graph_node(struct graph *g, const struct node_spec *spec);

/* Appends a copy of n that reads `in`: same op and attributes, new outputs with ".<suffix>" appended to their names.
 * NULL once the graph failed. */
struct node *graph_clone(struct graph *g, const struct node *n, struct tensor *const *in, const char *suffix);

/* n starts after `before` completes although it needs none of its results. Without such an edge a node that reads only
 * parameters could start, and hold its memory, from the beginning. before: a node that precedes n when the schedule is
 * made; NULL is ignored. If it is removed, the previous node of its stream replaces it. */
void node_after(struct graph *g, struct node *n, struct node *before);

/* For shape rules. graph_out creates output `index` if it is NULL, named after the node plus suffix, else checks that
 * it has the type's shape. graph_expect fails the graph and names the node unless `ok`. Both return 0 or the graph's
 * error code. */
int graph_out(struct graph *g, struct node *n, int index, struct tensor_type type, const char *suffix);
int graph_expect(struct graph *g, const struct node *n, bool ok, const char *what);

/* Editing, for passes: move a node, remove one, or replace the uses of a tensor by nodes from a position on. */
void graph_move(struct graph *g, int from, int to);
void graph_remove(struct graph *g, int position);
/* Moves node from + j, for each j, to the position after node after[j] < from; -1: to the front. Of nodes with the same
 * position the last is the first afterwards. */
void graph_spread(struct graph *g, int from, const int *after);
void graph_replace_uses(struct graph *g, struct tensor *old, struct tensor *new_, int from_position);
int graph_count_uses(const struct graph *g, const struct tensor *t); /* number of node inputs that are t */
int *graph_use_counts(struct graph *g); /* the same of all tensors, by id; in the arena; NULL: the graph failed */
/* The first node with that op that reads t, or NULL. */
struct node *graph_user(const struct graph *g, const struct tensor *t, int op_id);

/* Gradients during the backward pass, used by op->grad: the gradient of an activation is the sum of its consumers'
 * contributions. */
struct tensor *graph_grad_get(struct graph *g, const struct tensor *t); /* NULL: no gradient reaches t */
void graph_grad_add(struct graph *g, struct tensor *t, struct tensor *grad);
struct tensor *graph_param_grad(struct graph *g, const struct tensor *param); /* a new TENSOR_GRAD "<param>.grad" */

/* Writes every tensor and node as text, stable between runs: the output of `--dump=graph` and of the golden tests. */
void graph_dump(const struct graph *g, struct buf *out);

#endif
