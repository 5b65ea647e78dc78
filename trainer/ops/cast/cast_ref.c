/* cast_ref.c: between any two float types, by way of f64 and, into 16 bits, f32. */
#include "trainer/ops/cast/cast.h"
#include "trainer/ops/cast/float16.h"
#include "trainer/ops/ref.h"

static double get(const void *p, enum dtype t, int64_t i)
{
	switch (t) {
	case DTYPE_F64:
		return ((const double *)p)[i];
	case DTYPE_F32:
		return ((const float *)p)[i];
	case DTYPE_BF16:
		return bf16_to_float(((const uint16_t *)p)[i]);
	default:
		return f16_to_float(((const uint16_t *)p)[i]);
	}
}

static void put(void *p, enum dtype t, int64_t i, double v)
{
	switch (t) {
	case DTYPE_F64:
		((double *)p)[i] = v;
		break;
	case DTYPE_F32:
		((float *)p)[i] = (float)v;
		break;
	case DTYPE_BF16:
		((uint16_t *)p)[i] = bf16_from_float((float)v);
		break;
	default:
		((uint16_t *)p)[i] = f16_from_float((float)v);
	}
}

static int cast_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	(void)env;
	(void)err;
	*ret_state = n;
	return 0;
}

static int cast_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;

	(void)err;
	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++)
		put(args->out[0], n->out[0]->dtype, i, get(args->in[0], n->in[0]->dtype, i));
	return 0;
}

const struct kernel cast_ref = { .prepare = cast_prepare, .run = cast_run, .release = ref_release };
