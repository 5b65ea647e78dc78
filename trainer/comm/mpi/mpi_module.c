/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_module.c: transport over Open MPI, for ranks that mpirun or srun started. All links of a process share
 * MPI_COMM_WORLD. Each link has its own tag; its address is the tag and the MPI rank of the process, so messages of two
 * communicators cannot be confused. Several threads use links at once (THREAD_MULTIPLE). MPI moves bytes only during
 * calls: a thread calls it when no other thread has for a while. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tracker/base/thread.h"
#include "trainer/comm/link.h"

#define PART_BYTES ((size_t)1 << 30) /* long messages are divided into parts, since MPI counts in int */
#define IDLE_NS 2000000		     /* between two checks of the thread */
#define NAP_NS 50000		     /* first nap of a wait; each next one is twice as long */
#define NAP_MOST_NS 1000000

extern const struct link_module dptrain_link_v4;

_Static_assert(sizeof(MPI_Request) <= sizeof(void *), "a transfer keeps MPI's handles");

struct mpi_peer {
	int32_t rank; /* rank in MPI_COMM_WORLD */
	int32_t tag;
};

struct mpi {
	struct link link;
	struct mpi_peer own, *theirs; /* by rank */
	int world;
	long nap_ns;
};

/* Shared by all links of the process. */
static struct {
	pthread_mutex_t lock;
	pthread_t thread;
	atomic_bool quit;
	_Atomic uint32_t calls; /* calls into MPI */
	bool threaded;
	int links, next_tag;
} own = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int set_mpi_error(struct err *err, const char *what, int code)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int n = 0;

	MPI_Error_string(code, text, &n);
	return err_set(err, ERR_IO, "transport mpi: %s: %.200s", what, text);
}

static void sleep_ns(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

/* ---- the process ---- */

static void *run_progress_thread(void *unused)
{
	uint32_t seen = 0;

	(void)unused;
	while (!atomic_load(&own.quit)) {
		uint32_t calls = atomic_load(&own.calls);
		int flag;

		if (calls == seen)
			MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
		seen = calls;
		sleep_ns(IDLE_NS);
	}
	return NULL;
}

/* MPI_Init ends a process that no MPI launcher started: check that first. */
static bool was_started_by_mpi(void)
{
	return getenv("PMIX_RANK") || getenv("OMPI_COMM_WORLD_RANK");
}

static int start_progress_thread(struct err *err)
{
	int rc = thread_start(&own.thread, run_progress_thread, NULL);

	own.threaded = !rc;
	return rc ? err_set_errno(err, rc, "transport mpi: cannot start a thread") : 0;
}

static int start_mpi(struct err *err)
{
	int done = 0, given = MPI_THREAD_SINGLE, rc;

	if (!was_started_by_mpi())
		return err_set(err, ERR_USAGE, "transport mpi: these ranks were started neither by mpirun nor by srun "
			       "--mpi=pmix (PMIX_RANK is not set); use --comm ucx");
	MPI_Initialized(&done);
	rc = done ? MPI_SUCCESS : MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &given);
	if (rc != MPI_SUCCESS)
		return set_mpi_error(err, "cannot start", rc);
	if (done)
		MPI_Query_thread(&given);
	if (given < MPI_THREAD_MULTIPLE)
		return err_set(err, ERR_UNSUPPORTED, "transport mpi: this MPI was built without MPI_THREAD_MULTIPLE");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	return start_progress_thread(err);
}

static void stop_progress_thread(void)
{
	if (!own.threaded)
		return;
	atomic_store(&own.quit, true);
	pthread_join(own.thread, NULL);
	own.threaded = false;
}

/* ---- a link ---- */

static void mpi_close(struct link *l, bool orderly)
{
	struct mpi *m = (struct mpi *)l;

	pthread_mutex_lock(&own.lock);
	own.links--;
	if (!orderly || !own.links)
		stop_progress_thread();
	if (orderly && !own.links)
		MPI_Finalize(); /* waits for the other ranks; mpirun ends the job where one has failed */
	pthread_mutex_unlock(&own.lock);
	free(m->theirs);
	free(m);
}

/* Starts MPI with the first link of the process and assigns the link's tag. */
static int mpi_open(struct link **ret, const struct link_opts *o, struct err *err)
{
	struct mpi *m = calloc(1, sizeof(*m));
	int rank = 0, rc = 0;

	if (m)
		m->theirs = calloc((size_t)o->world, sizeof(*m->theirs));
	if (!m || !m->theirs) {
		free(m);
		return err_nomem(err, "transport mpi");
	}
	pthread_mutex_lock(&own.lock);
	if (!own.links)
		rc = start_mpi(err);
	own.links += !rc;
	m->own.tag = own.next_tag++;
	pthread_mutex_unlock(&own.lock);
	if (rc) {
		free(m->theirs);
		free(m);
		return rc;
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	m->own.rank = rank;
	m->world = o->world;
	m->link.module = &dptrain_link_v4;
	*ret = &m->link;
	return 0;
}

static const void *mpi_address(struct link *l, size_t *ret_n)
{
	*ret_n = sizeof(struct mpi_peer);
	return &((struct mpi *)l)->own;
}

static int mpi_connect(struct link *l, int rank, const void *address, size_t n, struct err *err)
{
	struct mpi *m = (struct mpi *)l;
	int size = 0;

	if (n == sizeof(struct mpi_peer))
		memcpy(&m->theirs[rank], address, n);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (n == sizeof(struct mpi_peer) && m->theirs[rank].rank >= 0 && m->theirs[rank].rank < size)
		return 0;
	return err_set(err, ERR_PEER, "transport mpi: rank %d was not started by the same mpirun or srun", rank);
}

static int count_mpi_parts(size_t bytes)
{
	return (int)((bytes + PART_BYTES - 1) / PART_BYTES);
}

static int start_mpi_part(const struct mpi *m, struct link_transfer *t, int i)
{
	const struct mpi_peer *peer = &m->theirs[t->peer];
	size_t from = (size_t)i * PART_BYTES, n = t->bytes - from < PART_BYTES ? t->bytes - from : PART_BYTES;
	char *at = (char *)t->data + from;
	MPI_Request request = MPI_REQUEST_NULL;
	int rc = t->sends ? MPI_Isend(at, (int)n, MPI_BYTE, peer->rank, peer->tag, MPI_COMM_WORLD, &request)
			  : MPI_Irecv(at, (int)n, MPI_BYTE, peer->rank, m->own.tag, MPI_COMM_WORLD, &request);

	memcpy(&t->request[i], &request, sizeof(request));
	return rc;
}

static int mpi_start(struct link *l, struct link_transfer *t, struct err *err)
{
	struct mpi *m = (struct mpi *)l;
	int parts = count_mpi_parts(t->bytes), rc = MPI_SUCCESS;

	if (parts > LINK_SOCKETS_MAX)
		return err_set(err, ERR_LIMIT, "transport mpi: a message of %zu bytes: expected at most %zu", t->bytes,
			       LINK_SOCKETS_MAX * PART_BYTES);
	for (int i = 0; rc == MPI_SUCCESS && i < parts; i++)
		rc = start_mpi_part(m, t, i);
	atomic_fetch_add(&own.calls, 1);
	m->nap_ns = NAP_NS;
	return rc == MPI_SUCCESS ? 0 : set_mpi_error(err, "cannot begin a message", rc);
}

static int mpi_poll(struct link *l, struct link_transfer *t, struct err *err)
{
	bool done = true;

	(void)l;
	atomic_fetch_add(&own.calls, 1);
	for (int i = 0; i < count_mpi_parts(t->bytes); i++) {
		MPI_Request request;
		int flag = 0;

		memcpy(&request, &t->request[i], sizeof(request));
		if (MPI_Test(&request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS)
			return err_set(err, ERR_PEER, "the connection to rank %d broke", t->peer);
		memcpy(&t->request[i], &request, sizeof(request));
		done = done && flag;
	}
	return done;
}

/* MPI_Test progresses all requests. */
static void mpi_progress(struct link *l)
{
	(void)l;
}

/* MPI offers no event to wait for: naps that grow. */
static void mpi_wait(struct link *l, double seconds)
{
	struct mpi *m = (struct mpi *)l;

	sleep_ns(m->nap_ns < (long)(seconds * 1e9) ? m->nap_ns : (long)(seconds * 1e9));
	m->nap_ns = m->nap_ns * 2 < NAP_MOST_NS ? m->nap_ns * 2 : NAP_MOST_NS;
}

__attribute__((visibility("default"))) const struct link_module dptrain_link_v4 = {
	.abi = LINK_ABI,
	.name = "mpi",
	.open = mpi_open,
	.address = mpi_address,
	.connect = mpi_connect,
	.start = mpi_start,
	.progress = mpi_progress,
	.poll = mpi_poll,
	.wait = mpi_wait,
	.close = mpi_close,
};
