/* rank.c: communicators and backend of a rank, as its configuration asks for them. */
#include "trainer/program/rank.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/log.h"

#define SETUP_LIMIT_S 600.0 /* rank 0 may time kernels and read data meanwhile */

struct rank rank_of(const struct run_config *cfg, const struct seat *seat)
{
	return (struct rank){ .cfg = cfg, .seat = seat, .by_rule = cfg->deterministic };
}

bool rank_is_root(const struct rank *r)
{
	return r->seat->rank == 0;
}

struct comm *rank_comm(const struct rank *r)
{
	return r->lane[STREAM_COMPUTE];
}

struct precision rank_precision(const struct rank *r)
{
	switch (r->cfg->precision) {
	case CONFIG_PRECISION_FP64:
		return (struct precision){ DTYPE_F64, DTYPE_F64 };
	case CONFIG_PRECISION_FP16:
		return (struct precision){ DTYPE_F16, DTYPE_F32 };
	case CONFIG_PRECISION_BF16:
		return (struct precision){ DTYPE_BF16, DTYPE_F32 };
	default:
		return (struct precision){ DTYPE_F32, DTYPE_F32 };
	}
}

void rank_env(const struct rank *r, struct kernel_env env[STREAM_COUNT])
{
	for (int s = 0; s < STREAM_COUNT; s++)
		env[s] = (struct kernel_env){ .threads = (int)r->cfg->threads,
					      .deterministic = r->by_rule,
					      .comm = s < SEAT_LANES ? r->lane[s] : NULL,
					      .module = r->module };
}

int rank_meet(struct rank *r, struct err *err)
{
	const struct seat *s = r->seat;
	struct comm_shm_opts o = { .rank = s->rank,
				   .world = s->world,
				   .timeout_s = fmax(SETUP_LIMIT_S, r->cfg->ddp_timeout) };
	int rc = 0;

	for (int i = 0; !rc && i < SEAT_LANES; i++) {
		o.fd = s->lane_fd[i];
		rc = s->world == 1 ? comm_self_open(&r->lane[i], err) : comm_shm_open(&r->lane[i], &o, err);
	}
	return rc;
}

/* What is set for the threads of a backend's libraries before they are loaded. A user's own setting stays. A thread
 * that has spun for long at a barrier is taken for a hog by a busy machine's scheduler, which then keeps it from its
 * partner for whole time slices (a step became 20 times slower); spinning for 10 us costs an idle machine nothing. */
static void set_threads(int threads)
{
	char text[16];

	if (!getenv("OMP_WAIT_POLICY"))
		setenv("GOMP_SPINCOUNT", "1000", 0);
	snprintf(text, sizeof(text), "%d", threads);
	setenv("OMP_NUM_THREADS", text, 1);
	setenv("OMP_DYNAMIC", "false", 0);
}

static int pick_backend(struct rank *r, const struct precision *p, struct err *err)
{
	static const char *const names[] = { "auto", "ref", "cpu", "cuda" };
	struct backend_choice choice;
	const struct backend *b;
	int rc = backend_load(&choice, names[r->cfg->backend], err);

	if (rc)
		return rc;
	b = choice.backend;
	if (r->cfg->backend == CONFIG_BACKEND_AUTO && b->streams) /* device streams are not driven yet */
		rc = backend_load(&choice, "cpu", err);
	if (rc)
		return rc;
	b = choice.backend;
	if (b->takes && !b->takes(p))
		return err_set(err, ERR_USAGE,
			       "backend %s does not compute in %s on this machine; choose another --precision or "
			       "--backend",
			       b->name, dtype_name(p->low));
	r->backend = b;
	return 0;
}

/* Threads of one layer wait for each other: with fewer cores than threads every wait is as long as a time slice. */
static void warn_of_crowding(const struct rank *r)
{
	int cores = config_cores(r->cfg);
	char label[300];

	if (rank_is_root(r) && r->cfg->threads > cores)
		log_warn("%s %lld: there %s %d core%s for each rank; more threads than that make steps slower, not "
			 "faster",
			 config_label(r->cfg, FLAG_threads, label, sizeof(label)), (long long)r->cfg->threads,
			 cores > 1 ? "are" : "is", cores, cores > 1 ? "s" : "");
}

int rank_open_backend(struct rank *r, struct err *err)
{
	struct precision p = rank_precision(r);
	int rc;

	warn_of_crowding(r);
	set_threads((int)r->cfg->threads);
	rc = pick_backend(r, &p, err);
	if (rc)
		return rc;
	return r->backend->open(&(struct backend_opts){ .threads = (int)r->cfg->threads,
							.local_rank = r->seat->local_rank,
							.deterministic = r->by_rule,
							.direct = r->cfg->conv_algo == CONFIG_CONV_DIRECT },
				&r->module, err);
}

void rank_close(struct rank *r)
{
	if (r->module && r->backend->close)
		r->backend->close(r->module);
	for (int i = SEAT_LANES - 1; i >= 0; i--)
		if (r->lane[i])
			r->lane[i]->ops->close(r->lane[i]);
}
