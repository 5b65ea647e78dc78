/* SPDX-License-Identifier: Apache-2.0 */
/* shm_area.c: mapping, rendezvous, waiting and the detection of dead ranks. */
#include "trainer/comm/shm_area.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/round.h"

#define NAP_S 0.05
#define NAP_MOST_S 1.0	  /* a longer nap counts as this: after ctrl-Z and fg the other ranks were not late */
#define OPEN_WAIT_S 120.0 /* longest wait for the other ranks to start */
#define SPINS_MAX 2000

static size_t head_bytes(int world)
{
	return round_up_bytes(sizeof(struct shm_head) + (size_t)world * sizeof(struct shm_rank), 4096);
}

static size_t area_bytes(int world)
{
	return round_up_bytes(head_bytes(world) + (size_t)world * SHM_STAGE_BYTES +
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

int shm_area_number(const struct shm_area *a, int r)
{
	return a->root->first + a->root_rank[r];
}

static void futex_wait(_Atomic uint32_t *word, uint32_t seen, double seconds)
{
	struct timespec t = { .tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };

	syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

static void shm_area_wake(struct shm_count *c)
{
	syscall(SYS_futex, &c->value, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void shm_area_count(struct shm_count *c)
{
	atomic_fetch_add(&c->value, 1);
	if (atomic_load(&c->sleepers))
		shm_area_wake(c);
}

static void wake_all_ranks(struct shm_area *a)
{
	shm_area_wake(&a->head->met);
	for (int r = 0; r < a->world; r++)
		for (int to = 0; to < a->world; to++) {
			struct shm_mail *m = shm_area_mail(a, r, to);

			if (atomic_load(&m->sent.sleepers) || atomic_load(&m->taken.sleepers)) {
				shm_area_wake(&m->sent);
				shm_area_wake(&m->taken);
			}
		}
}

/* Aborts the whole job: other groups see it in the root at their next check. */
void shm_area_abort(struct shm_area *a, int culprit)
{
	int32_t none = -1;

	if (culprit >= 0)
		atomic_compare_exchange_strong(&a->root->head->culprit, &none, a->root_rank[culprit]);
	atomic_store(&a->root->head->aborted, 1);
	wake_all_ranks(a);
	if (a->root != a)
		wake_all_ranks(a->root);
}

/* A rank that has joined but does not hold its mutex has died. */
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

int shm_area_check(struct shm_area *a, struct err *err)
{
	const struct shm_head *job = a->root->head;
	int culprit;

	if (!atomic_load(&job->aborted)) {
		for (int r = 0; r < a->world; r++)
			if (rank_died(a, r))
				shm_area_abort(a, r);
	}
	if (!atomic_load(&job->aborted))
		return 0;
	culprit = atomic_load(&job->culprit);
	if (culprit >= 0)
		return err_set(err, ERR_PEER, "rank %d died", a->root->first + culprit);
	return err_set(err, ERR_PEER, "the job was aborted by another rank");
}

/* Returns the first rank after this one that has not arrived at the meeting; -1: none. */
static int first_late_rank(const struct shm_area *a)
{
	for (int i = 1; i < a->world; i++) {
		int r = (a->rank + i) % a->world;

		if ((int32_t)(atomic_load(&a->head->rank[r].arrived) - a->meeting) < 0)
			return r;
	}
	return -1;
}

/* Fails when an awaited rank (on; -1: any that is late) has left without the awaited change. */
static int check_ended_rank(struct shm_area *a, const struct shm_count *c, uint32_t seen, int on, struct err *err)
{
	for (int r = 0; r < a->world; r++) {
		const struct shm_rank *peer = &a->head->rank[r];
		bool meant = on < 0 ? (int32_t)(atomic_load(&peer->arrived) - a->meeting) < 0 : r == on;

		if (meant && atomic_load(&peer->left) && atomic_load(&c->value) == seen)
			return err_set(err, ERR_PEER, "rank %d has already ended", shm_area_number(a, r));
	}
	return 0;
}

/* Fails because rank `on` (-1: the first that is late) exceeded the time limit. */
static int fail_late_rank(const struct shm_area *a, int on, struct err *err)
{
	const char *what = shm_area_call(a, a->rank)->what;
	int late = on < 0 ? first_late_rank(a) : on;

	return err_set(err, ERR_PEER, "rank %d did not arrive at meeting %u (%s) within %.0f s",
		       shm_area_number(a, late < 0 ? a->rank : late), a->meeting, what ? what : "start", a->timeout_s);
}

static void pause_cpu(void)
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
		pause_cpu();
	}
	while (atomic_load(&c->value) == seen) {
		double nap_s = clock_mono_s();

		rc = shm_area_check(a, err);
		if (!rc)
			rc = check_ended_rank(a, c, seen, on, err);
		if (rc)
			return rc;
		if (a->timeout_s > 0 && waited_s > a->timeout_s)
			return fail_late_rank(a, on, err);
		atomic_fetch_add(&c->sleepers, 1);
		futex_wait(&c->value, seen, NAP_S);
		atomic_fetch_sub(&c->sleepers, 1);
		if (a->idle_fn)
			a->idle_fn(a->idle_user);
		nap_s = clock_mono_s() - nap_s;
		waited_s += nap_s < NAP_MOST_S ? nap_s : NAP_MOST_S;
	}
	return 0;
}

/* Called by the last rank that arrives. */
static void complete_meeting(struct shm_area *a, uint32_t goal)
{
	struct shm_count *met = &a->head->met;

	atomic_store(&met->value, goal);
	if (atomic_load(&met->sleepers))
		shm_area_wake(met);
}

int shm_area_meet(struct shm_area *a, const struct shm_call *call, struct err *err)
{
	struct shm_rank *own = &a->head->rank[a->rank];
	struct shm_count *met = &a->head->met;
	uint32_t goal = ++a->meeting;
	int rc = 0;

	if (call)
		own->call[goal & 1] = *call;
	if (atomic_load(&a->root->head->aborted))
		rc = shm_area_check(a, err);
	if (rc)
		return rc;
	atomic_store(&own->arrived, goal);
	if (atomic_fetch_add(&a->head->come, 1) + 1 == goal * (uint32_t)a->world) {
		complete_meeting(a, goal);
		return 0;
	}
	for (;;) {
		uint32_t seen = atomic_load_explicit(&met->value, memory_order_acquire);

		if ((int32_t)(seen - goal) >= 0)
			return 0;
		rc = shm_area_wait(a, met, seen, -1, err);
		if (rc)
			return rc;
	}
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

/* Returns the longest part that a rank requested in this meeting: the stride between the parts. */
static size_t longest_part(const struct shm_area *a)
{
	int64_t most = 0;

	for (int r = 0; r < a->world; r++)
		if (shm_area_call(a, r)->count > most)
			most = shm_area_call(a, r)->count;
	return (size_t)most;
}

static int first_without_part(const struct shm_area *a)
{
	for (int r = 0; r < a->world; r++)
		if (a->head->rank[r].grow_errno)
			return r;
	return -1;
}

/* Every rank allocates only its own part, with the size that it requested. The gaps between the parts are never
 * allocated. */
int shm_area_grow(struct shm_area *a, size_t bytes, int *ret_region, struct err *err)
{
	size_t own = round_up_bytes(bytes ? bytes : 1, 4096), each, at;
	int rc, without;

	if (a->root != a)
		return err_set(err, ERR_UNSUPPORTED, "a group cannot allocate communication buffers");
	if (a->n_regions == SHM_REGIONS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d communication buffers", SHM_REGIONS_MAX);
	rc = shm_area_meet(a, &(struct shm_call){ .what = "alloc", .op = UINT32_MAX, .count = (int64_t)own }, err);
	if (rc)
		return rc;
	each = longest_part(a);
	at = a->head->size_bytes;
	a->head->rank[a->rank].grow_errno = posix_fallocate(a->fd, (off_t)(at + each * (size_t)a->rank), (off_t)own);
	rc = shm_area_meet(a, NULL, err); /* all ranks have read the size */
	if (rc)
		return rc;
	without = first_without_part(a);
	if (without >= 0)
		return err_set_errno(err, a->head->rank[without].grow_errno, "cannot get %zu bytes of shared memory",
				     each * (size_t)a->world);
	if (a->rank == 0)
		a->head->size_bytes = at + each * (size_t)a->world;
	if (a->rank == 0 && ftruncate(a->fd, (off_t)a->head->size_bytes))
		a->head->grow_errno = errno;
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

/* at: offset of the area in the file. */
static int map_head(struct shm_area *a, size_t at, struct err *err)
{
	size_t bytes = area_bytes(a->world);
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, (off_t)at);

	if (p == MAP_FAILED)
		return err_set_errno(err, errno, "cannot map %zu bytes of shared memory", bytes);
	a->head = p;
	a->mapped_bytes = bytes;
	return 0;
}

static void unmap_head(struct shm_area *a)
{
	if (a->head)
		munmap(a->head, a->mapped_bytes);
	a->head = NULL;
}

/* Makes an area at the end of the file, which is zero from there on. */
static int fill_head(int fd, size_t at, int world, struct err *err)
{
	struct shm_area a = { .fd = fd, .world = world };
	size_t bytes = area_bytes(world);
	int rc = ftruncate(fd, (off_t)(at + bytes)) ? errno : 0;

	if (!rc) /* stages too: memory that every step writes must not turn out to be missing */
		rc = posix_fallocate(fd, (off_t)at, (off_t)(head_bytes(world) + (size_t)world * SHM_STAGE_BYTES));
	if (rc)
		return err_set_errno(err, rc, "cannot get %zu bytes of shared memory", bytes);
	rc = map_head(&a, at, err);
	if (rc)
		return rc;
	a.head->world = (uint32_t)world;
	a.head->size_bytes = bytes;
	atomic_store(&a.head->culprit, -1);
	for (int r = 0; !rc && r < world; r++)
		if (init_alive(&a.head->rank[r].alive))
			rc = err_set(err, ERR_UNSUPPORTED, "robust mutexes are not available");
	unmap_head(&a);
	return rc;
}

int comm_shm_make(int *ret_fd, int world, struct err *err)
{
	int fd, rc;

	if (world < 1 || world > SHM_WORLD_MAX)
		return err_set(err, ERR_USAGE, "%d ranks: shared memory supports 1 to %d", world, SHM_WORLD_MAX);
	fd = memfd_create("dptrain", MFD_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, errno, "cannot create shared memory");
	rc = fill_head(fd, 0, world, err);
	if (rc) {
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

static int claim_rank(struct shm_area *a, struct err *err)
{
	struct shm_rank *own = &a->head->rank[a->rank];
	struct shm_count *joined = &a->head->joined;

	if (pthread_mutex_trylock(&own->alive) || atomic_exchange(&own->joined, 1))
		return err_set(err, ERR_EXISTS, "two processes claim rank %d of the job", shm_area_number(a, a->rank));
	if (atomic_fetch_add(&joined->value, 1) + 1 == (uint32_t)a->world)
		shm_area_wake(joined);
	return 0;
}

static int first_unjoined_rank(const struct shm_area *a)
{
	for (int r = 0; r < a->world; r++)
		if (!atomic_load(&a->head->rank[r].joined))
			return r;
	return -1;
}

static int wait_all_joined(struct shm_area *a, double until_s, struct err *err)
{
	struct shm_count *joined = &a->head->joined;
	uint32_t seen;

	while ((seen = atomic_load(&joined->value)) < (uint32_t)a->world) {
		int rc = shm_area_check(a, err);

		if (rc)
			return rc;
		if (clock_mono_s() > until_s)
			return err_set(err, ERR_PEER, "rank %d of %d did not start in time",
				       shm_area_number(a, first_unjoined_rank(a)), a->world);
		futex_wait(&joined->value, seen, NAP_S);
	}
	return 0;
}

static int choose_spin_count(int world)
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

static void leave_area(struct shm_area *a)
{
	struct shm_rank *own = &a->head->rank[a->rank];

	atomic_store(&own->left, 1);
	shm_area_wake(&a->head->met);
	pthread_mutex_unlock(&own->alive);
	unmap_head(a);
}

/* Joins the area at that offset of the file and waits for the other ranks. On failure nothing is mapped. */
static int join_area(struct shm_area *a, size_t at, struct err *err)
{
	double wait_s = a->timeout_s > 0 && a->timeout_s < OPEN_WAIT_S ? a->timeout_s : OPEN_WAIT_S;
	int rc = map_head(a, at, err);

	if (!rc)
		rc = check_head(a, err);
	if (!rc)
		rc = claim_rank(a, err);
	if (rc) {
		unmap_head(a);
		return rc;
	}
	rc = wait_all_joined(a, clock_mono_s() + wait_s, err);
	if (rc)
		leave_area(a);
	return rc;
}

int shm_area_open(struct shm_area *ret, const struct comm_shm_opts *o, struct err *err)
{
	int rc;

	*ret = (struct shm_area){ .fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 0),
				  .root = ret,
				  .rank = o->rank,
				  .world = o->world,
				  .first = o->first,
				  .timeout_s = o->timeout_s,
				  .spins = choose_spin_count(o->world) };
	if (ret->fd < 0)
		return err_set_errno(err, errno, "cannot use the job's shared memory");
	for (int r = 0; r < SHM_WORLD_MAX; r++)
		ret->root_rank[r] = r;
	rc = join_area(ret, 0, err);
	if (rc)
		close(ret->fd);
	return rc;
}

/* Groups by color, in the order of their first ranks. Their areas begin at at[] in the file. */
struct shm_groups {
	int first[SHM_WORLD_MAX], world[SHM_WORLD_MAX]; /* first rank and number of ranks of each group */
	size_t at[SHM_WORLD_MAX], end;
	int n, own; /* own: index of this rank's; -1 none */
};

static int color_of(const struct shm_area *a, int r)
{
	return (int)shm_area_call(a, r)->count;
}

static void find_groups(struct shm_groups *g, const struct shm_area *root, size_t at)
{
	*g = (struct shm_groups){ .own = -1 };
	for (int r = 0; r < root->world; r++) {
		int i = 0;

		if (color_of(root, r) < 0)
			continue;
		while (i < g->n && color_of(root, g->first[i]) != color_of(root, r))
			i++;
		if (i == g->n)
			g->first[g->n++] = r;
		g->world[i]++;
		if (r == root->rank)
			g->own = i;
	}
	for (int i = 0; i < g->n; i++) {
		g->at[i] = at;
		at += area_bytes(g->world[i]);
	}
	g->end = at;
}

static void list_members(struct shm_area *ret, const struct shm_area *root, int color)
{
	for (int r = 0; r < root->world; r++)
		if (color_of(root, r) == color) {
			ret->rank = r == root->rank ? ret->world : ret->rank;
			ret->root_rank[ret->world++] = r;
		}
}

static int fill_groups(const struct shm_area *root, const struct shm_groups *g, struct err *err)
{
	int rc = 0;

	for (int i = 0; !rc && i < g->n; i++)
		rc = fill_head(root->fd, g->at[i], g->world[i], err);
	root->head->size_bytes = g->end;
	return rc;
}

int shm_area_split(struct shm_area *ret, struct shm_area *root, int color, bool *ret_in, struct err *err)
{
	struct shm_call call = { .what = "split", .op = UINT32_MAX - 1, .count = color };
	struct shm_groups g;
	int rc = shm_area_meet(root, &call, err);

	if (rc)
		return rc;
	find_groups(&g, root, root->head->size_bytes);
	*ret = (struct shm_area){ .fd = root->fd, .root = root, .timeout_s = root->timeout_s, .spins = root->spins };
	list_members(ret, root, color);
	rc = shm_area_meet(root, NULL, err); /* all ranks have read the size */
	if (!rc && root->rank == 0)
		rc = fill_groups(root, &g, err);
	if (rc) {
		shm_area_abort(root, -1);
		return rc;
	}
	rc = shm_area_meet(root, NULL, err);
	*ret_in = g.own >= 0;
	return rc || g.own < 0 ? rc : join_area(ret, g.at[g.own], err);
}

void shm_area_close(struct shm_area *a)
{
	for (int i = 0; i < a->n_regions; i++)
		munmap(a->region[i].base, a->region[i].length_bytes);
	leave_area(a);
	if (a->root == a)
		close(a->fd);
}
