/* sgd_ref.c: one SGD step, element by element. */
#include "trainer/ops/ref.h"
#include "trainer/ops/sgd/sgd.h"

static int sgd_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const struct sgd_attr *a = n->attr;
	const struct step_page *page = args->page;
	double *p = args->out[0], *m = args->out[1], scale = page->clip_factor / page->loss_scale;
	const double *grad = args->in[1];

	(void)err;
	if (page->found_inf != 0)
		return 0;
	for (int64_t i = 0; i < shape_count(&n->in[0]->shape); i++) {
		double d = grad[i] * scale + a->weight_decay * p[i];

		if (m) {
			m[i] = a->momentum * m[i] + d;
			d = a->nesterov ? d + a->momentum * m[i] : m[i];
		}
		p[i] -= page->lr * d;
	}
	return 0;
}

const struct kernel sgd_ref = REF_KERNEL(sgd_run);
