/* graph.h: a static description of a program: tensors with shapes and types, nodes in program order. It holds no
 * tensor memory, so a model of any size can be described, transformed by passes and planned on a laptop.
 *
 * Building never checks errors call by call: the first failure is kept in the graph, later calls return NULL and do
 * nothing, and graph_failed tells at the end. Everything is allocated from the graph's arena and dies with it. */
#ifndef DPT_GRAPH_GRAPH_H
#define DPT_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

int64_t shape_count(const struct shape *s); /* product of the dimensions; 1 for ndim 0 */
bool shape_equal(const struct shape *a, const struct shape *b);

enum tensor_kind {
	TENSOR_INPUT,  /* written by the loader before the step: images, labels */
	TENSOR_PARAM,  /* trained; persistent */
	TENSOR_STAT,   /* persistent but not trained by gradient: running mean and variance */
	TENSOR_MOMENT, /* optimiser state; persistent */
	TENSOR_GRAD,   /* gradient of a parameter */
	TENSOR_GATHERED, /* flat: parameters of which each rank holds a range, of all ranks, to be read */
	TENSOR_BUCKET,   /* flat: gradients of which each rank gets a range, until they are summed */
	TENSOR_ACT,    /* everything computed on the way */
	TENSOR_RESULT, /* small, read by the host after the step: loss sum, counts, norms; always f64 */
};

enum lifetime {
	LIFE_PERSISTENT, /* from set-up to the end of the run; the same memory in every program, matched by name */
	LIFE_ACROSS,     /* one optimiser step that several programs make together: the same memory in each, by name */
	LIFE_STEP,       /* one optimiser step, within one program */
	LIFE_MICRO,      /* one micro-batch slot */
};

enum space {
	SPACE_PRIVATE, /* the rank's own */
	SPACE_COMM,    /* allocated by the communicator: can be reduced and sent without copying */
	SPACE_PINNED,  /* host memory the device reads and writes directly */
	SPACE_OFFLOAD, /* what is kept out of the others' way between its uses: the same, or a file; copied, never read
			* by kernels */
	SPACE_COUNT
};

/* How a persistent tensor gets its first values; drawn from a counter-based generator keyed by (seed, name, element),
 * so that they do not depend on the order of creation, the strategy or the world size. */
enum init_kind { INIT_ZERO, INIT_ONE, INIT_NORMAL /* mean 0, std = scale */, INIT_UNIFORM /* in [-scale, scale) */ };

struct init {
	enum init_kind kind;
	double scale;
};

bool lifetime_spans(enum lifetime l); /* longer than one program: its memory is the same in all that have it */

/* A tensor of which ranks hold ranges lies flat, behind others, in a unit; each rank that shares it holds the same
 * number of the unit's elements, in order. */
struct shard {
	int unit;     /* from 1 */
	int64_t at;   /* of the unit's elements, this tensor's first one */
	int64_t each; /* of the unit's elements, how many a rank holds; 0: the tensor is whole on every rank */
	enum dtype dtype; /* in which nodes read the unit */
};

struct node;

struct tensor {
	int id;           /* index in graph->tensors */
	const char *name; /* unique in the graph; parameters and statistics bear torchvision's / Hugging Face's names */
	enum tensor_kind kind;
	enum dtype dtype;
	struct shape shape; /* in storage order: activations NHWC, convolution weights KRSC, linear weights [out, in] */
	enum lifetime life;
	enum space space;
	struct init init;      /* persistent tensors */
	struct shard shard;    /* persistent tensors, gradients: shape is then of the range that this rank holds
				* (in a model, which is of no rank, of the whole tensor) */
	uint64_t stages;       /* persistent tensors of a pipeline's model: who holds them, a bit each; 0: all do */
	bool elsewhere;        /* gradients: another stage holds the same one, and counts it in what is summed */
	bool decay;            /* parameters: weight decay applies (not for norm gains, biases) */
	bool of_norm;          /* parameters: gain or bias of a normalisation */
	bool frozen;           /* parameters and statistics: never changed; set by graph_tensor */
	bool keep;             /* readable by the host after the program: lives to its end */
	bool wants_grad;       /* set by pass_grad: a trained parameter lies behind it (or it is one) */
	size_t opaque_bytes;   /* > 0: in a backend's own layout of that many bytes; shape is then the logical one */
	struct node *producer; /* NULL for inputs and persistent tensors */
	struct tensor *grad;   /* after pass_grad: its gradient; of a parameter it is of kind TENSOR_GRAD */
	struct tensor *base;   /* a view: this tensor is base's bytes from base_offset on (base->base is NULL) */
	size_t base_offset;
	size_t offset; /* after planning: byte offset in the slab of its space (of a view too: base's + base_offset) */
	size_t *slot_offset; /* the same for each micro-batch slot, when the schedule has several; else NULL */
};

size_t tensor_bytes(const struct tensor *t); /* of the storage, unpadded */

enum phase { PHASE_FORWARD, PHASE_BACKWARD, PHASE_COMM, PHASE_OPTIMIZER, PHASE_COUNT };

/* When a node runs in a step that makes several micro-batches in one schedule: once for each, or once. */
enum part { PART_STEP, PART_FORWARD, PART_BACKWARD };

/* Nodes of one stream run in program order, those of different streams beside each other. */
enum stream {
	STREAM_COMPUTE, /* kernels, and what they wait for on the spot */
	STREAM_COMM,	/* reductions, beside the backward pass */
	STREAM_GATHER,	/* parts of other ranks, ahead of their use */
	STREAM_COPY_IN, /* from and to another space */
	STREAM_COPY_OUT,
	STREAM_SEND_FORWARD, /* to and from one neighbour each: none of them holds up another */
	STREAM_RECV_FORWARD,
	STREAM_SEND_BACKWARD,
	STREAM_RECV_BACKWARD,
	STREAM_COUNT
};

/* Whom a rank meets in a collective node. */
enum group {
	GROUP_WORLD,
	GROUP_SHARD,	/* those who hold the parts of one whole */
	GROUP_REPLICA,	/* those who hold the same part */
	GROUP_PIPELINE, /* the stages of one pipeline, in their order */
	GROUP_ENDS,	/* its first and its last */
	GROUP_COUNT
};

const char *phase_name(enum phase p);
const char *stream_name(enum stream s);
/* The stream whose communicator it meets others with: what one rank sends on one stream another receives on another. */
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
	enum part part;	  /* set by a strategy whose schedule has turns */
	bool once;	  /* of a step's micro-batches in the first alone (page.micro 0): later ones find it done */
	int n_in, n_out;
	struct tensor **in, **out; /* NULL entries where the op's header says "optional" */
	struct node **after;       /* [n_after]: must be complete before this one begins; see node_after */
	int n_after;
	void *attr;                /* struct <op>_attr of the op's folder, in the arena; NULL when it has none */
	int block;                 /* part of the model, from 1, between whose activations are kept; 0: none */
	int bucket;                /* gradient bucket that the node belongs to, -1 none; labels for dumps */
	size_t workspace_bytes;    /* asked by the kernel when it was prepared */
	size_t workspace_offset;   /* after planning: byte offset in the private slab */
	size_t *slot_workspace;	   /* the same for each micro-batch slot, as of tensors */
};

bool node_has_dtype(const struct node *n, enum dtype t); /* of some operand */

struct graph {
	struct arena *arena;
	struct tensor **tensors;
	int n_tensors, cap_tensors;
	struct node **nodes;
	int n_nodes, cap_nodes;
	bool training;        /* false: evaluation, no gradients */
	bool low_params;      /* nothing changes parameters: pass_precision keeps them in the type they are read in */
	bool exact;	      /* sums of squares have the same bits whichever ranks hold what: trainer/ops/norm */
	const char *freeze;   /* patterns of what does not change, see graph_frozen; NULL none; borrowed */
	enum phase phase;     /* phase of nodes that are added now */
	int block;            /* block of nodes that are added now; set by the model, 0 outside of blocks */
	const struct op *sum; /* adds two gradients that meet; set by pass_grad */
	struct tensor *loss;  /* scalar-like result whose gradient starts the backward pass; set by the model */
	struct err err;       /* first failure while building */
	struct graph_names *names; /* index of tensor names; private to graph.c */
};

struct graph *graph_new(bool training); /* NULL when out of memory */
void graph_free(struct graph *g);       /* NULL is fine */
bool graph_failed(const struct graph *g);
void graph_fail(struct graph *g, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

struct tensor *graph_tensor(struct graph *g, const struct tensor *like); /* copies *like (name too), gives an id */

/* Whether patterns (a comma list of globs; a later one wins, one with '!' in front takes back) name a parameter or
 * statistic. */
bool graph_frozen(const char *patterns, const char *name);
struct tensor *graph_act(struct graph *g, enum dtype dtype, struct shape shape, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
struct tensor *graph_find(const struct graph *g, const char *name); /* NULL when absent */

int graph_rename(struct graph *g, struct tensor *t, const char *name); /* fails the graph when the name is taken */

/* Text in the graph's arena; NULL once the graph failed. */
const char *graph_printf(struct graph *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* name without its last component ("layer1.0.conv1.weight" → "layer1.0.conv1"); in the arena. */
const char *graph_stem(struct graph *g, const char *name);

struct node_spec {
	const struct op *op;
	const char *name;          /* NULL: made from the op and the first output */
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

/* Appends a node, runs op->shape (which makes outputs that are NULL) and sets producers; NULL once the graph failed. */
struct node *graph_node(struct graph *g, const struct node_spec *spec);

/* Appends a node that computes the same from operands `in`: the same op and attributes, fresh outputs whose names have
 * ".<suffix>" appended. NULL once the graph failed. */
struct node *graph_clone(struct graph *g, const struct node *n, struct tensor *const *in, const char *suffix);

/* n begins when `before` is complete, though it needs nothing of it: what reads parameters alone could start, and hold
 * its memory, from the first moment on. before: a node in front of n when the schedule is made; NULL is fine. When it
 * is removed, the one in front of it on its stream takes its place. */
void node_after(struct graph *g, struct node *n, struct node *before);

/* For shape rules. graph_out makes output `index` when it is NULL, named after the node with suffix appended, and
 * otherwise checks that its shape is `shape`. graph_expect fails the graph unless `ok`, naming the node. Both return 0
 * or the graph's error code. */
int graph_out(struct graph *g, struct node *n, int index, enum dtype dtype, struct shape shape, const char *suffix);
int graph_expect(struct graph *g, const struct node *n, bool ok, const char *what);

/* Editing, for passes: insert before/after a position, remove, redirect every use of one tensor from position on. */
void graph_move(struct graph *g, int from, int to);
void graph_remove(struct graph *g, int position);
void graph_replace_uses(struct graph *g, struct tensor *old, struct tensor *new_, int from_position);
int graph_count_uses(const struct graph *g, const struct tensor *t); /* as an input of nodes */
/* The first node of that op that reads t, or NULL. */
struct node *graph_user(const struct graph *g, const struct tensor *t, int op_id);

/* Backward pass bookkeeping, used by op->grad: the gradient of an activation is the sum of what its consumers add. */
struct tensor *graph_grad_get(struct graph *g, const struct tensor *t); /* NULL: nothing flows into t */
void graph_grad_add(struct graph *g, struct tensor *t, struct tensor *grad);
struct tensor *graph_param_grad(struct graph *g, const struct tensor *param); /* a new TENSOR_GRAD "<param>.grad" */

/* Text of every tensor and node, stable over runs: what `--dump=graph` prints and the golden tests compare. */
void graph_dump(const struct graph *g, struct buf *out);

#endif
