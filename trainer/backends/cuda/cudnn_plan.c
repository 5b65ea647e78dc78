/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_plan.c: see cudnn_plan.h. */
#include "trainer/backends/cuda/cudnn_plan.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/base/thread.h"
#include "tracker/mem/mem.h"
#include "trainer/backends/cuda/cudnn_engine.h"

#ifdef HAVE_CUDNN

#define AHEAD_MAX 1024 /* plans */
#define THREADS_MAX 32

/* ---- plans made ahead ---- */

struct dnn_ahead {
	struct cuda_module *module;
	struct dnn_engine *noted[AHEAD_MAX];
	int n;
	atomic_int next;
};

static void note_graph(struct dnn_graph *g, const struct dnn_wish *wishes, int n)
{
	struct dnn_ahead *a = g->module->dnn_ahead;
	struct dnn_engine *e;

	if (a->n == AHEAD_MAX) {
		dnn_graph_free(g); /* created later, when needed */
		return;
	}
	e = dnn_engine_new(g, wishes, n);
	for (int i = 0; i < a->n; i++)
		if (!memcmp(a->noted[i]->key, e->key, sizeof(e->key))) {
			dnn_engine_free(e);
			return;
		}
	a->noted[a->n++] = e;
}

static void find_noted_plans(struct dnn_ahead *a, cudnnHandle_t handle)
{
	for (int i; (i = atomic_fetch_add(&a->next, 1)) < a->n;) {
		a->noted[i]->graph.handle = handle;
		dnn_engine_search(a->noted[i]);
	}
}

/* Thread function. A handle may be used by one thread at a time. Without a device there is no handle. */
static void *find_with_own_handle(void *ahead)
{
	struct dnn_ahead *a = ahead;
	struct cuda_module *m = a->module;
	cudnnHandle_t handle = NULL;

	if (m->dnn && (cudaSetDevice(m->device) != cudaSuccess || m->calls.cudnnCreate(&handle)))
		return NULL;
	find_noted_plans(a, handle);
	return handle;
}

/* Plans run with the module's handle, so a plan made with another handle is restored from its serialised form, as in a
 * later run. */
static void adopt_candidate(const struct dnn_engine *e, struct dnn_candidate *w)
{
	const struct dnn_candidate made = *w;
	size_t n = 0;
	char *text = dnn_plan_write(e, w, &n);

	*w = (struct dnn_candidate){ .tensor_cores = made.tensor_cores };
	if (text)
		dnn_plan_read(e, w, text + 1, n - 1);
	free(text);
	dnn_candidate_free(&e->graph.module->calls, &(struct dnn_candidate){ made.config, made.plan, 0, false });
}

static void adopt_engine(struct dnn_engine *e)
{
	const int made = e->n_candidates;

	e->graph.handle = e->graph.module->dnn;
	e->n_candidates = 0;
	for (int i = 0; i < made; i++) {
		struct dnn_candidate w = e->candidates[i];

		e->candidates[i] = (struct dnn_candidate){ 0 };
		adopt_candidate(e, &w);
		if (w.plan)
			e->candidates[e->n_candidates++] = w;
	}
	if (made && !e->n_candidates)
		dnn_engine_search(e);
}

static void drop_ahead_plans(struct cuda_module *m)
{
	for (struct dnn_engine *e = m->dnn_engines, *next; e; e = next) {
		next = e->next;
		if (e->ahead) {
			e->ahead = false;
			dnn_engine_drop(e);
		}
	}
}

void dnn_ahead_begin(void *module)
{
	struct cuda_module *m = module;

	drop_ahead_plans(m);
	if (m->dnn || m->dnn_device) {
		m->dnn_ahead = mem_zalloc(sizeof(*m->dnn_ahead));
		m->dnn_ahead->module = m;
	}
}

static void list_noted_engines(struct dnn_ahead *a)
{
	for (int i = 0; i < a->n; i++) {
		struct dnn_engine *e = a->noted[i];

		if (e->graph.handle != a->module->dnn)
			adopt_engine(e);
		dnn_engine_settle(e);
		e->ahead = true;
		e->users = 1;
		dnn_engine_list(e);
	}
}

void dnn_ahead_end(void *module, int threads)
{
	struct cuda_module *m = module;
	struct dnn_ahead *a = m->dnn_ahead;
	pthread_t thread[THREADS_MAX];
	int n = 0;

	m->dnn_ahead = NULL;
	while (a && n < THREADS_MAX && n < threads - 1 && n < a->n - 1 &&
	       !thread_start(&thread[n], find_with_own_handle, a))
		n++;
	if (a)
		find_noted_plans(a, m->dnn);
	void *handle[THREADS_MAX] = { NULL };

	for (int i = 0; i < n; i++)
		pthread_join(thread[i], &handle[i]);
	if (a)
		list_noted_engines(a);
	for (int i = 0; i < n; i++)
		if (handle[i])
			m->calls.cudnnDestroy(handle[i]);
	free(a);
}

/* ---- the library ---- */

int dnn_open(struct cuda_module *m, struct err *err)
{
	int rc = cuda_calls_open(&m->calls, CUDA_CUDNN, err);
	cudnnStatus_t status;

	if (rc)
		return rc;
	status = m->calls.cudnnCreate(&m->dnn);
	if (status == CUDNN_STATUS_SUCCESS)
		return 0;
	m->dnn = NULL;
	return dnn_fail(m, ERR_IO, status, "opening", err);
}

int dnn_open_for(struct cuda_module *m, const char *json, struct err *err)
{
	const struct dnn_attr attrs[] = { ATTR(DEVICEPROP_JSON_REPRESENTATION, CHAR, (int64_t)strlen(json) + 1, json) };
	struct dnn_graph g = { .module = m };
	int rc = cuda_calls_open(&m->calls, CUDA_CUDNN, err);

	if (rc)
		return rc;
	m->dnn_device = dnn_make(&g, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, attrs, 1);
	return m->dnn_device ? 0 : dnn_fail(m, ERR_USAGE, g.status, "a device's description", err);
}

void dnn_close(struct cuda_module *m)
{
	drop_ahead_plans(m);
	if (m->dnn_device)
		m->calls.cudnnBackendDestroyDescriptor(m->dnn_device);
	if (m->dnn)
		m->calls.cudnnDestroy(m->dnn);
	m->dnn_device = NULL;
	m->dnn = NULL;
}

/* ---- plans ---- */

struct dnn_plan {
	struct dnn_engine *engine;
	cudnnBackendDescriptor_t pack; /* has the addresses of the last run */
	void *address[DNN_OPERANDS_MAX], *room;
};

/* Finds a live engine or creates one. Takes ownership of the graph. */
static int find_engine(struct dnn_engine **ret, struct dnn_graph *g, const struct dnn_wish *wishes, int n,
		       struct err *err)
{
	struct dnn_engine *e = dnn_engine_find_same(g, wishes, n);

	if (e) {
		dnn_graph_free(g);
	} else if (g->module->dnn_ahead) {
		note_graph(g, wishes, n);
		return err_set(err, ERR_UNSUPPORTED, "cuda: cuDNN plans are collected for a later search");
	} else {
		e = dnn_engine_new(g, wishes, n);
		dnn_engine_search(e);
		dnn_engine_settle(e);
		if (e->n_candidates)
			dnn_engine_list(e);
	}
	if (!e->n_candidates) {
		int rc = err_set(err, e->why.code, "%s", e->why.text);

		if (!e->ahead)
			dnn_engine_free(e);
		return rc;
	}
	*ret = e;
	return 0;
}

int dnn_plan_new(struct dnn_plan **ret, struct dnn_graph *g, const struct dnn_wish *wishes, int n, struct err *err)
{
	struct dnn_plan *p = mem_zalloc(sizeof(*p));
	int rc = find_engine(&p->engine, g, wishes, n, err);
	if (rc) {
		free(p);
		return rc;
	}
	p->engine->users++;
	*ret = p;
	return 0;
}

void dnn_plan_free(struct dnn_plan *p)
{
	if (!p)
		return;
	if (p->pack)
		p->engine->graph.module->calls.cudnnBackendDestroyDescriptor(p->pack);
	dnn_engine_drop(p->engine);
	free(p);
}

size_t dnn_plan_workspace(const struct dnn_plan *p)
{
	return p->engine->candidates[0].workspace;
}

bool dnn_plan_uses_tensor_cores(const struct dnn_plan *p)
{
	return p->engine->candidates[0].tensor_cores;
}

bool dnn_plan_recalled(const struct dnn_plan *p)
{
	return p->engine->recalled;
}

/* A finalised pack is immutable, so other addresses need a new one; steps always use the same addresses. */
static cudnnStatus_t update_pack(struct dnn_plan *p, const struct dnn_operands *o)
{
	const struct cuda_calls *c = &p->engine->graph.module->calls;

	if (p->pack && o->workspace == p->room && !memcmp(p->address, o->address, (size_t)o->n * sizeof(o->address[0])))
		return CUDNN_STATUS_SUCCESS;
	if (p->pack)
		c->cudnnBackendDestroyDescriptor(p->pack);
	p->pack = NULL;
	p->room = o->workspace;
	memcpy(p->address, o->address, sizeof(p->address));
	return dnn_make_pack(c, &p->pack, o);
}

void dnn_plan_run(struct dnn_plan *p, const struct node *n, const struct dnn_operands *o)
{
	struct cuda_module *m = p->engine->graph.module;
	cudnnStatus_t status = update_pack(p, o);

	if (!status)
		status = m->calls.cudnnSetStream(m->dnn, (cudaStream_t)o->stream);
	if (!status)
		status = m->calls.cudnnBackendExecute(m->dnn, p->engine->candidates[0].plan, p->pack);
	if (status && !m->failed.code)
		dnn_fail(m, ERR_IO, status, n->name, &m->failed);
}

#else

int dnn_open(struct cuda_module *m, struct err *err)
{
	return cuda_calls_open(&m->calls, CUDA_CUDNN, err);
}

int dnn_open_for(struct cuda_module *m, const char *json, struct err *err)
{
	(void)json;
	return cuda_calls_open(&m->calls, CUDA_CUDNN, err);
}

void dnn_close(struct cuda_module *m)
{
	(void)m;
}

void dnn_ahead_begin(void *module)
{
	(void)module;
}

void dnn_ahead_end(void *module, int threads)
{
	(void)module, (void)threads;
}

#endif
