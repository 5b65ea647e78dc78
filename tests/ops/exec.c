/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c: see exec.h. */
#include "tests/ops/exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/ops/cast/float16.h"

#ifdef __SANITIZE_ADDRESS__
#define GUARD_BYTES 0 /* it detects reads and writes past an end */
#else
#define GUARD_BYTES 128
#endif
#define GUARD 0xFE /* or one less, alternating, so that one copied over another is detected; huge in every float type */
#define FRESH 0xFF /* NaN in every float type */

struct memory {
	unsigned char *p, guard;
	size_t bytes;
	const char *name;
	unsigned char *device; /* its copy on the device; p itself on host backends */
};

struct exec {
	struct graph *g;
	const struct rig *rig;
	struct memory *tensors;	   /* by tensor id; p is NULL where the memory of another is used */
	int *in;		   /* by tensor id: the tensor whose memory is used */
	struct memory *workspaces; /* by node */
	void **states;
	struct stream_handle *stream; /* of backends that have them */
	struct event_handle *done;
	struct memory page;
	bool many; /* nodes are run by run_many */
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

static size_t memory_bytes(size_t bytes)
{
	return (bytes + GUARD_BYTES + 63) / 64 * 64;
}

/* The exact size where the fake device detects accesses past the end. */
static size_t device_bytes(size_t bytes)
{
	return bytes + GUARD_BYTES ? bytes + GUARD_BYTES : 1;
}

static int memory_new(struct memory *m, const struct rig *r, size_t bytes, const char *name)
{
	static unsigned made;
	void *device;

	m->guard = (unsigned char)(GUARD - made++ % 2);
	m->p = aligned_alloc(64, memory_bytes(bytes));
	if (!m->p)
		return ERR_NOMEM;
	m->device = m->p;
	if (r->backend->streams) {
		if (r->backend->alloc(r->module, SPACE_PRIVATE, device_bytes(bytes), &device, NULL) != 0)
			return ERR_NOMEM;
		m->device = device;
	}
	m->bytes = bytes;
	m->name = name;
	memset(m->p, FRESH, bytes);
	for (int i = 0; i < GUARD_BYTES; i++)
		m->p[bytes + (size_t)i] = m->guard;
	return 0;
}

static void memory_done(struct memory *m, const struct rig *r)
{
	if (m->device && m->device != m->p)
		r->backend->release(r->module, SPACE_PRIVATE, m->device, device_bytes(m->bytes));
	free(m->p);
}

/* An output that may use its input's memory does; the others get separate memory. */
static void share(struct exec *e, const struct node *n)
{
	for (int k = 0; n->op->inplace && k < n->n_out; k++) {
		int i = n->out[k] && n->out[k]->producer == n ? n->op->inplace(n, k) : -1;

		if (i >= 0 && n->in[i] && tensor_bytes(n->in[i]) == tensor_bytes(n->out[k]))
			e->in[n->out[k]->id] = e->in[n->in[i]->id];
	}
}

static int place(struct exec *e, bool in_place)
{
	for (int i = 0; i < e->g->n_tensors; i++) {
		const struct tensor *t = e->g->tensors[i];

		if (memory_new(&e->tensors[i], e->rig, tensor_bytes(t), t->name) != 0)
			return ERR_NOMEM;
		e->in[i] = i;
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

	if (!kernel_supported(k))
		return err_set(err, ERR_UNSUPPORTED, "%s is not offered by %s", n->op->name, e->rig->backend->name);
	n->workspace_bytes = 0;
	rc = k->prepare ? k->prepare(&e->rig->env, n, &e->states[i], err) : 0;
	if (!rc && memory_new(&e->workspaces[i], e->rig, n->workspace_bytes, n->name) != 0)
		rc = err_set(err, ERR_NOMEM, "out of memory: the workspace of %s", n->name);
	return rc;
}

/* Stream, event and step page of a device. */
static int open_device(struct exec *e, struct err *err)
{
	const struct backend_streams *s = e->rig->backend->streams;
	int rc;

	if (!s)
		return 0;
	rc = s->stream_new(e->rig->module, &e->stream, err);
	if (!rc)
		rc = s->event_new(e->rig->module, false, &e->done, err);
	if (!rc && memory_new(&e->page, e->rig, sizeof(struct step_page), "page") != 0)
		rc = err_set(err, ERR_NOMEM, "out of memory: the page");
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
	e->many = in_place;
	e->tensors = calloc((size_t)g->n_tensors + 1, sizeof(*e->tensors));
	e->in = calloc((size_t)g->n_tensors + 1, sizeof(*e->in));
	e->workspaces = calloc((size_t)g->n_nodes + 1, sizeof(*e->workspaces));
	e->states = calloc((size_t)g->n_nodes + 1, sizeof(*e->states));
	if (!e->tensors || !e->in || !e->workspaces || !e->states || place(e, in_place) != 0)
		rc = err_set(err, ERR_NOMEM, "out of memory");
	if (!rc)
		rc = open_device(e, err);
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
		memory_done(&e->workspaces[i], e->rig);
	for (int i = 0; e->tensors && i < e->g->n_tensors; i++)
		memory_done(&e->tensors[i], e->rig);
	memory_done(&e->page, e->rig);
	if (e->done)
		e->rig->backend->streams->event_free(e->rig->module, e->done);
	if (e->stream)
		e->rig->backend->streams->stream_free(e->rig->module, e->stream);
	free(e->states);
	free(e->workspaces);
	free(e->tensors);
	free(e->in);
	free(e);
}

void exec_put(struct exec *e, const struct tensor *t, const double *values)
{
	for (int64_t i = 0; i < shape_count(&t->shape); i++)
		value_put(e->tensors[e->in[t->id]].p, t->dtype, i, values[i]);
}

void exec_get(const struct exec *e, const struct tensor *t, double *values)
{
	for (int64_t i = 0; i < shape_count(&t->shape); i++)
		values[i] = value_get(e->tensors[e->in[t->id]].p, t->dtype, i);
}

#define OPERANDS_MAX 512

static int copy(const struct exec *e, const struct memory *m, bool to_device, struct err *err)
{
	const struct backend *b = e->rig->backend;

	if (!m->p || m->device == m->p)
		return 0;
	return b->copy(e->rig->module, to_device ? m->device : m->p, to_device ? m->p : m->device,
		       m->bytes + GUARD_BYTES, err);
}

static int copy_all(const struct exec *e, bool to_device, struct err *err)
{
	int rc = copy(e, &e->page, to_device, err);

	for (int i = 0; !rc && i < e->g->n_tensors; i++)
		rc = copy(e, &e->tensors[i], to_device, err);
	for (int i = 0; !rc && i < e->g->n_nodes; i++)
		rc = copy(e, &e->workspaces[i], to_device, err);
	return rc;
}

static int run_node(struct exec *e, int i, const struct step_page *page, struct err *err)
{
	const struct node *n = e->g->nodes[i];
	const struct kernel *kernel;
	int rc = 0;
	void *in[OPERANDS_MAX], *out[OPERANDS_MAX];
	struct kernel_args args = {
		.in = in, .out = out, .workspace = e->workspaces[i].device, .page = page, .stream = e->stream
	};

	for (int k = 0; k < n->n_in; k++)
		in[k] = n->in[k] ? e->tensors[e->in[n->in[k]->id]].device : NULL;
	for (int k = 0; k < n->n_out; k++)
		out[k] = n->out[k] ? e->tensors[e->in[n->out[k]->id]].device : NULL;
	kernel = backend_kernel(e->rig->backend, n);
	if (e->many && kernel->run_many)
		kernel->run_many(&e->states[i], &args, 1);
	else
		rc = kernel_run(kernel, e->states[i], &args, err);
	return rc ? rc : backend_take_failure(e->rig->backend, e->rig->module, n->name, err);
}

static int wait_for_device(struct exec *e, struct err *err)
{
	const struct backend_streams *s = e->rig->backend->streams;
	int rc = s ? s->record(e->rig->module, e->stream, e->done, err) : 0;

	return rc || !s ? rc : s->event_sync(e->rig->module, e->done, err);
}

int exec_run(struct exec *e, const struct step_page *page, struct err *err)
{
	const void *there = e->page.p ? (const void *)e->page.device : page;
	int rc;

	if (e->page.p)
		memcpy(e->page.p, page, sizeof(*page));
	rc = copy_all(e, true, err);
	for (int i = 0; !rc && i < e->g->n_nodes; i++)
		rc = run_node(e, i, there, err);
	if (!rc)
		rc = wait_for_device(e, err);
	return rc ? rc : copy_all(e, false, err);
}

static bool damaged(const struct memory *m)
{
	for (int i = 0; m->p && i < GUARD_BYTES; i++)
		if (m->p[m->bytes + (size_t)i] != m->guard)
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
