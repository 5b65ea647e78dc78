/* backend.h: what a backend module exports: one const struct, under one versioned symbol ("dptrain_backend_v1"). The
 * loader refuses another ABI number or op count, naming both. A module uses nothing of the program but what it is
 * handed. ref is built in; cpu and cuda are dlopened from beside the executable (or $DPTRAIN_BACKEND_PATH). */
#ifndef DPT_BACKENDS_BACKEND_H
#define DPT_BACKENDS_BACKEND_H

#include "trainer/graph/kernel.h"
#include "trainer/ops/ops.h"

#define BACKEND_ABI 15
#define BACKEND_SYMBOL "dptrain_backend_v1"
#define BACKEND_EXPORT __attribute__((visibility("default")))

struct backend_opts {
	int threads;       /* of this rank */
	int local_rank;    /* of local_world ranks of this machine */
	int local_world;
	const char *device; /* a comma list of numbers and UUIDs, one a rank; NULL, "auto": by local_rank */
	bool share;	   /* several ranks may have one device */
	bool deterministic;
	bool dry;	   /* nothing will run, and a run would choose by the clock: room for whatever it may choose */
	bool direct;	   /* convolutions as sums of plain products alone */
	bool split;	   /* products of f32 matrices as three of bf16 halves, where that is faster */
	bool tf32;	   /* products in fp32 may round their factors to TF32 */
	/* NULL: one that is here. Else a device that is not, in the words of backend_device.properties: plans are made
	 * for it, and nothing runs; nothing is asked of a driver. */
	const char *described;
};

struct backend_copy {
	void *to;
	const void *from;
	size_t bytes;
};

struct backend_device {
	char name[64]; /* "NVIDIA H200" */
	char uuid[48]; /* as its driver's tools print it */
	int capability; /* 90: 9.0 */
	int multiprocessors;
	int64_t memory_bytes, l2_bytes, shared_bytes; /* shared: that a block may have */
	char properties[1200]; /* JSON: what plans depend on, in the words of the library that makes them */
};

struct backend {
	int abi;
	int op_count;
	const char *name;

	/* Optional members may be NULL. */
	void (*version)(char *text, size_t n); /* "oneDNN 2.6.3, avx512_core_bf16" */
	/* 0 when it can run here; else the reason in one line, and what to do. */
	int (*probe)(char *reason, size_t n);
	/* Optional: the same of so many ranks of this machine that meet. */
	int (*probe_ranks)(int ranks, char *reason, size_t n);
	int (*count)(void); /* optional: devices of this machine */
	int (*describe)(int device, struct backend_device *ret, struct err *err); /* where count is: one of them */
	int (*device)(void *module); /* where count is: that which the module works on */
	bool (*takes)(const struct precision *p); /* whether it can compute in these types on this machine */

	int (*open)(const struct backend_opts *o, void **ret_module, struct err *err);
	void (*close)(void *module);
	/* Optional: what it goes without on this machine and what that costs, in one line; NULL: nothing. */
	const char *(*lacks)(void *module);
	/* Optional: why computing in these types brings no speed on this machine, in one line; NULL: it does. */
	const char *(*slow)(void *module, const struct precision *p);

	/* zeroed, 64-byte aligned */
	int (*alloc)(void *module, enum space space, size_t bytes, void **ret, struct err *err);
	void (*release)(void *module, enum space space, void *memory, size_t bytes);
	/* Bytes that SPACE_PRIVATE and SPACE_COMM can still take. NULL: they lie in the host's memory. */
	int (*room)(void *module, int64_t *ret, struct err *err);
	/* host <-> device, complete on return */
	int (*copy)(void *module, void *to, const void *from, size_t bytes, struct err *err);

	/* NULL on host backends, whose kernels are complete when run returns. */
	const struct backend_streams *streams;
	const struct backend_comms *comms; /* NULL where streams is: hosts meet by struct comm */

	const struct kernel *kernel[OP_COUNT]; /* never NULL; .run NULL: not offered */

	/* Optional, together: what this module's kernels chose by the clock, for a run that goes on later; and such a
	 * choice given back, before anything is prepared. Keys tell machine, library and shapes. */
	void (*choices)(void *module, void (*fn)(void *user, const char *key, const char *name), void *user);
	int (*choose)(void *module, const char *key, const char *name, struct err *err);

	/* Optional, together: between the two, prepare notes what it would have to find out, and may fail for that; end
	 * finds it out, in so many threads, for the prepare that follows. What is found does not depend on them. */
	void (*ahead_begin)(void *module);
	void (*ahead_end)(void *module, int threads);

	/* Optional: the kernels of all programs are prepared; what finding them took is given back. */
	void (*settled)(void *module);

	/* Optional: stands in for the op's kernel at every node that has an f16 operand, which it takes unpacked. */
	const struct kernel *emulate_f16;
};

static inline const struct kernel *backend_kernel(const struct backend *b, const struct node *n)
{
	return b->emulate_f16 && node_has_dtype(n, DTYPE_F16) ? b->emulate_f16 : b->kernel[n->op->id];
}

struct event_handle; /* a place in a stream */
struct graph_handle; /* work that was recorded, to be enqueued as a whole */

/* Of devices: kernels, copies and what follows here are enqueued, and done in the order of their stream. Only
 * event_sync waits. Nothing here allocates but the _new functions and capture_end. */
struct backend_streams {
	int (*stream_new)(void *module, struct stream_handle **ret, struct err *err);
	void (*stream_free)(void *module, struct stream_handle *s);
	int (*event_new)(void *module, bool timed, struct event_handle **ret, struct err *err);
	void (*event_free)(void *module, struct event_handle *e);

	int (*record)(void *module, struct stream_handle *s, struct event_handle *e, struct err *err);
	int (*wait)(void *module, struct stream_handle *s, struct event_handle *e, struct err *err);
	/* Between the device and SPACE_PINNED, or on the device. */
	int (*copy_async)(void *module, struct stream_handle *s, const struct backend_copy *c, struct err *err);

	int (*event_sync)(void *module, struct event_handle *e, struct err *err);
	/* Whether it is done; does not wait. */
	int (*event_done)(void *module, struct event_handle *e, bool *ret, struct err *err);
	/* From one timed event to a later one; both are done. */
	int (*seconds)(void *module, struct event_handle *from, struct event_handle *to, double *ret, struct err *err);

	/* What is enqueued on s, and on streams that wait for it, until capture_end is recorded instead of done; at the
	 * end s waits for all of them. Timed events that it records can be read after each launch. */
	int (*capture_begin)(void *module, struct stream_handle *s, struct err *err);
	int (*capture_end)(void *module, struct stream_handle *s, struct graph_handle **ret, struct err *err);
	int (*graph_launch)(void *module, struct stream_handle *s, struct graph_handle *g, struct err *err);
	void (*graph_free)(void *module, struct graph_handle *g);

	/* For profilers: names what this thread enqueues from here on until the next range_end; they nest. Cost next to
	 * nothing where no profiler listens. */
	void (*range_begin)(const char *name);
	void (*range_end)(void);
};

#define BACKEND_COMM_ID_BYTES 128

struct device_comm_opts {
	const char *name; /* of logs */
	int rank, world;
	const unsigned char *id; /* the same on all ranks of the group, BACKEND_COMM_ID_BYTES */
	const int *machine;	 /* by rank of the group: the first rank on the same machine */
};

struct backend_sent { /* bytes */
	int64_t all, nodes; /* nodes: of them to other machines */
};

/* The devices of a group of ranks, for nodes that meet others (kernel_env.devices). One for each stream and group: what
 * is enqueued on one is done in the same order on every rank. */
struct backend_comms {
	/* For rank 0 of a group to give to the others. ERR_NOENT, ERR_UNSUPPORTED: what carries it cannot be had. */
	int (*id)(void *module, unsigned char ret[BACKEND_COMM_ID_BYTES], struct err *err);
	/* Collective; does not wait for the others: poll says when it can be used. */
	int (*open)(void *module, const struct device_comm_opts *o, struct device_comm **ret, struct err *err);
	/* 1: open, and nothing has failed; 0: not yet; ERR_PEER: it has failed. */
	int (*poll)(struct device_comm *c, struct err *err);
	/* orderly: everything is done, and all ranks close theirs. Else what waits for others on it ends too. */
	void (*close)(struct device_comm *c, bool orderly);
	/* So far, what the module's device was told to send to others', by all communicators: of collectives what no
	 * order of hops can avoid, within a machine or between them; of graphs as often as they were launched. */
	struct backend_sent (*sent)(const void *module);
};

extern const struct backend backend_ref; /* trainer/backends/ref_backend.c */

/* backend_loader.c: "ref", "cpu", "cuda"; for "auto" cuda, then cpu, then ref, and *ret_why says what was skipped. */
struct backend_choice {
	const struct backend *backend;
	char why[512];
};

int backend_load(struct backend_choice *ret, const char *name, struct err *err);

/* The one of that name, whether or not it can run here: for plans. */
int backend_find(const struct backend **ret, const char *name, struct err *err);

/* How many devices a backend can use here; 0 where it cannot run. Asks in a process of its own: one that has asked a
 * driver cannot start ranks that use it. */
int backend_devices(const char *name, int *ret, struct err *err);

#endif
