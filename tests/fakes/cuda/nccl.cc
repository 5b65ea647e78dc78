/* nccl.cc: NCCL between processes, in shared memory, by the prototypes of the real header. A communicator opens when all
 * ranks have joined; a collective is work of its stream that is done when all ranks have provided their data. Sums
 * start at a different rank for each element, like a ring's: code that relies on the order of ranks is exposed. Ranks
 * whose collectives differ in kind, count or type, and two on one device with the same NCCL_HOSTID, are refused. It
 * does not notice a dead rank: its users must. */
#include <fcntl.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "tests/fakes/cuda/memory.h"
#include "tests/fakes/cuda/queue.h"

#define RANKS_MAX 8
#define AREA_BYTES ((size_t)64 << 20) /* limit of one rank's data; untouched memory is not allocated */

enum kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, SEND, RECV };
static const char *const kinds[] = { "all-reduce", "reduce-scatter", "all-gather", "send", "receive" };

struct call {
	enum kind kind;
	size_t count; /* elements that a rank provides or gets, whichever is less */
	ncclDataType_t type;
	int peer;
};

struct member {
	std::atomic<uint64_t> posted, done; /* collectives for which it has provided its data; which it has finished */
	std::atomic<uint64_t> sent[RANKS_MAX], taken[RANKS_MAX]; /* messages to, and from, that rank */
	struct call call;
	int device;
	char host[64];
};

struct shared {
	std::atomic<int> come, joined, failed; /* joined: all have come and are checked */
	char why[256];
	struct member member[RANKS_MAX];
};

struct ncclComm {
	struct shared *all;
	char *areas;
	char name[NCCL_UNIQUE_ID_BYTES];
	int rank, ranks;
	uint64_t calls;
	bool aborted;
};

#define HEAD_BYTES ((sizeof(struct shared) + 4095) / 4096 * 4096)
#define MAP_BYTES (HEAD_BYTES + RANKS_MAX * AREA_BYTES)

static char *area_of(struct ncclComm *c, int rank)
{
	return c->areas + (size_t)rank * AREA_BYTES;
}

static struct member *self_of(struct ncclComm *c)
{
	return &c->all->member[c->rank];
}

static size_t width(ncclDataType_t t)
{
	switch (t) {
	case ncclFloat64:
	case ncclInt64:
	case ncclUint64:
		return 8;
	case ncclFloat32:
	case ncclInt32:
	case ncclUint32:
		return 4;
	case ncclBfloat16:
	case ncclFloat16:
		return 2;
	default:
		return 1;
	}
}

static void refuse(struct ncclComm *c, ncclResult_t rc, const char *why)
{
	int none = 0;

	fprintf(stderr, "fake NCCL: %s\n", why);
	snprintf(c->all->why, sizeof(c->all->why), "%s", why);
	c->all->failed.compare_exchange_strong(none, rc);
}

/* ---- sums ---- */

/* Sums element i of n over the ranks, starting after the rank whose slice it is in. */
template <typename T> static T add_up(struct ncclComm *c, size_t i, size_t n)
{
	const int first = (int)(i * (size_t)c->ranks / n) + 1;
	T sum = 0;

	for (int k = 0; k < c->ranks; k++) {
		const T v = ((const T *)area_of(c, (first + k) % c->ranks))[i];

		sum = k ? sum + v : v;
	}
	return sum;
}

template <typename T> static void sum_into(struct ncclComm *c, void *to, size_t first, size_t count, size_t n)
{
	for (size_t i = 0; i < count; i++)
		((T *)to)[i] = add_up<T>(c, first + i, n);
}

static void sum_range(struct ncclComm *c, const struct call *k, void *to, size_t first, size_t n)
{
	if (k->type == ncclFloat64)
		sum_into<double>(c, to, first, k->count, n);
	else if (k->type == ncclFloat32)
		sum_into<float>(c, to, first, k->count, n);
	else
		sum_into<int64_t>(c, to, first, k->count, n);
}

/* ---- collectives ---- */

struct collective : work {
	struct ncclComm *c;
	struct call call;
	const void *from;
	void *to;
	bool brought;

	collective(struct ncclComm *comm, const struct call &k, const void *in, void *out)
		: c(comm), call(k), from(in), to(out), brought(false)
	{
	}
	void run() override
	{
	}
	bool step() override;

	size_t bytes() const
	{
		return call.count * width(call.type);
	}
	bool bring();
	bool all_same();
	void take();
	bool message();
};

/* The area is free when all have finished with its previous contents. */
bool collective::bring()
{
	for (int r = 0; r < c->ranks; r++)
		if (c->all->member[r].done < c->calls)
			return false;
	memcpy(area_of(c, c->rank), from, bytes() * (call.kind == REDUCE_SCATTER ? (size_t)c->ranks : 1));
	self_of(c)->call = call;
	self_of(c)->posted = ++c->calls;
	return true;
}

bool collective::all_same()
{
	for (int r = 0; r < c->ranks; r++) {
		const struct call &k = c->all->member[r].call;
		char why[256];

		if (k.kind == call.kind && k.count == call.count && k.type == call.type)
			continue;
		snprintf(why, sizeof(why),
			 "ranks disagree: rank %d calls %s of %zu elements of type %d, rank %d %s of %zu of type %d", c->rank,
			 kinds[call.kind], call.count, (int)call.type, r, kinds[k.kind], k.count, (int)k.type);
		refuse(c, ncclInvalidUsage, why);
		return false;
	}
	return true;
}

void collective::take()
{
	if (call.kind == ALL_REDUCE)
		sum_range(c, &call, to, 0, call.count);
	else if (call.kind == REDUCE_SCATTER)
		sum_range(c, &call, to, (size_t)c->rank * call.count, (size_t)c->ranks * call.count);
	else
		for (int r = 0; r < c->ranks; r++)
			memcpy((char *)to + (size_t)r * bytes(), area_of(c, r), bytes());
}

/* One message at a time from a rank to another, in the receiver's half of the sender's area. */
bool collective::message()
{
	const bool sends = call.kind == SEND;
	struct member *sender = &c->all->member[sends ? c->rank : call.peer];
	struct member *taker = &c->all->member[sends ? call.peer : c->rank];
	const int to_whom = sends ? call.peer : c->rank, from_whom = sends ? c->rank : call.peer;
	char *mail = area_of(c, from_whom) + (size_t)to_whom * (AREA_BYTES / RANKS_MAX);
	const uint64_t sent = sender->sent[to_whom], taken = taker->taken[from_whom];

	if (sends && !brought && sent == taken) {
		memcpy(mail, from, bytes());
		sender->sent[to_whom] = sent + 1;
		brought = true;
	}
	if (sends)
		return brought && taker->taken[from_whom] == sender->sent[to_whom] && !(brought = false);
	if (sent == taken)
		return false;
	memcpy(to, mail, bytes());
	taker->taken[from_whom] = taken + 1;
	return true;
}

bool collective::step()
{
	if (c->aborted || c->all->failed)
		return true;
	if (call.kind == SEND || call.kind == RECV)
		return message();
	brought = brought || bring();
	for (int r = 0; r < c->ranks; r++)
		if (!brought || c->all->member[r].posted < c->calls)
			return false;
	if (all_same())
		take();
	brought = false;
	self_of(c)->done = c->calls;
	return true;
}

static ncclResult_t enqueue(struct ncclComm *c, const struct call &k, const void *from, void *to, cudaStream_t s)
{
	const size_t most = k.kind == SEND ? AREA_BYTES / RANKS_MAX : AREA_BYTES;

	if (c->aborted || c->all->failed)
		return ncclInvalidUsage;
	if (c->all->joined < c->ranks || (from && !memory_is_device(from)) || (to && !memory_is_device(to)))
		return ncclInvalidArgument;
	if (k.count * width(k.type) * (k.kind == REDUCE_SCATTER ? (size_t)c->ranks : 1) > most) {
		fprintf(stderr, "fake NCCL: more than %zu bytes at once\n", most);
		return ncclInternalError;
	}
	queue_work(s, std::make_shared<collective>(c, k, from, to));
	return ncclSuccess;
}

static bool summed(ncclDataType_t t)
{
	return t == ncclFloat64 || t == ncclFloat32 || t == ncclInt64;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t c,
			   cudaStream_t s)
{
	if (op != ncclSum || !summed(type))
		return ncclInvalidArgument;
	return enqueue(c, { ALL_REDUCE, count, type, -1 }, from, to, s);
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
			       ncclComm_t c, cudaStream_t s)
{
	if (op != ncclSum || !summed(type))
		return ncclInvalidArgument;
	return enqueue(c, { REDUCE_SCATTER, count, type, -1 }, from, to, s);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t c, cudaStream_t s)
{
	return enqueue(c, { ALL_GATHER, count, type, -1 }, from, to, s);
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t c, cudaStream_t s)
{
	return enqueue(c, { SEND, count, type, peer }, from, NULL, s);
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t c, cudaStream_t s)
{
	return enqueue(c, { RECV, count, type, peer }, NULL, to, s);
}

/* ---- communicators ---- */

ncclResult_t ncclGetVersion(int *version)
{
	const char *given = getenv("DPTRAIN_FAKE_NCCL");

	*version = given ? (int)strtol(given, NULL, 10) : NCCL_VERSION_CODE;
	return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t rc)
{
	return rc == ncclInvalidUsage ? "invalid usage" : rc == ncclInvalidArgument ? "invalid argument" : "internal error";
}

const char *ncclGetLastError(ncclComm_t c)
{
	return c ? c->all->why : "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	static int count;
	int fd;

	memset(id, 0, sizeof(*id));
	snprintf(id->internal, sizeof(id->internal), "/fake-nccl-%d-%d", (int)getpid(), ++count);
	shm_unlink(id->internal); /* left by a killed process with the same pid */
	fd = shm_open(id->internal, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)MAP_BYTES))
		return ncclSystemError;
	close(fd);
	return ncclSuccess;
}

/* The last rank to join unlinks the name, and checks all. */
static void join(struct ncclComm *c)
{
	struct member *m = self_of(c);
	const char *host = getenv("NCCL_HOSTID");

	cudaGetDevice(&m->device);
	snprintf(m->host, sizeof(m->host), "%s", host ? host : "");
	if (++c->all->come < c->ranks)
		return;
	shm_unlink(c->name);
	for (int r = 0; r < c->ranks; r++)
		for (int k = 0; k < r; k++)
			if (c->all->member[r].device == c->all->member[k].device &&
			    !strcmp(c->all->member[r].host, c->all->member[k].host))
				refuse(c, ncclInvalidUsage, "Duplicate GPU detected");
	c->all->joined = c->ranks;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *ret, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
	struct ncclComm *c;
	void *map;
	int fd = shm_open(id.internal, O_RDWR, 0);

	if (fd < 0 || ranks > RANKS_MAX || config->blocking != 0)
		return ncclInvalidArgument;
	map = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return ncclSystemError;
	c = new ncclComm{ (struct shared *)map, (char *)map + HEAD_BYTES, {}, rank, ranks, 0, false };
	memcpy(c->name, id.internal, sizeof(c->name));
	join(c);
	*ret = c;
	return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *ret)
{
	const int failed = c->all->failed;

	*ret = failed ? (ncclResult_t)failed : c->all->joined < c->ranks ? ncclInProgress : ncclSuccess;
	return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
	return queue_is_idle() || c->aborted ? ncclSuccess : ncclInvalidUsage;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
	munmap(c->all, MAP_BYTES);
	delete c;
	return ncclSuccess;
}

/* Work that waits for others may still be queued, so the communicator remains for it. */
ncclResult_t ncclCommAbort(ncclComm_t c)
{
	if (c->all->joined < c->ranks)
		shm_unlink(c->name);
	c->aborted = true;
	return ncclSuccess;
}
