/* files.c: weights, gradients and outputs to and from safetensors files. */
#include <stdlib.h>

#include "trainer/engine/engine.h"
#include "trainer/weights/weights.h"

static const struct graph *any_graph(const struct engine *e)
{
	return e->prepared.program[0]->graph;
}

static int put_tensor(void *user, const struct tensor *t, const void *data, struct err *err)
{
	return prepared_put(&((struct engine *)user)->prepared, t, data, tensor_bytes(t), err);
}

static int get_tensor(void *user, const struct tensor *t, void *data, struct err *err)
{
	return prepared_get(&((struct engine *)user)->prepared, t, data, tensor_bytes(t), err);
}

/* A parameter's gradient in the place of its value. */
static int get_gradient(void *user, const struct tensor *t, void *data, struct err *err)
{
	return get_tensor(user, t->grad ? t->grad : t, data, err);
}

int files_load_weights(struct engine *e, const char *path, struct err *err)
{
	return weights_load(any_graph(e), path, &(struct weights_access){ put_tensor, get_tensor, e }, err);
}

int files_save_weights(struct engine *e, const char *path, struct err *err)
{
	const struct weights_save_opts o = { .path = path };

	return weights_save(any_graph(e), &o, &(struct weights_access){ put_tensor, get_tensor, e }, err);
}

int files_save_grads(struct engine *e, const char *path, struct err *err)
{
	struct range part = sampler_part(&e->train, 0, e->seat->rank);
	const struct program *p = prepared_program(&e->prepared, true, part.end - part.begin);
	const struct weights_save_opts o = { .path = path };

	return weights_save(p->graph, &o, &(struct weights_access){ put_tensor, get_gradient, e }, err);
}

static int fetch_outputs(void *user, size_t i, const void **ret, struct err *err)
{
	(void)i, (void)err;
	*ret = user;
	return 0;
}

int files_save_outputs(struct engine *e, const char *path, struct err *err)
{
	int64_t n = e->eval.n_samples, classes = evaluate_classes(e);
	struct st_tensor t = { .name = "logits", .dtype = ST_F64, .ndim = 2, .dim = { n, classes } };
	double *outputs = calloc((size_t)(n * classes) + 1, sizeof(*outputs));
	struct evaluation ignored;
	int rc;

	if (!outputs)
		return err_set(err, ERR_NOMEM, "out of memory: outputs of %lld samples", (long long)n);
	rc = evaluate_run(e, outputs, &ignored, err);
	if (!rc && engine_is_root(e))
		rc = safetensors_write(
			&(struct st_write_opts){
				.path = path, .tensors = &t, .n_tensors = 1, .fetch = fetch_outputs, .user = outputs },
			err);
	free(outputs);
	return rc;
}
