/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_engine.c: engines for graphs: the library's recommendations are compiled, the fastest is kept, and plans are
 * stored in the cache. */
#include "trainer/backends/cuda/cudnn_engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"
#include "trainer/backends/cuda/plan_cache.h"

#ifdef HAVE_CUDNN

#define CONFIGS_MAX 48

static cudnnBackendDescriptor_t make_operation_graph(struct dnn_graph *g)
{
	const struct dnn_attr attrs[] = {
		ATTR(OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, g->n_ops, g->ops),
		ATTR(OPERATIONGRAPH_HANDLE, HANDLE, 1, &g->handle),
	};

	return dnn_make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, attrs, g->handle ? 2 : 1);
}

struct engine_configs {
	int64_t n;
	cudnnBackendDescriptor_t at[CONFIGS_MAX];
};

static void free_configs(const struct cuda_calls *c, struct engine_configs *s)
{
	for (int i = 0; i < CONFIGS_MAX; i++)
		if (s->at[i])
			c->cudnnBackendDestroyDescriptor(s->at[i]);
}

/* Fetches the library's recommended engine configurations, best first. */
static cudnnStatus_t fetch_recommendations(struct dnn_graph *g, cudnnBackendDescriptor_t graph,
					   cudnnBackendHeurMode_t mode, struct engine_configs *ret)
{
	const struct cuda_calls *c = &g->module->calls;
	const struct dnn_attr attrs[] = {
		ATTR(ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, &graph),
		ATTR(ENGINEHEUR_MODE, HEUR_MODE, 1, &mode),
		ATTR(ENGINEHEUR_DEVICEPROP, BACKEND_DESCRIPTOR, 1, &g->module->dnn_device),
	};
	cudnnBackendDescriptor_t heuristic = NULL;
	cudnnStatus_t status = dnn_make_owned(c, &heuristic, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, attrs,
					      g->module->dnn_device ? 3 : 2);

	for (int i = 0; !status && i < CONFIGS_MAX; i++)
		status = c->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &ret->at[i]);
	if (!status)
		status = c->cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
						     CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS_MAX, &ret->n, ret->at);
	if (heuristic)
		c->cudnnBackendDestroyDescriptor(heuristic);
	return status;
}

/* Bit mask of the numerical notes of a configuration's engine. */
static unsigned read_numerical_notes(const struct cuda_calls *c, cudnnBackendDescriptor_t config)
{
	cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
	cudnnBackendDescriptor_t engine = NULL;
	int64_t n = 0, one = 0;
	unsigned found = 0;

	if (c->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine))
		return ~0u;
	if (c->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one,
					&engine) ||
	    c->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
					CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, notes))
		found = ~0u;
	for (int64_t i = 0; i < n && found != ~0u; i++)
		found |= 1u << notes[i];
	c->cudnnBackendDestroyDescriptor(engine);
	return found;
}

static bool fits_wish(unsigned notes, const struct dnn_wish *w)
{
	const unsigned rounds = 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE |
				1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS |
				1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
	const unsigned transforms = 1u << CUDNN_NUMERICAL_NOTE_FFT | 1u << CUDNN_NUMERICAL_NOTE_WINOGRAD;

	return !(w->plain && notes & rounds) && !(w->direct && notes & transforms) &&
	       !(w->tensor_cores && !(notes & 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) &&
	       !(w->deterministic && notes & 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
}

static void make_engine_key(int64_t (*ret)[KEY_MAX], const struct dnn_graph *g, const struct dnn_wish *wishes, int n)
{
	memset(*ret, 0, sizeof(*ret));
	memcpy(*ret, g->key, sizeof(g->key));
	for (int i = 0; i < n && i < WISHES_MAX; i++) {
		const struct dnn_wish *w = &wishes[i];

		(*ret)[DNN_KEY_MAX + 2 * i] = (int64_t)w->workspace_max;
		(*ret)[DNN_KEY_MAX + 2 * i + 1] =
			1 | w->tensor_cores << 1 | w->plain << 2 | w->deterministic << 3 | w->direct << 4;
	}
}

/* The attribute of a plan's target: the device of a handle, else the described device. */
static struct dnn_attr make_device_attr(const struct dnn_graph *g)
{
	return g->handle ? (struct dnn_attr)ATTR(EXECUTION_PLAN_HANDLE, HANDLE, 1, &g->handle)
			 : (struct dnn_attr)ATTR(EXECUTION_PLAN_DEVICEPROP, BACKEND_DESCRIPTOR, 1,
						 &g->module->dnn_device);
}

static bool read_workspace(const struct cuda_calls *c, cudnnBackendDescriptor_t plan, int64_t *ret)
{
	int64_t n = 0;

	return !c->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n,
					    ret);
}

void dnn_candidate_free(const struct cuda_calls *c, struct dnn_candidate *w)
{
	if (w->plan)
		c->cudnnBackendDestroyDescriptor(w->plan);
	if (w->config)
		c->cudnnBackendDestroyDescriptor(w->config);
	*w = (struct dnn_candidate){ 0 };
}

/* Compiles the plan of one configuration and adds it if it fits the wish. */
static bool try_engine_config(struct dnn_engine *p, cudnnBackendDescriptor_t config, const struct dnn_wish *w)
{
	const struct cuda_module *m = p->graph.module;
	const unsigned notes = read_numerical_notes(&m->calls, config);
	const struct dnn_attr attrs[] = { ATTR(EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, &config),
					  make_device_attr(&p->graph) };
	cudnnBackendDescriptor_t plan = NULL;
	int64_t bytes = 0;

	if (!fits_wish(notes, w) || dnn_make_owned(&m->calls, &plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, attrs, 2))
		return false;
	if (!read_workspace(&m->calls, plan, &bytes) || (size_t)bytes > w->workspace_max) {
		m->calls.cudnnBackendDestroyDescriptor(plan);
		return false;
	}
	p->candidates[p->n_candidates++] =
		(struct dnn_candidate){ config, plan, (size_t)bytes, notes & 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE };
	return true;
}

/* Number of candidates to collect. */
static int count_candidates_wanted(const struct dnn_engine *p, const struct dnn_wish *w)
{
	return p->graph.n_operands && p->graph.handle && !w->deterministic ? TRIALS_MAX : 1;
}

static void find_candidates(struct dnn_engine *p, cudnnBackendDescriptor_t graph, const struct dnn_wish *w)
{
	static const cudnnBackendHeurMode_t modes[] = { CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK };

	for (int i = 0; i < 2 && !p->n_candidates; i++) {
		struct engine_configs found = { 0 };

		if (fetch_recommendations(&p->graph, graph, modes[i], &found))
			found.n = 0;
		for (int64_t k = 0; k < found.n && p->n_candidates < count_candidates_wanted(p, w); k++)
			if (try_engine_config(p, found.at[k], w))
				found.at[k] = NULL;
		free_configs(&p->graph.module->calls, &found);
	}
}

/* ---- cached plans: one byte for tensor cores, then the library's serialised plan ---- */

#define KEPT_KEY_BYTES (17 * KEY_MAX + 8)

static void format_cache_key(char (*ret)[KEPT_KEY_BYTES], const struct dnn_engine *e)
{
	size_t used = (size_t)snprintf(*ret, sizeof(*ret), "graph");

	for (int i = 0; i < KEY_MAX; i++)
		used += (size_t)snprintf(*ret + used, sizeof(*ret) - used, " %llx", (unsigned long long)e->key[i]);
}

/* Restores a plan from its serialised form, for e's handle. */
bool dnn_plan_read(const struct dnn_engine *e, struct dnn_candidate *ret, const char *text, size_t n)
{
	const struct cuda_calls *c = &e->graph.module->calls;
	const struct dnn_attr attrs[] = { ATTR(EXECUTION_PLAN_JSON_REPRESENTATION, CHAR, (int64_t)n, text),
					  make_device_attr(&e->graph) };
	cudnnBackendDescriptor_t plan = NULL;
	int64_t bytes = 0;

	if (dnn_make_owned(c, &plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, attrs, 2))
		return false;
	if (!read_workspace(c, plan, &bytes)) {
		c->cudnnBackendDestroyDescriptor(plan);
		return false;
	}
	ret->plan = plan;
	ret->workspace = (size_t)bytes;
	return true;
}

static void load_cached_plan(struct dnn_engine *e)
{
	char key[KEPT_KEY_BYTES];
	const char *known;
	size_t n = 0;

	format_cache_key(&key, e);
	known = plan_cache_find(e->graph.module->kept, key, &n);
	if (n < 2 || !dnn_plan_read(e, &e->candidates[0], known + 1, n - 1))
		return;
	e->recalled = true;
	e->n_candidates = 1;
	e->candidates[0].tensor_cores = known[0] == '1';
}

/* Serialises a plan; the first byte is left for the caller. NULL if the library cannot. */
char *dnn_plan_write(const struct dnn_engine *e, const struct dnn_candidate *w, size_t *ret_n)
{
	const struct cuda_calls *c = &e->graph.module->calls;
	int64_t n = 0, got = 0;
	char *text;

	if (c->cudnnBackendGetAttribute(w->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, &n,
					NULL))
		return NULL;
	text = mem_alloc((size_t)n + 1);
	if (c->cudnnBackendGetAttribute(w->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, n,
					&got, text + 1)) {
		free(text);
		return NULL;
	}
	*ret_n = (size_t)got + 1;
	return text;
}

static void cache_plan(const struct dnn_engine *e)
{
	char key[KEPT_KEY_BYTES], *text;
	size_t n = 0;

	if (!e->graph.module->kept)
		return;
	text = dnn_plan_write(e, &e->candidates[0], &n);
	if (!text)
		return;
	text[0] = e->candidates[0].tensor_cores ? '1' : '0';
	format_cache_key(&key, e);
	plan_cache_put(e->graph.module->kept, key, text, n);
	free(text);
}

/* ---- life of an engine ---- */

struct dnn_engine *dnn_engine_find_same(const struct dnn_graph *g, const struct dnn_wish *wishes, int n)
{
	struct dnn_engine *e = g->module->dnn_engines;
	int64_t key[KEY_MAX];

	make_engine_key(&key, g, wishes, n);
	while (e && memcmp(e->key, key, sizeof(key)) != 0)
		e = e->next;
	return e;
}

void dnn_engine_free(struct dnn_engine *e)
{
	const struct cuda_calls *c = &e->graph.module->calls;

	for (int i = 0; i < TRIALS_MAX; i++)
		dnn_candidate_free(c, &e->candidates[i]);
	dnn_graph_free(&e->graph);
	free(e);
}

/* Drops one use; the last one frees the engine. */
void dnn_engine_drop(struct dnn_engine *e)
{
	struct dnn_engine **at = &e->graph.module->dnn_engines;

	if (--e->users)
		return;
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	dnn_engine_free(e);
}

static void search_engines(struct dnn_engine *e)
{
	cudnnBackendDescriptor_t graph = make_operation_graph(&e->graph);

	for (int i = 0; graph && i < e->n_wishes && !e->n_candidates; i++)
		find_candidates(e, graph, &e->wishes[i]);
}

/* Takes ownership of the graph. */
struct dnn_engine *dnn_engine_new(struct dnn_graph *g, const struct dnn_wish *wishes, int n)
{
	struct dnn_engine *e = mem_zalloc(sizeof(*e));

	e->graph = *g;
	e->graph.handle = g->module->dnn;
	memcpy(e->wishes, wishes, (size_t)n * sizeof(*wishes));
	e->n_wishes = n;
	make_engine_key(&e->key, g, wishes, n);
	return e;
}

/* Uses the cached plan, else searches the library's recommendations. */
void dnn_engine_search(struct dnn_engine *e)
{
	load_cached_plan(e);
	if (!e->n_candidates)
		search_engines(e);
	if (!e->n_candidates)
		dnn_fail(e->graph.module, ERR_UNSUPPORTED,
			 e->graph.status ? e->graph.status : CUDNN_STATUS_NOT_SUPPORTED, "no engine", &e->why);
}

void dnn_engine_list(struct dnn_engine *e)
{
	struct cuda_module *m = e->graph.module;

	e->next = m->dnn_engines;
	m->dnn_engines = e;
}

/* ---- trials ---- */

struct dnn_attempt {
	const struct dnn_engine *engine;
	struct trial trial;
	cudnnBackendDescriptor_t plan, pack;
};

static int run_dnn_attempt(void *user, cudaStream_t stream)
{
	const struct dnn_attempt *a = user;
	const struct cuda_module *m = a->engine->graph.module;
	cudnnStatus_t status = m->calls.cudnnSetStream(m->dnn, stream);

	return (int)(status ? status : m->calls.cudnnBackendExecute(m->dnn, a->plan, a->pack));
}

static double time_candidate(void *user, int k)
{
	struct dnn_attempt *a = user;
	const struct dnn_graph *g = &a->engine->graph;
	const struct dnn_candidate *w = &a->engine->candidates[k];
	struct dnn_operands o = { .n = g->n_operands };
	size_t used = 0;
	double ms;

	for (int i = 0; i < o.n; i++) {
		o.uid[i] = g->uid[i];
		o.address[i] = trial_piece(&a->trial, g->bytes[i], &used);
	}
	o.workspace = trial_piece(&a->trial, w->workspace, &used);
	if (dnn_make_pack(&g->module->calls, &a->pack, &o))
		return INFINITY;
	a->plan = w->plan;
	ms = trial_ms(&a->trial, run_dnn_attempt, a);
	g->module->calls.cudnnBackendDestroyDescriptor(a->pack);
	return ms;
}

static size_t count_trial_bytes(const struct dnn_engine *e)
{
	size_t room = 0, bytes = 0;

	for (int i = 0; i < e->n_candidates; i++)
		room = e->candidates[i].workspace > room ? e->candidates[i].workspace : room;
	for (int k = 0; k < e->graph.n_operands; k++)
		bytes += trial_room(e->graph.bytes[k]);
	return bytes + trial_room(room);
}

static int find_fastest_candidate(const struct dnn_engine *e)
{
	struct dnn_attempt a = { .engine = e };
	int best;

	if (e->n_candidates < 2 || !trial_open(&a.trial, count_trial_bytes(e)))
		return 0;
	best = trial_fastest(e->n_candidates, time_candidate, &a);
	trial_close(&a.trial);
	return best;
}

/* Keeps the fastest candidate and caches it for later runs. */
void dnn_engine_settle(struct dnn_engine *e)
{
	const int best = find_fastest_candidate(e);
	const struct dnn_candidate first = e->candidates[0];

	e->candidates[0] = e->candidates[best];
	if (best)
		e->candidates[best] = first;
	for (int i = 1; i < e->n_candidates; i++)
		dnn_candidate_free(&e->graph.module->calls, &e->candidates[i]);
	e->n_candidates = e->n_candidates ? 1 : 0;
	if (e->n_candidates && !e->recalled)
		cache_plan(e);
}

#endif
