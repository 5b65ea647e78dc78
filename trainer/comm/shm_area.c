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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tracker/base/clock.h"

#define SHM_READY 0x64707431u
#define NAP_S 0.05
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

void shm_area_wake(_Atomic uint32_t *word, _Atomic uint32_t *sleepers)
{
	if (!sleepers || atomic_load(sleepers))
		syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void shm_area_abort(struct shm_area *a, int culprit)
{
	int32_t nobody = -1;

	if (culprit >= 0)
		atomic_compare_exchange_strong(&a->head->culprit, &nobody, culprit);
	atomic_store(&a->head->aborted, 1);
	for (int r = 0; r < a->world; r++) {
		shm_area_wake(&a->head->rank[r].arrived, NULL);
		for (int to = 0; to < a->world; to++) {
			struct shm_mail *m = shm_area_mail(a, r, to);

			if (atomic_load(&m->sent_sleepers) || atomic_load(&m->taken_sleepers)) {
				shm_area_wake(&m->sent, NULL);
				shm_area_wake(&m->taken, NULL);
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
static int check_left(struct shm_area *a, _Atomic uint32_t *word, uint32_t seen, int on, struct err *err)
{
	if (!atomic_load(&a->head->rank[on].left) || atomic_load(word) != seen)
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

int shm_area_wait(struct shm_area *a, _Atomic uint32_t *word, _Atomic uint32_t *sleepers, uint32_t seen, int on,
		  struct err *err)
{
	double start = 0;
	int rc;

	for (int i = 0; i < a->spins; i++) {
		if (atomic_load_explicit(word, memory_order_acquire) != seen)
			return 0;
		relax();
	}
	while (atomic_load(word) == seen) {
		rc = check_peers(a, err);
		if (!rc)
			rc = check_left(a, word, seen, on, err);
		if (rc)
			return rc;
		if (start == 0)
			start = clock_mono_s();
		if (a->timeout_s > 0 && clock_mono_s() - start > a->timeout_s)
			return err_set(err, ERR_PEER, "rank %d did not come to meeting %u (%s) within %.0f s", on,
				       a->meeting,
				       shm_area_call(a, a->rank)->what ? shm_area_call(a, a->rank)->what : "start",
				       a->timeout_s);
		atomic_fetch_add(sleepers, 1);
		futex_wait(word, seen, NAP_S);
		atomic_fetch_sub(sleepers, 1);
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
	atomic_store(&own->arrived, goal);
	shm_area_wake(&own->arrived, &own->sleepers);
	for (int i = 1; i < a->world; i++) {
		int r = (a->rank + i) % a->world;
		struct shm_rank *peer = &a->head->rank[r];

		for (;;) {
			uint32_t seen = atomic_load_explicit(&peer->arrived, memory_order_acquire);
			int rc;

			if ((int32_t)(seen - goal) >= 0)
				break;
			rc = shm_area_wait(a, &peer->arrived, &peer->sleepers, seen, r, err);
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
		return err_set_errno(err, a->head->grow_errno, "cannot get %zu bytes of shared memory for %d ranks",
				     each, a->world);
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

/* Rank 0's part: the file is new and all zero. */
static int make_head(struct shm_area *a, struct err *err)
{
	size_t bytes = area_bytes(a->world);
	int rc;

	if (ftruncate(a->fd, (off_t)bytes))
		return err_set_errno(err, errno, "cannot make %zu bytes of shared memory", bytes);
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
	atomic_store(&a->head->ready, SHM_READY);
	return 0;
}

static bool head_is_ready(struct shm_area *a, struct err *err)
{
	struct stat st;

	if (fstat(a->fd, &st) || (size_t)st.st_size < area_bytes(a->world))
		return false;
	if (!a->head && map_head(a, err))
		return false;
	return atomic_load(&a->head->ready) == SHM_READY && a->head->world == (uint32_t)a->world;
}

static void forget_head(struct shm_area *a)
{
	if (a->head)
		munmap(a->head, a->mapped_bytes);
	a->head = NULL;
}

static int enter(struct shm_area *a, struct err *err)
{
	struct shm_rank *own = &a->head->rank[a->rank];

	if (pthread_mutex_lock(&own->alive) || atomic_exchange(&own->joined, 1))
		return err_set(err, ERR_EXISTS, "two processes claim rank %d of the job", a->rank);
	return 0;
}

static bool all_joined(const struct shm_area *a)
{
	for (int r = 0; r < a->world; r++)
		if (!atomic_load(&a->head->rank[r].joined))
			return false;
	return true;
}

static int first_missing(const struct shm_area *a)
{
	for (int r = 0; r < a->world; r++)
		if (!atomic_load(&a->head->rank[r].joined))
			return r;
	return -1;
}

/* Whether the name stands for another object than the one that is open: ours is what a crashed job left behind. */
static bool replaced(const struct shm_area *a, const char *name)
{
	struct stat now, ours;
	int fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);
	bool other;

	if (fd < 0)
		return !atomic_load(&a->head->go);
	other = !fstat(fd, &now) && !fstat(a->fd, &ours) && (now.st_ino != ours.st_ino || now.st_dev != ours.st_dev);
	close(fd);
	return other;
}

static int wait_all_joined(struct shm_area *a, double until, const char *unlink_name, struct err *err)
{
	while (!all_joined(a)) {
		int rc = check_peers(a, err);

		if (rc)
			return rc;
		if (clock_mono_s() > until)
			return err_set(err, ERR_PEER, "rank %d of %d did not start in time", first_missing(a),
				       a->world);
		clock_sleep_s(0.0005);
	}
	if (a->rank == 0) {
		if (unlink_name)
			shm_unlink(unlink_name);
		atomic_store(&a->head->go, 1);
	}
	return 0;
}

/* Rank 0 with a name: whatever bears it is a crashed job's. */
static int create_named(struct shm_area *a, const char *name, struct err *err)
{
	shm_unlink(name);
	a->fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (a->fd < 0)
		return err_set_errno(err, errno, "cannot make shared memory %s", name);
	return make_head(a, err);
}

static int join_named(struct shm_area *a, const char *name, double until, struct err *err)
{
	bool in = false;

	for (;;) {
		if (a->fd < 0)
			a->fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);
		if (a->fd >= 0 && head_is_ready(a, err)) {
			if (!in && enter(a, err))
				return err->code;
			in = true;
			if (atomic_load(&a->head->go))
				return 0;
		}
		if (clock_mono_s() > until)
			return err_set(err, ERR_PEER, "rank 0 did not open the job's shared memory %s in time", name);
		clock_sleep_s(in ? 0.002 : 0.01);
		if (a->fd >= 0 && (!a->head || !atomic_load(&a->head->go)) && replaced(a, name)) {
			if (in)
				pthread_mutex_unlock(&a->head->rank[a->rank].alive);
			in = false;
			forget_head(a);
			close(a->fd);
			a->fd = -1;
		}
	}
}

/* The launcher's memory, inherited: rank 0 initialises it, the others wait for that. */
static int join_inherited(struct shm_area *a, double until, struct err *err)
{
	if (a->rank == 0)
		return make_head(a, err);
	while (!head_is_ready(a, err)) {
		if (clock_mono_s() > until)
			return err_set(err, ERR_PEER, "rank 0 did not start in time");
		clock_sleep_s(0.0005);
	}
	return 0;
}

static int spins_for(int world)
{
	return world <= sysconf(_SC_NPROCESSORS_ONLN) ? SPINS_MAX : 0;
}

int shm_area_open(struct shm_area *ret, const struct comm_shm_opts *o, struct err *err)
{
	struct shm_area a = {
		.fd = -1, .rank = o->rank, .world = o->world, .timeout_s = o->timeout_s, .spins = spins_for(o->world)
	};
	double until = clock_mono_s() + (o->timeout_s > 0 && o->timeout_s < OPEN_WAIT_S ? o->timeout_s : OPEN_WAIT_S);
	struct err quiet = ERR_INIT;
	char name[128];
	bool named = o->fd < 0;
	int rc;

	if (o->world < 1 || o->world > SHM_WORLD_MAX || o->rank < 0 || o->rank >= o->world)
		return err_set(err, ERR_USAGE, "rank %d of %d: shared memory takes 1 to %d ranks", o->rank, o->world,
			       SHM_WORLD_MAX);
	snprintf(name, sizeof(name), "/dptrain-%s", o->name ? o->name : "job");
	if (!err)
		err = &quiet;
	if (!named)
		a.fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
	if (!named && a.fd < 0)
		return err_set_errno(err, errno, "cannot use the launcher's shared memory");
	if (!named)
		rc = join_inherited(&a, until, err);
	else
		rc = a.rank == 0 ? create_named(&a, name, err) : join_named(&a, name, until, err);
	if (!rc && (!named || a.rank == 0))
		rc = enter(&a, err);
	if (!rc)
		rc = wait_all_joined(&a, until, named ? name : NULL, err);
	if (rc) {
		if (named && a.rank == 0)
			shm_unlink(name);
		if (a.head)
			shm_area_close(&a);
		else if (a.fd >= 0)
			close(a.fd);
		return rc;
	}
	*ret = a;
	return 0;
}

void shm_area_close(struct shm_area *a)
{
	struct shm_rank *own = &a->head->rank[a->rank];

	atomic_store(&own->left, 1);
	shm_area_wake(&own->arrived, NULL);
	pthread_mutex_unlock(&own->alive);
	for (int i = 0; i < a->n_regions; i++)
		munmap(a->region[i].base, a->region[i].length_bytes);
	forget_head(a);
	close(a->fd);
}
