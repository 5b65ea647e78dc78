/* SPDX-License-Identifier: Apache-2.0 */
/* backend.h: the interface of a backend module: one const struct, exported under one versioned symbol
 * ("dptrain_backend_v1"). The loader rejects another ABI number or op count and names both. A module uses only those
 * parts of the program that it is passed. ref is built in; cpu and cuda are opened with dlopen from the executable's
 * folder (or $DPTRAIN_BACKEND_PATH). */
#ifndef DPT_BACKENDS_BACKEND_H
#define DPT_BACKENDS_BACKEND_H

#include "trainer/ops/ops.h"

#define BACKEND_ABI 18
#define BACKEND_SYMBOL "dptrain_backend_v1"
#define BACKEND_EXPORT __attribute__((visibility("default")))

struct backend_opts {
	int threads;	/* threads of this rank */
	int local_rank; /* index among the local_world ranks of this machine */
	int local_world;
	const char *device; /* comma-separated list of numbers and UUIDs, one per rank; NULL, "auto": by local_rank */
	bool share;	    /* several ranks may share a device */
	bool deterministic;
	bool dry;    /* planning only: implementations are usually chosen by timing, so reserve space for any of
		      * them */
	bool direct; /* compute convolutions only as sums of plain products */
	bool split;  /* compute f32 products as three products of bf16 halves where that is faster */
	bool tf32;   /* fp32 products may round their operands to TF32 */
	/* NULL: a device of this machine. Else the backend_device.properties of an absent device: plans are made for
	 * it, nothing runs, and no driver is used. */
	const char *described;
};

struct backend_copy {
	void *to;
	const void *from;
	size_t bytes;
};

struct backend_device {
	char name[64];	/* "NVIDIA H200" */
	char uuid[48];	/* as printed by the driver's tools */
	int capability; /* 90: 9.0 */
	int multiprocessors;
	int64_t memory_bytes, l2_bytes, shared_bytes; /* shared: per block */
	char properties[1200]; /* JSON: device properties that plans depend on, in the format of the planning library */
};

struct backend {
	int abi;
	int op_count;
	const char *name;

	/* Optional members may be NULL. */
	void (*version)(char *text, size_t n); /* "oneDNN 2.6.3, avx512_core_bf16" */
	/* Returns 0 if the backend can run here; else writes the reason and a remedy in one line. */
	int (*probe)(char *reason, size_t n);
	/* Optional: the same for this number of communicating ranks on this machine. */
	int (*probe_ranks)(int ranks, char *reason, size_t n);
	int (*count)(void); /* optional: number of devices of this machine */
	int (*describe)(int device, struct backend_device *ret, struct err *err); /* if count is set: describes one of
										   * them */
	int (*device)(void *module);		  /* if count is set: number of the module's device */
	bool (*takes)(const struct precision *p); /* true if it supports these types on this machine */

	int (*open)(const struct backend_opts *o, void **ret_module, struct err *err);
	void (*close)(void *module);
	/* Optional: one line on optional parts that are missing here and their cost; NULL: none. */
	const char *(*lacks)(void *module);
	/* Optional: one line on why these types are not faster on this machine; NULL: they are. */
	const char *(*slow)(void *module, const struct precision *p);

	/* Allocates zeroed memory, aligned to 64 bytes. */
	int (*alloc)(void *module, enum space space, size_t bytes, void **ret, struct err *err);
	void (*release)(void *module, enum space space, void *memory, size_t bytes);
	/* Bytes still available to SPACE_PRIVATE and SPACE_COMM. NULL: they are in host memory. */
	int (*room)(void *module, int64_t *ret, struct err *err);
	/* Copies between host and device; complete on return. */
	int (*copy)(void *module, void *to, const void *from, size_t bytes, struct err *err);

	/* NULL on host backends, whose kernels are complete when run returns. */
	const struct backend_streams *streams;
	const struct backend_comms *comms; /* NULL if streams is NULL: host backends use struct comm */

	const struct kernel *kernel[OP_COUNT]; /* never NULL; see kernel_supported */

	/* Optional, together: choices reports what the module's kernels chose by timing, so that a resumed run can
	 * restore it; choose restores one choice before any prepare. Keys identify machine, library and shapes. */
	void (*choices)(void *module, void (*fn)(void *user, const char *key, const char *name), void *user);
	void (*choose)(void *module, const char *key, const char *name);

	/* Optional, together: between begin and end, prepare records the implementation searches it needs and may fail
	 * for that reason. end performs them in this number of threads for the next prepare. Results do not depend on
	 * the threads. */
	void (*ahead_begin)(void *module);
	void (*ahead_end)(void *module, int threads);

	/* Optional. Returns 0, or the error of the first library call or launch by a kernel that failed since the last
	 * call; node: the name of the one that has run. In the thread that runs kernels. */
	int (*take_failure)(void *module, const char *node, struct err *err);

	/* Optional: all kernels of all programs are prepared; releases memory of the searches. */
	void (*settled)(void *module);

	/* Optional: replaces the op's kernel at every node with an f16 operand, or an f32 one where emulates_f32 is
	 * set; takes operands unpacked. Collectives and copies, which move bytes, keep their
	 * kernels, and so do casts of a backend that emulates f32. */
	const struct kernel *emulate_f16;
	bool emulates_f32;
};

static inline const struct kernel *backend_kernel(const struct backend *b, const struct node *n)
{
	const bool narrow = node_has_dtype(n, DTYPE_F16) || (b->emulates_f32 && node_has_dtype(n, DTYPE_F32));

	if (!b->emulate_f16 || !narrow || n->op->collective || n->op->id == OP_copy ||
	    (b->emulates_f32 && n->op->id == OP_cast))
		return b->kernel[n->op->id];
	return b->emulate_f16;
}

static inline bool kernel_supported(const struct kernel *k)
{
	return k && (k->run || k->communicate);
}

/* Runs a node of either kind. */
static inline int kernel_run(const struct kernel *k, void *state, const struct kernel_args *args, struct err *err)
{
	if (k->communicate)
		return k->communicate(state, args, err);
	k->run(state, args);
	return 0;
}

static inline int backend_take_failure(const struct backend *b, void *module, const char *node, struct err *err)
{
	return b->take_failure ? b->take_failure(module, node, err) : 0;
}

struct event_handle; /* a point in a stream */
struct graph_handle; /* recorded work, enqueued as a whole */

/* For devices: kernels, copies and the operations below are enqueued and run in the order of their stream. Only
 * event_sync waits. Only the _new functions and capture_end allocate. */
struct backend_streams {
	int (*stream_new)(void *module, struct stream_handle **ret, struct err *err);
	void (*stream_free)(void *module, struct stream_handle *s);
	int (*event_new)(void *module, bool timed, struct event_handle **ret, struct err *err);
	void (*event_free)(void *module, struct event_handle *e);

	int (*record)(void *module, struct stream_handle *s, struct event_handle *e, struct err *err);
	int (*wait)(void *module, struct stream_handle *s, struct event_handle *e, struct err *err);
	/* Copies between the device and SPACE_PINNED, or on the device. */
	int (*copy_async)(void *module, struct stream_handle *s, const struct backend_copy *c, struct err *err);

	int (*event_sync)(void *module, struct event_handle *e, struct err *err);
	/* Sets *ret to true if the event has completed; does not wait. */
	int (*event_done)(void *module, struct event_handle *e, bool *ret, struct err *err);
	/* Seconds from one timed event to a later one; both have completed. */
	int (*seconds)(void *module, struct event_handle *from, struct event_handle *to, double *ret, struct err *err);

	/* Records work enqueued on s, and on streams that wait for it, instead of running it, until capture_end. At the
	 * end s must wait for all those streams. Timed events in the recording can be read after each launch. */
	int (*capture_begin)(void *module, struct stream_handle *s, struct err *err);
	int (*capture_end)(void *module, struct stream_handle *s, struct graph_handle **ret, struct err *err);
	int (*graph_launch)(void *module, struct stream_handle *s, struct graph_handle *g, struct err *err);
	void (*graph_free)(void *module, struct graph_handle *g);

	/* For profilers: names work that this thread enqueues until the matching range_end; ranges nest. Almost free
	 * without a profiler. */
	void (*range_begin)(const char *name);
	void (*range_end)(void);
};

#define BACKEND_COMM_ID_BYTES 128

struct device_comm_opts {
	const char *name; /* for log messages */
	int rank, world;
	const unsigned char *id; /* the same on all ranks of the group, BACKEND_COMM_ID_BYTES */
	const int *machine;	 /* per rank of the group: the first rank on the same machine */
};

struct backend_sent {	    /* bytes sent */
	int64_t all, nodes; /* nodes: part of all that went to other machines */
};

/* Communicators between the devices of a group of ranks, for collective nodes (kernel_env.devices). One per stream and
 * group; operations enqueued on one run in the same order on every rank. */
struct backend_comms {
	/* Creates an id that rank 0 passes to the others. ERR_NOENT, ERR_UNSUPPORTED: the communication library is not
	 * available. */
	int (*id)(void *module, unsigned char ret[BACKEND_COMM_ID_BYTES], struct err *err);
	/* Collective; returns without waiting for other ranks. poll reports when the communicator is usable. */
	int (*open)(void *module, const struct device_comm_opts *o, struct device_comm **ret, struct err *err);
	/* Returns 1: open and no failure; 0: not yet open; ERR_PEER: failed. */
	int (*poll)(struct device_comm *c, struct err *err);
	/* orderly: all work is complete and all ranks close. Else operations that still wait for other ranks end
	 * too. */
	void (*close)(struct device_comm *c, bool orderly);
	/* Bytes sent so far by the module's device to other devices, over all communicators. For collectives it counts
	 * the minimum that any algorithm must send, within a machine or between machines; graphs count at every
	 * launch. */
	struct backend_sent (*sent)(const void *module);
};

extern const struct backend backend_ref; /* trainer/backends/ref_backend.c */

/* Loads a backend (backend_loader.c): "ref", "cpu" or "cuda". "auto" tries cuda, cpu, ref in this order; ret->why
 * explains what was skipped. */
struct backend_choice {
	const struct backend *backend;
	char why[512];
};

int backend_load(struct backend_choice *ret, const char *name, struct err *err);

/* Finds a backend by name even if it cannot run here, for planning. */
int backend_find(const struct backend **ret, const char *name, struct err *err);

/* Number of devices a backend can use here; 0 if it cannot run. Uses a child process, since a process that has
 * initialised the driver cannot fork ranks that use it. */
int backend_devices(const char *name, int *ret, struct err *err);

#endif
