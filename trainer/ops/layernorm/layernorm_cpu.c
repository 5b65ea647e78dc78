/* layernorm_cpu.c: layer normalisation by rows; the gradients of gain and bias are dealt out by columns, so that their
 * sums run in the order of the rows whatever the number of threads. */
#include <math.h>

#include "trainer/backends/cpu/cpu.h"
#include "trainer/ops/cast/float16.h"
#include "trainer/ops/layernorm/layernorm.h"

struct layernorm_state {
	int64_t rows, c;
	int parts;
	bool bf16;
	/* of one run */
	const void *x, *delta, *dy, *skip;
	const float *gamma, *beta, *stats_in;
	void *y, *sum;
	float *stats, *dgamma, *dbeta;
	float *scratch; /* [parts][c]: a row before it is rounded */
};

static int layernorm_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct layernorm_state *s;
	void *state;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ 2, 1 }, &bf16, err);

	if (!rc)
		rc = cpu_state_new(sizeof(*s), &state, err);
	if (rc)
		return rc;
	s = state;
	s->bf16 = bf16;
	s->rows = n->in[0]->shape.dim[0];
	s->c = n->in[0]->shape.dim[1];
	s->parts = cpu_parts(env, s->rows * s->c * 4);
	n->workspace_bytes = (size_t)s->parts * (size_t)s->c * sizeof(float);
	*ret_state = s;
	return 0;
}

static float get(const struct layernorm_state *s, const void *p, int64_t i)
{
	return s->bf16 ? bf16_to_float(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}

static void put(const struct layernorm_state *s, void *p, int64_t i, float v)
{
	if (s->bf16)
		((uint16_t *)p)[i] = bf16_from_float(v);
	else
		((float *)p)[i] = v;
}

static void one_row(const struct layernorm_state *s, int64_t row, float *v)
{
	double sum = 0, squares = 0, mean;
	float rstd;

	for (int64_t i = 0; i < s->c; i++) {
		int64_t at = row * s->c + i;

		v[i] = get(s, s->x, at) + (s->delta ? get(s, s->delta, at) : 0);
		sum += (double)v[i];
		if (s->sum)
			put(s, s->sum, at, v[i]);
	}
	mean = sum / (double)s->c;
	for (int64_t i = 0; i < s->c; i++)
		squares += ((double)v[i] - mean) * ((double)v[i] - mean);
	rstd = (float)(1 / sqrt(squares / (double)s->c + LAYERNORM_EPS));
	s->stats[2 * row] = (float)mean;
	s->stats[2 * row + 1] = rstd;
	for (int64_t i = 0; i < s->c; i++)
		put(s, s->y, row * s->c + i, (v[i] - (float)mean) * rstd * s->gamma[i] + s->beta[i]);
}

static void layernorm_part(void *arg, int part, int parts)
{
	const struct layernorm_state *s = arg;
	struct cpu_range r = cpu_split(s->rows, 1, part, parts);

	for (int64_t row = r.begin; row < r.end; row++)
		one_row(s, row, s->scratch + part * s->c);
}

static int layernorm_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct layernorm_state s = *(const struct layernorm_state *)state;

	(void)err;
	s.x = args->in[0];
	s.delta = args->in[1];
	s.gamma = args->in[2];
	s.beta = args->in[3];
	s.y = args->out[0];
	s.stats = args->out[1];
	s.sum = args->out[2];
	s.scratch = args->workspace;
	cpu_parallel(s.parts, layernorm_part, &s);
	return 0;
}

static int layernorm_grad_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	int rc = layernorm_prepare(env, n, ret_state, err);

	n->workspace_bytes = 0;
	return rc;
}

static void grad_columns(void *arg, int part, int parts)
{
	const struct layernorm_state *s = arg;
	struct cpu_range r = cpu_split(s->c, 16, part, parts);

	for (int64_t i = r.begin; i < r.end; i++) {
		double dgamma = 0, dbeta = 0;

		for (int64_t row = 0; row < s->rows; row++) {
			float dy = get(s, s->dy, row * s->c + i);
			float h = (get(s, s->x, row * s->c + i) - s->stats_in[2 * row]) * s->stats_in[2 * row + 1];

			dgamma += (double)dy * (double)h;
			dbeta += (double)dy;
		}
		s->dgamma[i] = (float)dgamma;
		s->dbeta[i] = (float)dbeta;
	}
}

static void grad_rows(void *arg, int part, int parts)
{
	const struct layernorm_state *s = arg;
	struct cpu_range r = cpu_split(s->rows, 1, part, parts);

	for (int64_t row = r.begin; row < r.end; row++) {
		float mean = s->stats_in[2 * row], rstd = s->stats_in[2 * row + 1];
		double sum_d = 0, sum_dh = 0;
		float mean_d, mean_dh;

		for (int64_t i = 0; i < s->c; i++) {
			float h = (get(s, s->x, row * s->c + i) - mean) * rstd,
			      d = get(s, s->dy, row * s->c + i) * s->gamma[i];

			sum_d += (double)d;
			sum_dh += (double)(d * h);
		}
		mean_d = (float)(sum_d / (double)s->c);
		mean_dh = (float)(sum_dh / (double)s->c);
		for (int64_t i = 0; i < s->c; i++) {
			int64_t at = row * s->c + i;
			float h = (get(s, s->x, at) - mean) * rstd, d = get(s, s->dy, at) * s->gamma[i];

			put(s, s->y, at, rstd * (d - mean_d - h * mean_dh) + (s->skip ? get(s, s->skip, at) : 0));
		}
	}
}

static int layernorm_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct layernorm_state s = *(const struct layernorm_state *)state;

	(void)err;
	s.dy = args->in[0];
	s.x = args->in[1];
	s.stats_in = args->in[2];
	s.gamma = args->in[3];
	s.skip = args->in[4];
	s.y = args->out[0];
	s.dgamma = args->out[1];
	s.dbeta = args->out[2];
	if (s.dgamma)
		cpu_parallel(s.parts, grad_columns, &s);
	cpu_parallel(s.parts, grad_rows, &s); /* may write over dy */
	return 0;
}

extern const struct kernel layernorm_cpu, layernorm_grad_cpu;
const struct kernel layernorm_cpu = { .prepare = layernorm_prepare,
				      .run = layernorm_run,
				      .release = cpu_state_release };
const struct kernel layernorm_grad_cpu = { .prepare = layernorm_grad_prepare,
					   .run = layernorm_grad_run,
					   .release = cpu_state_release };
