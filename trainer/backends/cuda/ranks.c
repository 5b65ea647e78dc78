/* ranks.c: NCCL's communicators, opened without blocking so that a rank that never comes, or dies, can be noticed. */
#include "trainer/backends/cuda/ranks.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "trainer/backends/cuda/cuda_module.h"

#ifdef HAVE_NCCL

_Static_assert(sizeof(ncclUniqueId) == BACKEND_COMM_ID_BYTES, "an id of NCCL fits");

struct nccl {
	struct device_comm comm;
	struct cuda_module *module;
	const struct cuda_calls *calls;
	ncclComm_t nccl;
	int machines, near; /* of the group; its ranks on this machine, this one too */
	bool far[];	    /* by rank: on another machine */
};

static struct nccl *nccl_of(struct device_comm *c)
{
	return (struct nccl *)c;
}

static int fail(const struct cuda_calls *calls, ncclComm_t comm, ncclResult_t rc, struct err *err)
{
	const char *more = calls->ncclGetLastError(comm);

	return err_set(err, ERR_PEER, "NCCL: %s%s%s", calls->ncclGetErrorString(rc), more && *more ? ": " : "",
		       more ? more : "");
}

static const struct ranks_ops ranks;

static int id(void *module, unsigned char ret[BACKEND_COMM_ID_BYTES], struct err *err)
{
	struct cuda_module *m = module;
	ncclUniqueId made;
	ncclResult_t rc;
	int opened = cuda_calls_open(&m->calls, CUDA_NCCL, err);

	if (opened)
		return opened;
	rc = m->calls.ncclGetUniqueId(&made);
	if (rc != ncclSuccess)
		return fail(&m->calls, NULL, rc, err);
	memcpy(ret, made.internal, BACKEND_COMM_ID_BYTES);
	return 0;
}

static struct nccl *comm_new(struct cuda_module *m, const struct device_comm_opts *o)
{
	struct nccl *c = calloc(1, sizeof(*c) + (size_t)o->world * sizeof(c->far[0]));

	if (!c)
		return NULL;
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

static int open_comm(void *module, const struct device_comm_opts *o, struct device_comm **ret, struct err *err)
{
	struct cuda_module *m = module;
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	struct nccl *c = NULL;
	ncclUniqueId same;
	ncclResult_t rc;
	int opened = cuda_calls_open(&m->calls, CUDA_NCCL, err);

	if (opened)
		return opened;
	c = comm_new(m, o);
	if (!c)
		return err_set(err, ERR_NOMEM, "out of memory: communicator of devices");
	config.blocking = 0;
	config.commName = o->name;
	memcpy(same.internal, o->id, BACKEND_COMM_ID_BYTES);
	rc = m->calls.ncclCommInitRankConfig(&c->nccl, o->world, same, o->rank, &config);
	if (rc != ncclSuccess && rc != ncclInProgress) {
		free(c);
		return fail(&m->calls, NULL, rc, err);
	}
	*ret = &c->comm;
	return 0;
}

static int poll_comm(struct device_comm *comm, struct err *err)
{
	const struct nccl *c = nccl_of(comm);
	ncclResult_t state = ncclSuccess, rc = c->calls->ncclCommGetAsyncError(c->nccl, &state);

	if (rc == ncclSuccess)
		rc = state;
	return rc == ncclSuccess ? 1 : rc == ncclInProgress ? 0 : fail(c->calls, c->nccl, rc, err);
}

/* Until a call that is under way has been taken; what it enqueued may still wait for others. */
static int settle(struct device_comm *c, struct err *err)
{
	const struct timespec nap = { 0, 20000 };
	int rc;

	while ((rc = poll_comm(c, err)) == 0)
		nanosleep(&nap, NULL);
	return rc < 0 ? rc : 0;
}

/* Of a call's result: what is under way has been taken. */
static int enqueued(struct nccl *c, ncclResult_t rc, struct err *err)
{
	if (rc != ncclSuccess && rc != ncclInProgress)
		return fail(c->calls, c->nccl, rc, err);
	return rc == ncclInProgress ? settle(&c->comm, err) : 0;
}

static void close_comm(struct device_comm *comm, bool orderly)
{
	struct nccl *c = nccl_of(comm);
	struct err ignored = ERR_INIT;

	if (orderly && !enqueued(c, c->calls->ncclCommFinalize(c->nccl), &ignored))
		c->calls->ncclCommDestroy(c->nccl);
	else
		c->calls->ncclCommAbort(c->nccl);
	free(c);
}

static struct backend_sent sent_bytes(const void *module)
{
	return ((const struct cuda_module *)module)->sent;
}

const struct backend_comms cuda_comms = {
	.id = id,
	.open = open_comm,
	.poll = poll_comm,
	.close = close_comm,
	.sent = sent_bytes,
};

static ncclDataType_t type_of(enum dtype t)
{
	static const ncclDataType_t types[] = {
		[DTYPE_F64] = ncclFloat64,   [DTYPE_F32] = ncclFloat32, [DTYPE_BF16] = ncclBfloat16,
		[DTYPE_F16] = ncclFloat16,   [DTYPE_I64] = ncclInt64,	[DTYPE_I32] = ncclInt32,
		[DTYPE_U8] = ncclUint8,
	};

	return types[t];
}

static cudaStream_t stream_of(const struct ranks_call *k)
{
	return (cudaStream_t)k->stream;
}

/* A call was made of which so many elements leave this rank: what is recorded counts when it is launched. */
static int sends(struct nccl *c, const struct ranks_call *k, struct backend_sent elements, ncclResult_t rc,
		 struct err *err)
{
	const int64_t width = (int64_t)dtype_bytes(k->dtype);
	struct backend_sent *to = c->module->capturing ? &c->module->sent_recorded : &c->module->sent;

	to->all += elements.all * width;
	to->nodes += elements.nodes * width;
	return enqueued(c, rc, err);
}

/* A rank's part of gathering a whole, or of adding up and scattering it: of the whole a machine sends to each other one
 * what that does not have, and its ranks share that out. */
static struct backend_sent half(const struct nccl *c, int64_t whole)
{
	return (struct backend_sent){ .all = whole * (c->comm.world - 1) / c->comm.world,
				      .nodes = whole * (c->machines - 1) / ((int64_t)c->machines * c->near) };
}

/* The first half of it adds slices up, the second hands the sums on. */
static int sum_all(struct device_comm *comm, const struct ranks_call *k, struct err *err)
{
	struct nccl *c = nccl_of(comm);

	return sends(c, k, half(c, 2 * k->count),
		     c->calls->ncclAllReduce(k->in, k->out, (size_t)k->count, type_of(k->dtype), ncclSum, c->nccl,
					     stream_of(k)), err);
}

static int reduce_scatter(struct device_comm *comm, const struct ranks_call *k, struct err *err)
{
	struct nccl *c = nccl_of(comm);

	return sends(c, k, half(c, k->count * comm->world),
		     c->calls->ncclReduceScatter(k->in, k->out, (size_t)k->count, type_of(k->dtype), ncclSum, c->nccl,
						 stream_of(k)), err);
}

static int all_gather(struct device_comm *comm, const struct ranks_call *k, struct err *err)
{
	struct nccl *c = nccl_of(comm);

	return sends(c, k, half(c, k->count * comm->world),
		     c->calls->ncclAllGather(k->in, k->out, (size_t)k->count, type_of(k->dtype), c->nccl, stream_of(k)),
		     err);
}

static int send_one(struct device_comm *comm, const struct ranks_call *k, struct err *err)
{
	struct nccl *c = nccl_of(comm);

	return sends(c, k, (struct backend_sent){ .all = k->count, .nodes = c->far[k->peer] ? k->count : 0 },
		     c->calls->ncclSend(k->in, (size_t)k->count, type_of(k->dtype), k->peer, c->nccl, stream_of(k)),
		     err);
}

static int recv_one(struct device_comm *comm, const struct ranks_call *k, struct err *err)
{
	struct nccl *c = nccl_of(comm);

	return enqueued(c, c->calls->ncclRecv(k->out, (size_t)k->count, type_of(k->dtype), k->peer, c->nccl,
					      stream_of(k)), err);
}

static const struct ranks_ops ranks = {
	.allreduce = sum_all,
	.reduce_scatter = reduce_scatter,
	.all_gather = all_gather,
	.send = send_one,
	.recv = recv_one,
};

#else /* built without NCCL's header: no communicator is ever opened */

static int id(void *module, unsigned char ret[BACKEND_COMM_ID_BYTES], struct err *err)
{
	struct cuda_module *m = module;

	(void)ret;
	return cuda_calls_open(&m->calls, CUDA_NCCL, err);
}

static int open_comm(void *module, const struct device_comm_opts *o, struct device_comm **ret, struct err *err)
{
	struct cuda_module *m = module;

	(void)o, (void)ret;
	return cuda_calls_open(&m->calls, CUDA_NCCL, err);
}

static struct backend_sent sent_bytes(const void *module)
{
	(void)module;
	return (struct backend_sent){ 0 };
}

const struct backend_comms cuda_comms = { .id = id, .open = open_comm, .sent = sent_bytes };

#endif
