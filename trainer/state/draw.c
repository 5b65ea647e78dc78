/* draw.c: draws initial values piece by piece on the host and copies them to the tensor's memory. */
#include "trainer/state/draw.h"

#include "trainer/graph/normal.h"
#include "trainer/state/initial.h"

#define PIECE 4096 /* elements */

static double initial_value(const struct init *init, struct rng_key key, int64_t i)
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
		to[i] = initial_value(init, key, first + i);
}

static void fill_f32(float *to, int64_t n, const struct init *init, struct rng_key key, int64_t first)
{
	if (init->kind == INIT_NORMAL) {
		normal_fill(to, n, key, (uint64_t)first, init->scale);
		return;
	}
	for (int64_t i = 0; i < n; i++)
		to[i] = (float)initial_value(init, key, first + i);
}

/* Draws the part of a tensor that this rank owns. */
static int draw_tensor(const struct tensors *s, const struct tensor *t, uint64_t seed, struct err *err)
{
	const struct strategy_part held = tensors_held(s, t, s->comm->rank);
	struct rng_key key = { seed, rng_stream(t->name) };
	union {
		double f64[PIECE];
		float f32[PIECE];
	} piece;
	int rc = 0;

	if (t->init.kind == INIT_ZERO)
		return 0;
	if (t->dtype != DTYPE_F64 && t->dtype != DTYPE_F32)
		return err_set(err, ERR_UNSUPPORTED, "%s: no initial values of type %s", t->name, dtype_name(t->dtype));
	for (int64_t at = held.begin; !rc && at < held.end; at += PIECE) {
		int64_t n = held.end - at < PIECE ? held.end - at : PIECE;

		if (t->dtype == DTYPE_F64)
			fill_f64(piece.f64, n, &t->init, key, at);
		else
			fill_f32(piece.f32, n, &t->init, key, at);
		rc = tensors_put(s, t, (struct strategy_part){ at, at + n }, &piece, err);
	}
	return rc;
}

int draw_values(const struct tensors *s, const struct run_config *cfg, const struct model *m, struct err *err)
{
	int at = 0;
	const struct tensor *t;
	int rc = 0;

	while (!rc && (t = prepared_next(s->prepared, &at)))
		if (!initial_gives(cfg, m, t))
			rc = draw_tensor(s, t, (uint64_t)cfg->seed, err);
	return rc;
}
