/* shm_area.c: mapping, rendezvous, waiting and the detection of dead ranks. */
#include "trainer/comm/shm_area.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tracker/base/clock.h"

#define NAP_S 0.05
#define NAP_MOST_S 1.0 /* what a nap may count for: after ctrl-Z and fg the others have not been late */
#define OPEN_WAIT_S 120.0 /* at most, for the other ranks to start */
#define SPINS_MAX 2000

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static size_t head_bytes(int world)
{
	return round_up(sizeof(struct shm_head) + (size_t)world * sizeof(struct shm_rank), 4096);
}

static size_t area_bytes(int world)
{
	return round_up(head_bytes(world) + (size_t)world * SHM_STAGE_BYTES +
				(size_t)world * (size_t)world * sizeof(struct shm_mail),
			4096);
}

unsigned char *shm_area_stage(const struct shm_area *a, int rank)
{
	return (unsigned char *)a->head + head_bytes(a->world) + (size_t)rank * SHM_STAGE_BYTES;
}

struct shm_mail *shm_area_mail(const struct shm_area *a, int from, int to)
{
	unsigned char *first = (unsigned char *)a->head + head_bytes(a->world) + (size_t)a->world * SHM_STAGE_BYTES;

	return (struct shm_mail *)(void *)first + (size_t)from * (size_t)a->world + (size_t)to;
}

const struct shm_call *shm_area_call(const struct shm_area *a, int r)
{
	return &a->head->rank[r].call[a->meeting & 1];
}

static void futex_wait(_Atomic uint32_t *word, uint32_t seen, double seconds)
{
	struct timespec t = { .tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };

	syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

void shm_area_wake(struct shm_count *c)
{
	syscall(SYS_futex, &c->value, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void shm_area_count(struct shm_count *c)
{
	atomic_fetch_add(&c->value, 1);
	if (atomic_load(&c->sleepers))
		shm_area_wake(c);
}

void shm_area_abort(struct shm_area *a, int culprit)
{
	int32_t nobody = -1;

	if (culprit >= 0)
		atomic_compare_exchange_strong(&a->head->culprit, &nobody, culprit);
	atomic_store(&a->head->aborted, 1);
	for (int r = 0; r < a->world; r++) {
		shm_area_wake(&a->head->rank[r].arrived);
		for (int to = 0; to < a->world; to++) {
			struct shm_mail *m = shm_area_mail(a, r, to);

			if (atomic_load(&m->sent.sleepers) || atomic_load(&m->taken.sleepers)) {
				shm_area_wake(&m->sent);
				shm_area_wake(&m->taken);
			}
		}
	}
}

/* A mutex that is free although its rank is in has lost its owner. */
static bool rank_died(struct shm_area *a, int r)
{
	struct shm_rank *peer = &a->head->rank[r];
	int rc;

	if (r == a->rank || !atomic_load(&peer->joined) || atomic_load(&peer->left))
		return false;
	rc = pthread_mutex_trylock(&peer->alive);
	if (rc == EBUSY)
		return false;
	if (rc == 0 || rc == EOWNERDEAD) {
		pthread_mutex_unlock(&peer->alive);
		return rc == EOWNERDEAD || !atomic_load(&peer->left);
	}
	return true;
}

static int check_peers(struct shm_area *a, struct err *err)
{
	int culprit;

	if (!atomic_load(&a->head->aborted)) {
		for (int r = 0; r < a->world; r++)
			if (rank_died(a, r))
				shm_area_abort(a, r);
	}
	if (!atomic_load(&a->head->aborted))
		return 0;
	culprit = atomic_load(&a->head->culprit);
	if (culprit >= 0)
		return err_set(err, ERR_PEER, "rank %d died", culprit);
	return err_set(err, ERR_PEER, "the job was aborted by another rank");
}

/* Whether rank `on` has left for good without doing what is waited for. */
static int check_left(struct shm_area *a, const struct shm_count *c, uint32_t seen, int on, struct err *err)
{
	if (!atomic_load(&a->head->rank[on].left) || atomic_load(&c->value) != seen)
		return 0;
	return err_set(err, ERR_PEER, "rank %d has ended already", on);
}

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	sched_yield();
#endif
}

int shm_area_wait(struct shm_area *a, struct shm_count *c, uint32_t seen, int on, struct err *err)
{
	double waited_s = 0;
	int rc;

	for (int i = 0; i < a->spins; i++) {
		if (atomic_load_explicit(&c->value, memory_order_acquire) != seen)
			return 0;
		relax();
	}
	while (atomic_load(&c->value) == seen) {
		double nap_s = clock_mono_s();

		rc = check_peers(a, err);
		if (!rc)
			rc = check_left(a, c, seen, on, err);
		if (rc)
			return rc;
		if (a->timeout_s > 0 && waited_s > a->timeout_s)
			return err_set(err, ERR_PEER, "rank %d did not come to meeting %u (%s) within %.0f s", on,
				       a->meeting,
				       shm_area_call(a, a->rank)->what ? shm_area_call(a, a->rank)->what : "start",
				       a->timeout_s);
		atomic_fetch_add(&c->sleepers, 1);
		futex_wait(&c->value, seen, NAP_S);
		atomic_fetch_sub(&c->sleepers, 1);
		nap_s = clock_mono_s() - nap_s;
		waited_s += nap_s < NAP_MOST_S ? nap_s : NAP_MOST_S;
	}
	return 0;
}

int shm_area_meet(struct shm_area *a, const struct shm_call *call, struct err *err)
{
	struct shm_rank *own = &a->head->rank[a->rank];
	uint32_t goal = ++a->meeting;

	if (call)
		own->call[goal & 1] = *call;
	if (atomic_load(&a->head->aborted))
		return check_peers(a, err);
	shm_area_count(&own->arrived); /* to goal */
	for (int i = 1; i < a->world; i++) {
		int r = (a->rank + i) % a->world;
		struct shm_rank *peer = &a->head->rank[r];

		for (;;) {
			uint32_t seen = atomic_load_explicit(&peer->arrived.value, memory_order_acquire);
			int rc;

			if ((int32_t)(seen - goal) >= 0)
				break;
			rc = shm_area_wait(a, &peer->arrived, seen, r, err);
			if (rc)
				return rc;
		}
	}
	return 0;
}

static int map_region(struct shm_area *a, size_t at, size_t each, struct err *err)
{
	size_t length = each * (size_t)a->world;
	void *base = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, (off_t)at);

	if (base == MAP_FAILED)
		return err_set_errno(err, errno, "cannot map %zu bytes of shared memory", length);
	a->region[a->n_regions++] = (struct shm_region){ base, each, length };
	return 0;
}

int shm_area_grow(struct shm_area *a, size_t bytes, int *ret_region, struct err *err)
{
	size_t each = round_up(bytes ? bytes : 1, 4096), at;
	int rc;

	if (a->n_regions == SHM_REGIONS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d communication buffers", SHM_REGIONS_MAX);
	rc = shm_area_meet(a, &(struct shm_call){ .what = "alloc", .op = UINT32_MAX, .count = (int64_t)each }, err);
	for (int r = 0; !rc && r < a->world; r++)
		if (shm_area_call(a, r)->count != (int64_t)each)
			rc = err_set(err, ERR_USAGE,
				     "communication buffers differ: rank %d asks for %zu bytes, rank %d for %lld",
				     a->rank, each, r, (long long)shm_area_call(a, r)->count);
	if (rc)
		return rc;
	at = a->head->size_bytes;
	rc = shm_area_meet(a, NULL, err); /* all have read the size */
	if (!rc && a->rank == 0) {
		a->head->grow_errno = posix_fallocate(a->fd, (off_t)at, (off_t)(each * (size_t)a->world));
		a->head->size_bytes = at + each * (size_t)a->world;
	}
	if (!rc)
		rc = shm_area_meet(a, NULL, err);
	if (rc)
		return rc;
	if (a->head->grow_errno)
		return err_set_errno(err, a->head->grow_errno, "cannot get %zu bytes of shared memory",
				     each * (size_t)a->world);
	rc = map_region(a, at, each, err);
	if (!rc)
		*ret_region = a->n_regions - 1;
	return rc;
}

static int init_alive(pthread_mutex_t *m)
{
	pthread_mutexattr_t attr;
	int rc = pthread_mutexattr_init(&attr);

	if (rc)
		return rc;
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	rc = pthread_mutex_init(m, &attr);
	pthread_mutexattr_destroy(&attr);
	return rc;
}

static int map_head(struct shm_area *a, struct err *err)
{
	size_t bytes = area_bytes(a->world);
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);

	if (p == MAP_FAILED)
		return err_set_errno(err, errno, "cannot map %zu bytes of shared memory", bytes);
	a->head = p;
	a->mapped_bytes = bytes;
	return 0;
}

static void forget_head(struct shm_area *a)
{
	if (a->head)
		munmap(a->head, a->mapped_bytes);
	a->head = NULL;
}

/* The file is new and all zero. */
static int fill_head(struct shm_area *a, struct err *err)
{
	size_t bytes = area_bytes(a->world);
	int rc = ftruncate(a->fd, (off_t)bytes) ? errno : 0;

	if (!rc) /* stages too: what is written in every step must not turn out to be missing */
		rc = posix_fallocate(a->fd, 0, (off_t)(head_bytes(a->world) + (size_t)a->world * SHM_STAGE_BYTES));
	if (rc)
		return err_set_errno(err, rc, "cannot get %zu bytes of shared memory", bytes);
	rc = map_head(a, err);
	if (rc)
		return rc;
	a->head->world = (uint32_t)a->world;
	a->head->size_bytes = bytes;
	atomic_store(&a->head->culprit, -1);
	for (int r = 0; r < a->world; r++)
		if (init_alive(&a->head->rank[r].alive))
			return err_set(err, ERR_UNSUPPORTED, "robust mutexes are not available");
	return 0;
}

int comm_shm_make(int *ret_fd, int world, struct err *err)
{
	struct shm_area a = { .world = world };
	int rc;

	if (world < 1 || world > SHM_WORLD_MAX)
		return err_set(err, ERR_USAGE, "%d ranks: shared memory takes 1 to %d", world, SHM_WORLD_MAX);
	a.fd = memfd_create("dptrain", MFD_CLOEXEC);
	if (a.fd < 0)
		return err_set_errno(err, errno, "cannot make shared memory");
	rc = fill_head(&a, err);
	forget_head(&a);
	if (rc) {
		close(a.fd);
		return rc;
	}
	*ret_fd = a.fd;
	return 0;
}

static int enter(struct shm_area *a, struct err *err)
{
	struct shm_rank *own = &a->head->rank[a->rank];

	if (pthread_mutex_trylock(&own->alive) || atomic_exchange(&own->joined, 1))
		return err_set(err, ERR_EXISTS, "two processes claim rank %d of the job", a->rank);
	return 0;
}

static int first_missing(const struct shm_area *a)
{
	for (int r = 0; r < a->world; r++)
		if (!atomic_load(&a->head->rank[r].joined))
			return r;
	return -1;
}

static int wait_all_joined(struct shm_area *a, double until_s, struct err *err)
{
	while (first_missing(a) >= 0) {
		int rc = check_peers(a, err);

		if (rc)
			return rc;
		if (clock_mono_s() > until_s)
			return err_set(err, ERR_PEER, "rank %d of %d did not start in time", first_missing(a),
				       a->world);
		clock_sleep_s(0.0005);
	}
	return 0;
}

static int spins_for(int world)
{
	return world <= sysconf(_SC_NPROCESSORS_ONLN) ? SPINS_MAX : 0;
}

static int check_head(const struct shm_area *a, struct err *err)
{
	if (a->rank >= 0 && a->rank < a->world && a->head->world == (uint32_t)a->world)
		return 0;
	return err_set(err, ERR_USAGE, "rank %d of %d: the shared memory is for %u ranks", a->rank, a->world,
		       a->head->world);
}

int shm_area_open(struct shm_area *ret, const struct comm_shm_opts *o, struct err *err)
{
	struct shm_area a = { .fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 0),
			      .rank = o->rank,
			      .world = o->world,
			      .timeout_s = o->timeout_s,
			      .spins = spins_for(o->world) };
	double wait_s = o->timeout_s > 0 && o->timeout_s < OPEN_WAIT_S ? o->timeout_s : OPEN_WAIT_S;
	int rc;

	if (a.fd < 0)
		return err_set_errno(err, errno, "cannot use the job's shared memory");
	rc = map_head(&a, err);
	if (!rc)
		rc = check_head(&a, err);
	if (!rc)
		rc = enter(&a, err);
	if (rc) {
		forget_head(&a);
		close(a.fd);
		return rc;
	}
	rc = wait_all_joined(&a, clock_mono_s() + wait_s, err);
	if (rc) {
		shm_area_close(&a);
		return rc;
	}
	*ret = a;
	return 0;
}

void shm_area_close(struct shm_area *a)
{
	struct shm_rank *own = &a->head->rank[a->rank];

	atomic_store(&own->left, 1);
	shm_area_wake(&own->arrived);
	pthread_mutex_unlock(&own->alive);
	for (int i = 0; i < a->n_regions; i++)
		munmap(a->region[i].base, a->region[i].length_bytes);
	forget_head(a);
	close(a->fd);
}
