/* attention_cpu.c: causal attention; each head of each sequence is one thread's. */
#include <math.h>

#include "trainer/backends/cpu/cpu.h"
#include "trainer/ops/attention/attention.h"
#include "trainer/ops/cast/float16.h"

struct attention_state {
	const struct attention_attr *attr;
	int64_t n_heads; /* of all sequences */
	int64_t c, d, seq, heads;
	int parts;
	bool bf16;
	/* of one run */
	struct dropout_draw draw;
	const void *qkv, *y_in, *dy;
	const float *lse_in;
	void *y, *dqkv;
	float *lse;
	float *scratch; /* of each part: five matrices [seq][d], two vectors [seq] */
};

/* One head's operands as floats, in the part's scratch. */
struct head {
	float *q, *k, *v, *a, *b, *score, *mask;
	int64_t row, at, first;
};

static size_t scratch_floats(const struct attention_state *s)
{
	return (size_t)(s->seq * (5 * s->d + 2));
}

/* n_low: inputs of the low type. */
static int attention_new(const struct kernel_env *env, struct node *n, int n_low, void **ret_state, struct err *err)
{
	const struct tensor *qkv = n->in[n_low > 1];
	struct attention_state *s;
	void *state;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ n_low, 1 }, &bf16, err);

	if (!rc)
		rc = cpu_state_new(sizeof(*s), &state, err);
	if (rc)
		return rc;
	s = state;
	s->bf16 = bf16;
	s->attr = n->attr;
	s->heads = s->attr->heads;
	s->seq = s->attr->seq;
	s->c = qkv->shape.dim[1] / 3;
	s->d = s->c / s->heads;
	s->n_heads = qkv->shape.dim[0] / s->seq * s->heads;
	s->parts = cpu_parts(env, s->n_heads * s->seq * s->seq * s->d);
	n->workspace_bytes = (size_t)s->parts * scratch_floats(s) * sizeof(float);
	*ret_state = s;
	return 0;
}

static void load(const struct attention_state *s, const void *from, int64_t stride, int64_t at, float *to)
{
	for (int64_t i = 0; i < s->seq; i++)
		for (int64_t e = 0; e < s->d; e++)
			to[i * s->d + e] = s->bf16 ? bf16_to_float(((const uint16_t *)from)[at + i * stride + e])
						   : ((const float *)from)[at + i * stride + e];
}

static void store(const struct attention_state *s, void *to, int64_t stride, int64_t at, const float *from)
{
	for (int64_t i = 0; i < s->seq; i++)
		for (int64_t e = 0; e < s->d; e++) {
			if (s->bf16)
				((uint16_t *)to)[at + i * stride + e] = bf16_from_float(from[i * s->d + e]);
			else
				((float *)to)[at + i * stride + e] = from[i * s->d + e];
		}
}

static struct head head_open(const struct attention_state *s, int part, int64_t number)
{
	size_t matrix = (size_t)(s->seq * s->d);
	struct head h = { .row = number / s->heads * s->seq, .at = number % s->heads * s->d };

	h.q = s->scratch + (size_t)part * scratch_floats(s);
	h.k = h.q + matrix;
	h.v = h.k + matrix;
	h.a = h.v + matrix;
	h.b = h.a + matrix;
	h.score = h.b + matrix;
	h.mask = h.score + s->seq;
	h.first = number * s->seq * s->seq;
	load(s, s->qkv, 3 * s->c, h.row * 3 * s->c + h.at, h.q);
	load(s, s->qkv, 3 * s->c, h.row * 3 * s->c + h.at + s->c, h.k);
	load(s, s->qkv, 3 * s->c, h.row * 3 * s->c + h.at + 2 * s->c, h.v);
	return h;
}

static float dot(const float *a, const float *b, int64_t n)
{
	float sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

/* Scores of query i and the masks of its probabilities. */
static void scores(const struct attention_state *s, const struct head *h, int64_t i)
{
	float scale = 1 / sqrtf((float)s->d);

	for (int64_t j = 0; j <= i; j++) {
		h->score[j] = dot(h->q + i * s->d, h->k + j * s->d, s->d) * scale;
		h->mask[j] = 1;
		if (s->attr->dropout.p > 0)
			h->mask[j] = dropout_keeps(&s->draw, (uint64_t)(h->first + i * s->seq + j))
					     ? (float)s->draw.scale
					     : 0;
	}
}

static void forward_row(const struct attention_state *s, const struct head *h, int64_t i)
{
	float *y = h->a + i * s->d, max = -INFINITY;
	double sum = 0;

	scores(s, h, i);
	for (int64_t j = 0; j <= i; j++)
		max = !(h->score[j] <= max) ? h->score[j] : max;
	for (int64_t j = 0; j <= i; j++) {
		h->score[j] = expf(h->score[j] - max);
		sum += (double)h->score[j];
	}
	memset(y, 0, (size_t)s->d * sizeof(*y));
	for (int64_t j = 0; j <= i; j++)
		for (int64_t e = 0; e < s->d; e++)
			y[e] += h->score[j] * h->mask[j] * h->v[j * s->d + e];
	for (int64_t e = 0; e < s->d; e++)
		y[e] /= (float)sum;
	s->lse[(h->row + i) * s->heads + h->at / s->d] = max + (float)log(sum);
}

static void attention_part(void *arg, int part, int parts)
{
	const struct attention_state *s = arg;
	struct cpu_range r = cpu_split(s->n_heads, 1, part, parts);

	for (int64_t number = r.begin; number < r.end; number++) {
		struct head h = head_open(s, part, number);

		for (int64_t i = 0; i < s->seq; i++)
			forward_row(s, &h, i);
		store(s, s->y, s->c, h.row * s->c + h.at, h.a);
	}
}

/* a: dk, b: dv; dq takes the place of q, row by row, once the row has been used for dk. */
static void backward_row(const struct attention_state *s, const struct head *h, int64_t i, const float *dy, float inner)
{
	float lse = s->lse_in[(h->row + i) * s->heads + h->at / s->d], scale = 1 / sqrtf((float)s->d);
	float *q = h->q + i * s->d;

	scores(s, h, i);
	for (int64_t j = 0; j <= i; j++) {
		float p = expf(h->score[j] - lse), m = h->mask[j];

		h->score[j] = p * (m * dot(dy, h->v + j * s->d, s->d) - inner) * scale;
		for (int64_t e = 0; e < s->d; e++) {
			h->b[j * s->d + e] += p * m * dy[e];
			h->a[j * s->d + e] += h->score[j] * q[e];
		}
	}
	memset(q, 0, (size_t)s->d * sizeof(*q));
	for (int64_t j = 0; j <= i; j++)
		for (int64_t e = 0; e < s->d; e++)
			q[e] += h->score[j] * h->k[j * s->d + e];
}

static float low(const struct attention_state *s, const void *p, int64_t i)
{
	return s->bf16 ? bf16_to_float(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}

static void backward_head(const struct attention_state *s, const struct head *h)
{
	memset(h->a, 0, (size_t)(2 * s->seq * s->d) * sizeof(float)); /* b follows a */
	for (int64_t i = 0; i < s->seq; i++) {
		int64_t at = (h->row + i) * s->c + h->at;
		float dy[512], inner = 0;

		for (int64_t e = 0; e < s->d; e++) {
			dy[e] = low(s, s->dy, at + e);
			inner += dy[e] * low(s, s->y_in, at + e);
		}
		backward_row(s, h, i, dy, inner);
	}
}

static void attention_grad_part(void *arg, int part, int parts)
{
	const struct attention_state *s = arg;
	struct cpu_range r = cpu_split(s->n_heads, 1, part, parts);

	for (int64_t number = r.begin; number < r.end; number++) {
		struct head h = head_open(s, part, number);
		int64_t at = h.row * 3 * s->c + h.at;

		backward_head(s, &h);
		store(s, s->dqkv, 3 * s->c, at, h.q);
		store(s, s->dqkv, 3 * s->c, at + s->c, h.a);
		store(s, s->dqkv, 3 * s->c, at + 2 * s->c, h.b);
	}
}

static int attention_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return attention_new(env, n, 1, ret_state, err);
}

static int attention_grad_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	if (n->in[1]->shape.dim[1] / 3 / ((const struct attention_attr *)n->attr)->heads > 512)
		return err_set(err, ERR_UNSUPPORTED, "%s: heads of more than 512 channels", n->name);
	return attention_new(env, n, 3, ret_state, err);
}

static int attention_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct attention_state s = *(const struct attention_state *)state;

	(void)err;
	s.draw = dropout_draw(&s.attr->dropout, args->page);
	s.qkv = args->in[0];
	s.y = args->out[0];
	s.lse = args->out[1];
	s.scratch = args->workspace;
	cpu_parallel(s.parts, attention_part, &s);
	return 0;
}

static int attention_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct attention_state s = *(const struct attention_state *)state;

	(void)err;
	s.draw = dropout_draw(&s.attr->dropout, args->page);
	s.dy = args->in[0];
	s.qkv = args->in[1];
	s.y_in = args->in[2];
	s.lse_in = args->in[3];
	s.dqkv = args->out[0];
	s.scratch = args->workspace;
	cpu_parallel(s.parts, attention_grad_part, &s);
	return 0;
}

extern const struct kernel attention_cpu, attention_grad_cpu;
const struct kernel attention_cpu = { .prepare = attention_prepare,
				      .run = attention_run,
				      .release = cpu_state_release };
const struct kernel attention_grad_cpu = { .prepare = attention_grad_prepare,
					   .run = attention_grad_run,
					   .release = cpu_state_release };
