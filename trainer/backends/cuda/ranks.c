/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.c: NCCL communicators, opened without blocking, so that missing or dead ranks can be detected. */
#include "trainer/backends/cuda/ranks.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tracker/mem/mem.h"
#include "trainer/backends/cuda/cuda_module.h"

#ifdef HAVE_NCCL

_Static_assert(sizeof(ncclUniqueId) == BACKEND_COMM_ID_BYTES, "an id of NCCL must fit");

struct nccl {
	struct device_comm comm;
	struct cuda_module *module;
	const struct cuda_calls *calls;
	ncclComm_t nccl;
	int machines, near; /* machines of the group; ranks on this machine, including this one */
	bool far[];	    /* per rank: on another machine */
};

static struct nccl *get_nccl(struct device_comm *c)
{
	return (struct nccl *)c;
}

static int set_nccl_error(const struct cuda_calls *calls, ncclComm_t comm, ncclResult_t rc, struct err *err)
{
	const char *more = calls->ncclGetLastError(comm);

	return err_set(err, ERR_PEER, "NCCL: %s%s%s", calls->ncclGetErrorString(rc), more && *more ? ": " : "",
		       more ? more : "");
}

static const struct ranks_ops ranks;

static int make_nccl_id(void *module, unsigned char ret[BACKEND_COMM_ID_BYTES], struct err *err)
{
	struct cuda_module *m = module;
	ncclUniqueId made;
	ncclResult_t rc;
	int opened = cuda_calls_open(&m->calls, CUDA_NCCL, err);

	if (opened)
		return opened;
	rc = m->calls.ncclGetUniqueId(&made);
	if (rc != ncclSuccess)
		return set_nccl_error(&m->calls, NULL, rc, err);
	memcpy(ret, made.internal, BACKEND_COMM_ID_BYTES);
	return 0;
}

static struct nccl *new_nccl_comm(struct cuda_module *m, const struct device_comm_opts *o)
{
	struct nccl *c = mem_zalloc(sizeof(*c) + (size_t)o->world * sizeof(c->far[0]));

	c->comm = (struct device_comm){ &ranks, o->rank, o->world };
	c->module = m;
	c->calls = &m->calls;
	for (int r = 0; r < o->world; r++) {
		c->far[r] = o->machine[r] != o->machine[o->rank];
		c->near += !c->far[r];
		c->machines += o->machine[r] == r;
	}
	return c;
}

/* Starts a nonblocking init; poll_nccl_comm reports when the communicator is ready. */
static int open_nccl_comm(void *module, const struct device_comm_opts *o, struct device_comm **ret, struct err *err)
{
	struct cuda_module *m = module;
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	struct nccl *c = NULL;
	ncclUniqueId same;
	ncclResult_t rc;
	int opened = cuda_calls_open(&m->calls, CUDA_NCCL, err);

	if (opened)
		return opened;
	c = new_nccl_comm(m, o);
	config.blocking = 0;
	config.commName = o->name;
	memcpy(same.internal, o->id, BACKEND_COMM_ID_BYTES);
	rc = m->calls.ncclCommInitRankConfig(&c->nccl, o->world, same, o->rank, &config);
	if (rc != ncclSuccess && rc != ncclInProgress) {
		free(c);
		return set_nccl_error(&m->calls, NULL, rc, err);
	}
	*ret = &c->comm;
	return 0;
}

static int poll_nccl_comm(struct device_comm *comm, struct err *err)
{
	const struct nccl *c = get_nccl(comm);
	ncclResult_t state = ncclSuccess, rc = c->calls->ncclCommGetAsyncError(c->nccl, &state);

	if (rc == ncclSuccess)
		rc = state;
	return rc == ncclSuccess ? 1 : rc == ncclInProgress ? 0 : set_nccl_error(c->calls, c->nccl, rc, err);
}

/* Waits until a pending call is enqueued; its work may still wait for other ranks. */
static int wait_enqueued(struct device_comm *c, struct err *err)
{
	const struct timespec nap = { 0, 20000 };
	int rc;

	while ((rc = poll_nccl_comm(c, err)) == 0)
		nanosleep(&nap, NULL);
	return rc < 0 ? rc : 0;
}

/* Handles the result of a call: waits until it is enqueued. */
static int finish_nccl_call(struct nccl *c, ncclResult_t rc, struct err *err)
{
	if (rc != ncclSuccess && rc != ncclInProgress)
		return set_nccl_error(c->calls, c->nccl, rc, err);
	return rc == ncclInProgress ? wait_enqueued(&c->comm, err) : 0;
}

static void close_nccl_comm(struct device_comm *comm, bool orderly)
{
	struct nccl *c = get_nccl(comm);
	struct err ignored = ERR_INIT;

	if (orderly && !finish_nccl_call(c, c->calls->ncclCommFinalize(c->nccl), &ignored))
		c->calls->ncclCommDestroy(c->nccl);
	else
		c->calls->ncclCommAbort(c->nccl);
	free(c);
}

static struct backend_sent read_sent_bytes(const void *module)
{
	return ((const struct cuda_module *)module)->sent;
}

const struct backend_comms cuda_comms = {
	.id = make_nccl_id,
	.open = open_nccl_comm,
	.poll = poll_nccl_comm,
	.close = close_nccl_comm,
	.sent = read_sent_bytes,
};

static ncclDataType_t nccl_type(enum dtype t)
{
	static const ncclDataType_t types[] = {
		[DTYPE_F64] = ncclFloat64, [DTYPE_F32] = ncclFloat32, [DTYPE_BF16] = ncclBfloat16,
		[DTYPE_F16] = ncclFloat16, [DTYPE_I64] = ncclInt64,   [DTYPE_I32] = ncclInt32,
		[DTYPE_U8] = ncclUint8,
	};

	return types[t];
}

static cudaStream_t get_stream(const struct ranks_call *k)
{
	return (cudaStream_t)k->stream;
}

/* Accounts for the elements that a call sends. Recorded calls count when their graph is launched. */
static int count_and_finish(struct nccl *c, const struct ranks_call *k, struct backend_sent elements, ncclResult_t rc,
			    struct err *err)
{
	const int64_t width = (int64_t)dtype_bytes(k->dtype);
	struct backend_sent *to = c->module->capturing ? &c->module->sent_recorded : &c->module->sent;

	to->all += elements.all * width;
	to->nodes += elements.nodes * width;
	return finish_nccl_call(c, rc, err);
}

/* A rank's share of an all-gather or reduce-scatter of `whole` elements. Each machine sends to each other one the data
 * it lacks, shared among its ranks. */
static struct backend_sent share_of_ring(const struct nccl *c, int64_t whole)
{
	return (struct backend_sent){ .all = whole * (c->comm.world - 1) / c->comm.world,
				      .nodes = whole * (c->machines - 1) / ((int64_t)c->machines * c->near) };
}

/* An all-reduce is a reduce-scatter followed by an all-gather. */
static int run_nccl_allreduce(struct device_comm *comm, const struct ranks_call *k, struct err *err)
{
	struct nccl *c = get_nccl(comm);

	return count_and_finish(c, k, share_of_ring(c, 2 * k->count),
		     c->calls->ncclAllReduce(k->in, k->out, (size_t)k->count, nccl_type(k->dtype), ncclSum, c->nccl,
					     get_stream(k)), err);
}

static int run_nccl_reduce_scatter(struct device_comm *comm, const struct ranks_call *k, struct err *err)
{
	struct nccl *c = get_nccl(comm);

	return count_and_finish(c, k, share_of_ring(c, k->count * comm->world),
		     c->calls->ncclReduceScatter(k->in, k->out, (size_t)k->count, nccl_type(k->dtype), ncclSum, c->nccl,
						 get_stream(k)), err);
}

static int run_nccl_all_gather(struct device_comm *comm, const struct ranks_call *k, struct err *err)
{
	struct nccl *c = get_nccl(comm);

	return count_and_finish(
		c, k, share_of_ring(c, k->count * comm->world),
		c->calls->ncclAllGather(k->in, k->out, (size_t)k->count, nccl_type(k->dtype), c->nccl, get_stream(k)),
		err);
}

static int run_nccl_send(struct device_comm *comm, const struct ranks_call *k, struct err *err)
{
	struct nccl *c = get_nccl(comm);

	return count_and_finish(c, k, (struct backend_sent){ .all = k->count, .nodes = c->far[k->peer] ? k->count : 0 },
		     c->calls->ncclSend(k->in, (size_t)k->count, nccl_type(k->dtype), k->peer, c->nccl, get_stream(k)),
		     err);
}

static int run_nccl_recv(struct device_comm *comm, const struct ranks_call *k, struct err *err)
{
	struct nccl *c = get_nccl(comm);

	return finish_nccl_call(c, c->calls->ncclRecv(k->out, (size_t)k->count, nccl_type(k->dtype), k->peer, c->nccl,
					      get_stream(k)), err);
}

static const struct ranks_ops ranks = {
	.allreduce = run_nccl_allreduce,
	.reduce_scatter = run_nccl_reduce_scatter,
	.all_gather = run_nccl_all_gather,
	.send = run_nccl_send,
	.recv = run_nccl_recv,
};

#else /* built without NCCL's header: no communicator can be opened */

static int make_nccl_id(void *module, unsigned char ret[BACKEND_COMM_ID_BYTES], struct err *err)
{
	struct cuda_module *m = module;

	(void)ret;
	return cuda_calls_open(&m->calls, CUDA_NCCL, err);
}

static int open_nccl_comm(void *module, const struct device_comm_opts *o, struct device_comm **ret, struct err *err)
{
	struct cuda_module *m = module;

	(void)o, (void)ret;
	return cuda_calls_open(&m->calls, CUDA_NCCL, err);
}

static struct backend_sent read_sent_bytes(const void *module)
{
	(void)module;
	return (struct backend_sent){ 0 };
}

const struct backend_comms cuda_comms = { .id = make_nccl_id, .open = open_nccl_comm, .sent = read_sent_bytes };

#endif
