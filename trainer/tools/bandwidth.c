/* SPDX-License-Identifier: Apache-2.0 */
/* bandwidth.c: times each collective on memory of the communicator, where gradients are too. The slowest rank's time
 * counts. */
#include "trainer/tools/subcommands.h"

#include <stdlib.h>

#include "tracker/base/json_print.h"
#include "tracker/mem/mem.h"
#include "trainer/tools/child.h"

#define LEAST_S 0.1 /* duration of each measurement */
#define ROUNDS_MOST 2000

static const size_t sizes[] = { 1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22, 25000000, 1 << 26 };

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

struct bandwidth_probe {
	struct comm *comm;
	unsigned char *data; /* buffer of the largest size */
	size_t bytes;	     /* size of this measurement: the whole buffer of a rank */
};

static int run_allreduce(const struct bandwidth_probe *m, struct err *err)
{
	return m->comm->ops->allreduce(m->comm, m->data, (int64_t)(m->bytes / 4), DTYPE_F32, err);
}

static int run_reduce_scatter(const struct bandwidth_probe *m, struct err *err)
{
	return m->comm->ops->reduce_scatter(m->comm, m->data, (int64_t)(m->bytes / 4 / (size_t)m->comm->world),
					    DTYPE_F32, err);
}

static int run_all_gather(const struct bandwidth_probe *m, struct err *err)
{
	return m->comm->ops->all_gather(m->comm, m->data, (int64_t)(m->bytes / (size_t)m->comm->world), err);
}

static int run_broadcast(const struct bandwidth_probe *m, struct err *err)
{
	return m->comm->ops->broadcast(m->comm, m->data, m->bytes, 0, err);
}

/* Sends from the first rank to the last and back. */
static int run_send_and_back(const struct bandwidth_probe *m, struct err *err)
{
	struct comm *c = m->comm;
	int last = c->world - 1, rc = 0;

	if (c->rank == 0)
		rc = c->ops->send(c, m->data, m->bytes, last, err);
	if (!rc && c->rank == last)
		rc = c->ops->recv(c, m->data, m->bytes, 0, err);
	if (!rc && c->rank == last)
		rc = c->ops->send(c, m->data, m->bytes, 0, err);
	if (!rc && c->rank == 0)
		rc = c->ops->recv(c, m->data, m->bytes, last, err);
	return rc;
}

static int run_barrier(const struct bandwidth_probe *m, struct err *err)
{
	return m->comm->ops->barrier(m->comm, err);
}

/* The lower bound of the bytes that a rank sends, as a share of the whole, by number of ranks. */
static double share_allreduce(double n)
{
	return 2 * (n - 1) / n;
}

static double share_part(double n)
{
	return (n - 1) / n;
}

static double share_whole(double n)
{
	(void)n;
	return 1;
}

static double share_exchange(double n)
{
	(void)n;
	return 2;
}

static const struct {
	const char *name;
	int (*run)(const struct bandwidth_probe *m, struct err *err);
	double (*share)(double ranks); /* NULL: sends no bytes */
} collectives[] = {
	{ "all-reduce", run_allreduce, share_allreduce },	{ "reduce-scatter", run_reduce_scatter, share_part },
	{ "all-gather", run_all_gather, share_part },		{ "broadcast", run_broadcast, share_whole },
	{ "send and back", run_send_and_back, share_exchange }, { "barrier", run_barrier, NULL },
};

#define COLLECTIVES (sizeof(collectives) / sizeof(collectives[0]))

struct bandwidth_row {
	const char *name;
	size_t bytes;
	double seconds; /* time of one call on the slowest rank */
	double rate;	/* lower bound of the bytes per second that a rank sends; 0: none */
};

static int time_rounds(const struct bandwidth_probe *m, size_t which, int rounds, double *ret_s, struct err *err)
{
	struct comm *c = m->comm;
	double *all = mem_array((size_t)c->world, sizeof(*all)), start_s;
	int rc = c->ops->barrier(c, err);

	start_s = clock_mono_s();
	for (int i = 0; !rc && i < rounds; i++)
		rc = collectives[which].run(m, err);
	if (!rc) {
		all[c->rank] = (clock_mono_s() - start_s) / rounds;
		rc = c->ops->all_gather(c, all, sizeof(*all), err);
	}
	*ret_s = 0;
	for (int r = 0; !rc && r < c->world; r++)
		*ret_s = all[r] > *ret_s ? all[r] : *ret_s;
	free(all);
	return rc;
}

/* Times one round, and more rounds if it is shorter than LEAST_S. All ranks use the slowest rank's time, so they
 * agree. */
static int measure_collective(const struct bandwidth_probe *m, size_t which, struct bandwidth_row *ret, struct err *err)
{
	double s;
	int rc = time_rounds(m, which, 1, &s, err);

	if (rc)
		return rc;
	if (s < LEAST_S)
		rc = time_rounds(m, which, LEAST_S / s < ROUNDS_MOST ? (int)(LEAST_S / s) + 1 : ROUNDS_MOST, &s, err);
	*ret = (struct bandwidth_row){ .name = collectives[which].name, .bytes = m->bytes, .seconds = s };
	if (collectives[which].share)
		ret->rate = collectives[which].share(m->comm->world) * (double)m->bytes / s;
	return rc;
}

static int measure_collectives(struct comm *c, struct bandwidth_row *rows, size_t *ret_n, struct err *err)
{
	struct bandwidth_probe m = { .comm = c };
	void *data;
	int rc = c->ops->alloc(c, sizes[SIZES - 1], &data, err);

	*ret_n = 0;
	m.data = data;
	for (size_t k = 0; !rc && k < COLLECTIVES; k++)
		for (size_t i = 0; !rc && i < (collectives[k].share ? SIZES : 1); i++) {
			m.bytes = collectives[k].share ? sizes[i] : 0;
			rc = measure_collective(&m, k, &rows[*ret_n], err);
			*ret_n += !rc;
		}
	return rc;
}

static void print_bandwidth_rows(const struct rank *r, const struct bandwidth_row *rows, size_t n)
{
	printf("%d ranks on %d machine%s, %s\n", r->context->world, r->context->nodes, r->context->nodes > 1 ? "s" : "",
	       rank_transport(r));
	printf("  %-16s %12s %12s %10s\n", "", "bytes", "us", "GB/s sent");
	for (size_t i = 0; i < n; i++) {
		printf("  %-16s %12zu %12.1f", rows[i].name, rows[i].bytes, 1e6 * rows[i].seconds);
		if (rows[i].rate > 0)
			printf(" %10.3f", 1e-9 * rows[i].rate);
		putchar('\n');
	}
}

static void print_bandwidth_json(const struct rank *r, const struct bandwidth_row *rows, size_t n)
{
	json_t *o = json_object(), *list = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *j = json_object();

		json_object_set_new(j, "collective", json_string(rows[i].name));
		json_object_set_new(j, "bytes", json_integer((json_int_t)rows[i].bytes));
		json_object_set_new(j, "seconds", real_or_null(rows[i].seconds));
		json_object_set_new(j, "sent_gbs", rows[i].rate > 0 ? json_real(1e-9 * rows[i].rate) : json_null());
		json_array_append_new(list, j);
	}
	json_object_set_new(o, "ranks", json_integer(r->context->world));
	json_object_set_new(o, "nodes", json_integer(r->context->nodes));
	json_object_set_new(o, "transport", json_string(rank_transport(r)));
	json_object_set_new(o, "collectives", list);
	json_print(o, JSON_PRINT_PAGE);
}

int bandwidth_main(const struct job *job, struct rank_context *context)
{
	struct rank r = rank_of(job->cfg, context);
	struct bandwidth_row rows[COLLECTIVES * SIZES];
	struct err err = ERR_INIT;
	size_t n = 0;
	int rc, code = 0;

	if (context->world == 1)
		rc = err_set(&err, ERR_USAGE, "--bandwidth: needs two ranks: add --nproc-per-node 2");
	else
		rc = rank_meet(&r, &err);
	if (!rc)
		rc = measure_collectives(rank_comm(&r), rows, &n, &err);
	if (!rc && rank_is_root(&r)) {
		if (job->cfg->json)
			print_bandwidth_json(&r, rows, n);
		else
			print_bandwidth_rows(&r, rows, n);
	}
	if (rc)
		code = rank_context_fail(context, &err);
	rank_close(&r);
	return code;
}
