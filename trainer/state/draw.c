/* draw.c: first values, made piece by piece on the host and copied to where the tensor lies. */
#include "trainer/state/draw.h"

#include "trainer/graph/normal.h"
#include "trainer/state/initial.h"

#define PIECE 4096 /* elements */

static double value(const struct init *init, struct rng_key key, int64_t i)
{
	switch (init->kind) {
	case INIT_ONE:
		return 1;
	case INIT_NORMAL:
		return init->scale * rng_normal(key, (uint64_t)i);
	case INIT_UNIFORM:
		return init->scale * (2 * rng_uniform(key, (uint64_t)i) - 1);
	default:
		return 0;
	}
}

static void fill_f64(double *to, int64_t n, const struct init *init, struct rng_key key, int64_t first)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = value(init, key, first + i);
}

static void fill_f32(float *to, int64_t n, const struct init *init, struct rng_key key, int64_t first)
{
	if (init->kind == INIT_NORMAL) {
		normal_fill(to, n, key, (uint64_t)first, init->scale);
		return;
	}
	for (int64_t i = 0; i < n; i++)
		to[i] = (float)value(init, key, first + i);
}

static int draw_tensor(struct prepared *p, const struct tensor *t, uint64_t seed, struct err *err)
{
	struct rng_key key = { seed, rng_stream(t->name) };
	int64_t count = shape_count(&t->shape);
	size_t each = dtype_bytes(t->dtype);
	union {
		double f64[PIECE];
		float f32[PIECE];
	} piece;

	if (t->init.kind == INIT_ZERO)
		return 0;
	if (t->dtype != DTYPE_F64 && t->dtype != DTYPE_F32)
		return err_set(err, ERR_UNSUPPORTED, "%s: no initial values of type %s", t->name, dtype_name(t->dtype));
	for (int64_t at = 0; at < count; at += PIECE) {
		int64_t n = count - at < PIECE ? count - at : PIECE;
		int rc;

		if (t->dtype == DTYPE_F64)
			fill_f64(piece.f64, n, &t->init, key, at);
		else
			fill_f32(piece.f32, n, &t->init, key, at);
		rc = p->opts.backend->copy(p->opts.module, (char *)prepared_address(p, t) + (size_t)at * each, &piece,
					   (size_t)n * each, err);
		if (rc)
			return rc;
	}
	return 0;
}

int draw_values(struct engine *e, struct err *err)
{
	struct prepared *p = &e->prepared;

	for (int i = 0; i < p->n_programs; i++) {
		const struct graph *g = p->program[i]->graph;

		for (int k = 0; k < g->n_tensors; k++) {
			const struct tensor *t = g->tensors[k];
			int rc = 0;

			if (t->life == LIFE_PERSISTENT && !t->base && !initial_gives(e, t) &&
			    (i == 0 || !graph_find(p->program[0]->graph, t->name)))
				rc = draw_tensor(p, t, (uint64_t)e->cfg->seed, err);
			if (rc)
				return rc;
		}
	}
	return 0;
}
