/* exec.c: see exec.h. */
#include "tests/ops/exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/ops/cast/float16.h"

#define GUARD_BYTES 128
#define GUARD 0xA5
#define FRESH 0xFF /* NaN in every float type */

struct memory {
	unsigned char *p;
	size_t bytes;
	const char *name;
};

struct exec {
	struct graph *g;
	const struct rig *rig;
	struct memory *tensors;	   /* by tensor id; p NULL where another's memory is used */
	void **at;		   /* by tensor id */
	struct memory *workspaces; /* by node */
	void **states;
};

int rig_open(struct rig *ret, const struct backend *b, int threads, const struct precision *p, struct err *err)
{
	struct backend_opts o = { .threads = threads, .deterministic = true };
	struct rig r = { .backend = b, .precision = *p, .env = { .threads = threads, .deterministic = true } };
	int rc = b->open(&o, &r.module, err);

	if (rc)
		return rc;
	r.env.module = r.module;
	*ret = r;
	return 0;
}

void rig_close(struct rig *r)
{
	r->backend->close(r->module);
}

double value_get(const void *p, enum dtype t, int64_t i)
{
	switch (t) {
	case DTYPE_I64:
		return (double)((const int64_t *)p)[i];
	case DTYPE_I32:
		return ((const int32_t *)p)[i];
	case DTYPE_U8:
		return ((const uint8_t *)p)[i];
	default:
		return float_get(p, t, i);
	}
}

void value_put(void *p, enum dtype t, int64_t i, double v)
{
	switch (t) {
	case DTYPE_I64:
		((int64_t *)p)[i] = (int64_t)v;
		break;
	case DTYPE_I32:
		((int32_t *)p)[i] = (int32_t)v;
		break;
	case DTYPE_U8:
		((uint8_t *)p)[i] = (uint8_t)v;
		break;
	default:
		float_put(p, t, i, v);
	}
}

double value_round(enum dtype t, double v)
{
	uint64_t bits = 0;

	value_put(&bits, t, 0, v);
	return value_get(&bits, t, 0);
}

static int memory_new(struct memory *m, size_t bytes, const char *name)
{
	size_t all = (bytes + GUARD_BYTES + 63) / 64 * 64;

	m->p = aligned_alloc(64, all);
	if (!m->p)
		return ERR_NOMEM;
	m->bytes = bytes;
	m->name = name;
	memset(m->p, FRESH, bytes);
	memset(m->p + bytes, GUARD, GUARD_BYTES);
	return 0;
}

/* The output that may live in its input's memory does; the rest gets its own. */
static void share(struct exec *e, const struct node *n)
{
	for (int k = 0; n->op->inplace && k < n->n_out; k++) {
		int i = n->out[k] && n->out[k]->producer == n ? n->op->inplace(n, k) : -1;

		if (i >= 0 && n->in[i] && tensor_bytes(n->in[i]) == tensor_bytes(n->out[k]))
			e->at[n->out[k]->id] = e->at[n->in[i]->id];
	}
}

static int place(struct exec *e, bool in_place)
{
	for (int i = 0; i < e->g->n_tensors; i++) {
		const struct tensor *t = e->g->tensors[i];

		if (memory_new(&e->tensors[i], tensor_bytes(t), t->name) != 0)
			return ERR_NOMEM;
		e->at[i] = e->tensors[i].p;
	}
	for (int i = 0; in_place && i < e->g->n_nodes; i++)
		share(e, e->g->nodes[i]);
	return 0;
}

static int prepare(struct exec *e, int i, struct err *err)
{
	struct node *n = e->g->nodes[i];
	const struct kernel *k = backend_kernel(e->rig->backend, n);
	int rc;

	if (!k->run)
		return err_set(err, ERR_UNSUPPORTED, "%s is not offered by %s", n->op->name, e->rig->backend->name);
	n->workspace_bytes = 0;
	rc = k->prepare ? k->prepare(&e->rig->env, n, &e->states[i], err) : 0;
	if (!rc && memory_new(&e->workspaces[i], n->workspace_bytes, n->name) != 0)
		rc = err_set(err, ERR_NOMEM, "out of memory for the workspace of %s", n->name);
	return rc;
}

int exec_new(struct exec **ret, struct graph *g, const struct rig *r, bool in_place, struct err *err)
{
	struct exec *e = calloc(1, sizeof(*e));
	int rc = 0;

	if (!e)
		return err_set(err, ERR_NOMEM, "out of memory");
	e->g = g;
	e->rig = r;
	e->tensors = calloc((size_t)g->n_tensors + 1, sizeof(*e->tensors));
	e->at = calloc((size_t)g->n_tensors + 1, sizeof(*e->at));
	e->workspaces = calloc((size_t)g->n_nodes + 1, sizeof(*e->workspaces));
	e->states = calloc((size_t)g->n_nodes + 1, sizeof(*e->states));
	if (!e->tensors || !e->at || !e->workspaces || !e->states || place(e, in_place) != 0)
		rc = err_set(err, ERR_NOMEM, "out of memory");
	for (int i = 0; i < g->n_nodes && !rc; i++)
		rc = prepare(e, i, err);
	if (rc) {
		exec_free(e);
		return rc;
	}
	*ret = e;
	return 0;
}

void exec_free(struct exec *e)
{
	if (!e)
		return;
	for (int i = 0; e->states && i < e->g->n_nodes; i++) {
		const struct kernel *k = backend_kernel(e->rig->backend, e->g->nodes[i]);

		if (k->release)
			k->release(e->states[i]);
	}
	for (int i = 0; e->workspaces && i < e->g->n_nodes; i++)
		free(e->workspaces[i].p);
	for (int i = 0; e->tensors && i < e->g->n_tensors; i++)
		free(e->tensors[i].p);
	free(e->states);
	free(e->workspaces);
	free(e->tensors);
	free(e->at);
	free(e);
}

void exec_put(struct exec *e, const struct tensor *t, const double *values)
{
	for (int64_t i = 0; i < shape_count(&t->shape); i++)
		value_put(e->at[t->id], t->dtype, i, values[i]);
}

void exec_get(const struct exec *e, const struct tensor *t, double *values)
{
	for (int64_t i = 0; i < shape_count(&t->shape); i++)
		values[i] = value_get(e->at[t->id], t->dtype, i);
}

#define OPERANDS_MAX 512

int exec_run(struct exec *e, const struct step_page *page, struct err *err)
{
	void *in[OPERANDS_MAX], *out[OPERANDS_MAX];

	for (int i = 0; i < e->g->n_nodes; i++) {
		const struct node *n = e->g->nodes[i];
		struct kernel_args args = { .in = in, .out = out, .workspace = e->workspaces[i].p, .page = page };
		int rc;

		for (int k = 0; k < n->n_in; k++)
			in[k] = n->in[k] ? e->at[n->in[k]->id] : NULL;
		for (int k = 0; k < n->n_out; k++)
			out[k] = n->out[k] ? e->at[n->out[k]->id] : NULL;
		rc = backend_kernel(e->rig->backend, n)->run(e->states[i], &args, err);
		if (rc)
			return rc;
	}
	return 0;
}

static bool damaged(const struct memory *m)
{
	for (int i = 0; m->p && i < GUARD_BYTES; i++)
		if (m->p[m->bytes + (size_t)i] != GUARD)
			return true;
	return false;
}

const char *exec_damage(const struct exec *e)
{
	for (int i = 0; i < e->g->n_tensors; i++)
		if (damaged(&e->tensors[i]))
			return e->tensors[i].name;
	for (int i = 0; i < e->g->n_nodes; i++)
		if (damaged(&e->workspaces[i]))
			return e->workspaces[i].name;
	return NULL;
}
