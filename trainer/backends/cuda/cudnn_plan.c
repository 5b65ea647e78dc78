/* cudnn_plan.c: see cudnn_plan.h. */
#include "trainer/backends/cuda/cudnn_plan.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/backends/cuda/plan_cache.h"
#include "trainer/backends/cuda/kernel_trial.h"

#ifdef HAVE_CUDNN

#define CONFIGS_MAX 48
#define ALIGN_BYTES 16
#define WISHES_MAX 2
#define KEY_MAX (DNN_KEY_MAX + 2 * WISHES_MAX)
#define AHEAD_MAX 1024	/* plans */
#define THREADS_MAX 32

#define ATTR(name, type, count, value) { CUDNN_ATTR_##name, CUDNN_TYPE_##type, count, value }

static int set_dnn_error(const struct cuda_module *m, int code, cudnnStatus_t status, const char *what, struct err *err)
{
	char said[256] = "";

	m->calls.cudnnGetLastErrorString(said, sizeof(said));
	return err_set(err, code, "cuda: %s: cuDNN: %s%s%s", what, m->calls.cudnnGetErrorString(status),
		       said[0] ? ": " : "", said);
}

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
	return set_dnn_error(m, ERR_IO, status, "opening", err);
}

int dnn_open_for(struct cuda_module *m, const char *json, struct err *err)
{
	const struct dnn_attr attrs[] = { ATTR(DEVICEPROP_JSON_REPRESENTATION, CHAR, (int64_t)strlen(json) + 1, json) };
	struct dnn_graph g = { .module = m };
	int rc = cuda_calls_open(&m->calls, CUDA_CUDNN, err);

	if (rc)
		return rc;
	m->dnn_device = dnn_make(&g, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, attrs, 1);
	return m->dnn_device ? 0 : set_dnn_error(m, ERR_USAGE, g.status, "a device's description", err);
}

static void drop_ahead_plans(struct cuda_module *m);

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

/* ---- descriptors ---- */

static cudnnStatus_t set_attributes(const struct cuda_calls *c, cudnnBackendDescriptor_t d,
				    const struct dnn_attr *attrs, int n)
{
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

	for (int i = 0; !status && i < n; i++)
		status = c->cudnnBackendSetAttribute(d, attrs[i].name, attrs[i].type, attrs[i].count, attrs[i].value);
	return status;
}

/* Creates and finalises a descriptor that the caller owns. */
static cudnnStatus_t make_descriptor(const struct cuda_calls *c, cudnnBackendDescriptor_t *ret,
				     cudnnBackendDescriptorType_t type, const struct dnn_attr *attrs, int n)
{
	cudnnBackendDescriptor_t d = NULL;
	cudnnStatus_t status = c->cudnnBackendCreateDescriptor(type, &d);

	if (!status)
		status = set_attributes(c, d, attrs, n);
	if (!status)
		status = c->cudnnBackendFinalize(d);
	if (status && d)
		c->cudnnBackendDestroyDescriptor(d);
	else if (!status)
		*ret = d;
	return status;
}

cudnnBackendDescriptor_t dnn_make(struct dnn_graph *g, cudnnBackendDescriptorType_t type, const struct dnn_attr *attrs,
				  int n)
{
	cudnnBackendDescriptor_t d = NULL;

	if (!g->status && g->n == DNN_DESCRIPTORS_MAX)
		g->status = CUDNN_STATUS_NOT_SUPPORTED;
	if (!g->status)
		g->status = make_descriptor(&g->module->calls, &d, type, attrs, n);
	if (d)
		g->made[g->n++] = d;
	return d;
}

cudnnDataType_t dnn_type(enum dtype t)
{
	return t == DTYPE_F64 ? CUDNN_DATA_DOUBLE
	       : t == DTYPE_F32 ? CUDNN_DATA_FLOAT
	       : t == DTYPE_BF16 ? CUDNN_DATA_BFLOAT16
				 : CUDNN_DATA_HALF;
}

cudnnBackendDescriptor_t dnn_tensor(struct dnn_graph *g, const struct dnn_tensor *t)
{
	const cudnnBackendTensorReordering_t order = CUDNN_TENSOR_REORDERING_F16x16;
	const int64_t align = ALIGN_BYTES;
	const struct dnn_attr attrs[] = {
		ATTR(TENSOR_UNIQUE_ID, INT64, 1, &t->uid),	 ATTR(TENSOR_DATA_TYPE, DATA_TYPE, 1, &t->type),
		ATTR(TENSOR_BYTE_ALIGNMENT, INT64, 1, &align),	 ATTR(TENSOR_DIMENSIONS, INT64, t->n, t->dim),
		ATTR(TENSOR_STRIDES, INT64, t->n, t->stride),	 ATTR(TENSOR_IS_VIRTUAL, BOOLEAN, 1, &t->virtual),
		ATTR(TENSOR_IS_BY_VALUE, BOOLEAN, 1, &t->by_value),
		ATTR(TENSOR_REORDERING_MODE, TENSOR_REORDERING_MODE, 1, &order),
	};

	return dnn_make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR, attrs, t->swizzled ? 8 : 7);
}

void dnn_op(struct dnn_graph *g, cudnnBackendDescriptorType_t type, const struct dnn_attr *attrs, int n)
{
	cudnnBackendDescriptor_t d = dnn_make(g, type, attrs, n);

	if (d && g->n_ops < DNN_OPS_MAX)
		g->ops[g->n_ops++] = d;
}

static void free_graph_descriptors(struct dnn_graph *g)
{
	while (g->n)
		g->module->calls.cudnnBackendDestroyDescriptor(g->made[--g->n]);
}

/* ---- engines ---- */

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
	cudnnStatus_t status = make_descriptor(c, &heuristic, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, attrs,
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

/* An engine configuration and its compiled plan. */
struct dnn_candidate {
	cudnnBackendDescriptor_t config, plan;
	size_t workspace;
	bool tensor_cores;
};

/* A graph with its plan, shared by all nodes with the same graph. */
struct dnn_engine {
	struct dnn_engine *next;
	int users; /* number of plans, plus one if it was made ahead */
	struct dnn_graph graph;
	struct dnn_wish wishes[WISHES_MAX];
	int n_wishes;
	struct dnn_candidate candidates[TRIALS_MAX]; /* the first is in use; the others are candidates for timing */
	int n_candidates;		    /* 0: none; why has the reason */
	struct err why;
	bool recalled, ahead;
	int64_t key[KEY_MAX]; /* key of the graph, then of the wishes */
};

static void make_engine_key(int64_t (*ret)[KEY_MAX], const struct dnn_graph *g, const struct dnn_wish *wishes, int n)
{
	memset(*ret, 0, sizeof(*ret));
	memcpy(*ret, g->key, sizeof(g->key));
	for (int i = 0; i < n && i < WISHES_MAX; i++) {
		const struct dnn_wish *w = &wishes[i];

		(*ret)[DNN_KEY_MAX + 2 * i] = (int64_t)w->workspace_max;
		(*ret)[DNN_KEY_MAX + 2 * i + 1] = 1 | w->tensor_cores << 1 | w->plain << 2 | w->deterministic << 3 |
						  w->direct << 4;
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

static void free_candidate(const struct cuda_calls *c, struct dnn_candidate *w)
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
	const struct dnn_attr attrs[] = {
		ATTR(EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, &config), make_device_attr(&p->graph)
	};
	cudnnBackendDescriptor_t plan = NULL;
	int64_t bytes = 0;

	if (!fits_wish(notes, w) ||
	    make_descriptor(&m->calls, &plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, attrs, 2))
		return false;
	if (!read_workspace(&m->calls, plan, &bytes) || (size_t)bytes > w->workspace_max) {
		m->calls.cudnnBackendDestroyDescriptor(plan);
		return false;
	}
	p->candidates[p->n_candidates++] = (struct dnn_candidate){ config, plan, (size_t)bytes,
					    notes & 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE };
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
static bool parse_dnn_plan(const struct dnn_engine *e, struct dnn_candidate *ret, const char *text, size_t n)
{
	const struct cuda_calls *c = &e->graph.module->calls;
	const struct dnn_attr attrs[] = {
		ATTR(EXECUTION_PLAN_JSON_REPRESENTATION, CHAR, (int64_t)n, text), make_device_attr(&e->graph)
	};
	cudnnBackendDescriptor_t plan = NULL;
	int64_t bytes = 0;

	if (make_descriptor(c, &plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, attrs, 2))
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
	if (n < 2 || !parse_dnn_plan(e, &e->candidates[0], known + 1, n - 1))
		return;
	e->recalled = true;
	e->n_candidates = 1;
	e->candidates[0].tensor_cores = known[0] == '1';
}

/* Serialises a plan; the first byte is left for the caller. NULL if the library cannot. */
static char *serialise_plan(const struct dnn_engine *e, const struct dnn_candidate *w, size_t *ret_n)
{
	const struct cuda_calls *c = &e->graph.module->calls;
	int64_t n = 0, got = 0;
	char *text;

	if (c->cudnnBackendGetAttribute(w->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, &n,
					NULL))
		return NULL;
	text = malloc((size_t)n + 1);
	if (text && c->cudnnBackendGetAttribute(w->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
						n, &got, text + 1)) {
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
	text = serialise_plan(e, &e->candidates[0], &n);
	if (!text)
		return;
	text[0] = e->candidates[0].tensor_cores ? '1' : '0';
	format_cache_key(&key, e);
	plan_cache_put(e->graph.module->kept, key, text, n);
	free(text);
}

static struct dnn_engine *find_same_engine(const struct dnn_graph *g, const struct dnn_wish *wishes, int n)
{
	struct dnn_engine *e = g->module->dnn_engines;
	int64_t key[KEY_MAX];

	make_engine_key(&key, g, wishes, n);
	while (e && memcmp(e->key, key, sizeof(key)) != 0)
		e = e->next;
	return e;
}

static void free_engine(struct dnn_engine *e)
{
	const struct cuda_calls *c = &e->graph.module->calls;

	for (int i = 0; i < TRIALS_MAX; i++)
		free_candidate(c, &e->candidates[i]);
	free_graph_descriptors(&e->graph);
	free(e);
}

/* Drops one use; the last one frees the engine. */
static void drop_engine_use(struct dnn_engine *e)
{
	struct dnn_engine **at = &e->graph.module->dnn_engines;

	if (--e->users)
		return;
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	free_engine(e);
}

static void search_engines(struct dnn_engine *e)
{
	cudnnBackendDescriptor_t graph = make_operation_graph(&e->graph);

	for (int i = 0; graph && i < e->n_wishes && !e->n_candidates; i++)
		find_candidates(e, graph, &e->wishes[i]);
}

/* Takes ownership of the graph. NULL when out of memory. */
static struct dnn_engine *new_dnn_engine(struct dnn_graph *g, const struct dnn_wish *wishes, int n)
{
	struct dnn_engine *e = calloc(1, sizeof(*e));

	if (!e) {
		free_graph_descriptors(g);
		return NULL;
	}
	e->graph = *g;
	e->graph.handle = g->module->dnn;
	memcpy(e->wishes, wishes, (size_t)n * sizeof(*wishes));
	e->n_wishes = n;
	make_engine_key(&e->key, g, wishes, n);
	return e;
}

/* Uses the cached plan, else searches the library's recommendations. */
static void find_plan(struct dnn_engine *e)
{
	load_cached_plan(e);
	if (!e->n_candidates)
		search_engines(e);
	if (!e->n_candidates)
		set_dnn_error(e->graph.module, ERR_UNSUPPORTED,
			e->graph.status ? e->graph.status : CUDNN_STATUS_NOT_SUPPORTED, "no engine", &e->why);
}

static void list_engine(struct dnn_engine *e)
{
	struct cuda_module *m = e->graph.module;

	e->next = m->dnn_engines;
	m->dnn_engines = e;
}

static cudnnStatus_t make_pack(const struct cuda_calls *c, cudnnBackendDescriptor_t *ret, const struct dnn_operands *o)
{
	const struct dnn_attr attrs[] = {
		ATTR(VARIANT_PACK_UNIQUE_IDS, INT64, o->n, o->uid),
		ATTR(VARIANT_PACK_DATA_POINTERS, VOID_PTR, o->n, o->address),
		ATTR(VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &o->workspace),
	};

	return make_descriptor(c, ret, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, attrs, 3);
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
	if (make_pack(&g->module->calls, &a->pack, &o))
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
static void settle_engine(struct dnn_engine *e)
{
	const int best = find_fastest_candidate(e);
	const struct dnn_candidate first = e->candidates[0];

	e->candidates[0] = e->candidates[best];
	if (best)
		e->candidates[best] = first;
	for (int i = 1; i < e->n_candidates; i++)
		free_candidate(&e->graph.module->calls, &e->candidates[i]);
	e->n_candidates = e->n_candidates ? 1 : 0;
	if (e->n_candidates && !e->recalled)
		cache_plan(e);
}

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
	struct dnn_engine *e = a->n < AHEAD_MAX ? new_dnn_engine(g, wishes, n) : NULL;

	for (int i = 0; e && i < a->n; i++)
		if (!memcmp(a->noted[i]->key, e->key, sizeof(e->key))) {
			free_engine(e);
			return;
		}
	if (e)
		a->noted[a->n++] = e;
	else if (a->n == AHEAD_MAX)
		free_graph_descriptors(g); /* created later, when needed */
}

static void find_noted_plans(struct dnn_ahead *a, cudnnHandle_t handle)
{
	for (int i; (i = atomic_fetch_add(&a->next, 1)) < a->n;) {
		a->noted[i]->graph.handle = handle;
		find_plan(a->noted[i]);
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
	char *text = serialise_plan(e, w, &n);

	*w = (struct dnn_candidate){ .tensor_cores = made.tensor_cores };
	if (text)
		parse_dnn_plan(e, w, text + 1, n - 1);
	free(text);
	free_candidate(&e->graph.module->calls, &(struct dnn_candidate){ made.config, made.plan, 0, false });
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
		find_plan(e);
}

static void drop_ahead_plans(struct cuda_module *m)
{
	for (struct dnn_engine *e = m->dnn_engines, *next; e; e = next) {
		next = e->next;
		if (e->ahead) {
			e->ahead = false;
			drop_engine_use(e);
		}
	}
}

void dnn_ahead_begin(void *module)
{
	struct cuda_module *m = module;

	drop_ahead_plans(m);
	if (m->dnn || m->dnn_device)
		m->dnn_ahead = calloc(1, sizeof(*m->dnn_ahead));
	if (m->dnn_ahead)
		m->dnn_ahead->module = m;
}

static void list_noted_engines(struct dnn_ahead *a)
{
	for (int i = 0; i < a->n; i++) {
		struct dnn_engine *e = a->noted[i];

		if (e->graph.handle != a->module->dnn)
			adopt_engine(e);
		settle_engine(e);
		e->ahead = true;
		e->users = 1;
		list_engine(e);
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
	       !pthread_create(&thread[n], NULL, find_with_own_handle, a))
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
	struct dnn_engine *e = find_same_engine(g, wishes, n);

	if (e) {
		free_graph_descriptors(g);
	} else if (g->module->dnn_ahead) {
		note_graph(g, wishes, n);
		return err_set(err, ERR_UNSUPPORTED, "cuda: cuDNN plans are collected for a later search");
	} else {
		e = new_dnn_engine(g, wishes, n);
		if (!e)
			return err_set(err, ERR_NOMEM, "cuda: out of memory: cuDNN plan");
		find_plan(e);
		settle_engine(e);
		if (e->n_candidates)
			list_engine(e);
	}
	if (!e->n_candidates) {
		int rc = err_set(err, e->why.code, "%s", e->why.text);

		if (!e->ahead)
			free_engine(e);
		return rc;
	}
	*ret = e;
	return 0;
}

int dnn_plan_new(struct dnn_plan **ret, struct dnn_graph *g, const struct dnn_wish *wishes, int n, struct err *err)
{
	struct dnn_plan *p = calloc(1, sizeof(*p));
	int rc;

	if (!p) {
		free_graph_descriptors(g);
		return err_set(err, ERR_NOMEM, "cuda: out of memory: cuDNN plan");
	}
	rc = find_engine(&p->engine, g, wishes, n, err);
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
	drop_engine_use(p->engine);
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

/* ---- runs ---- */

/* A finalised pack is immutable, so other addresses need a new one; steps always use the same addresses. */
static cudnnStatus_t update_pack(struct dnn_plan *p, const struct dnn_operands *o)
{
	const struct cuda_calls *c = &p->engine->graph.module->calls;

	if (p->pack && o->workspace == p->room &&
	    !memcmp(p->address, o->address, (size_t)o->n * sizeof(o->address[0])))
		return CUDNN_STATUS_SUCCESS;
	if (p->pack)
		c->cudnnBackendDestroyDescriptor(p->pack);
	p->pack = NULL;
	p->room = o->workspace;
	memcpy(p->address, o->address, sizeof(p->address));
	return make_pack(c, &p->pack, o);
}

int dnn_plan_run(struct dnn_plan *p, const struct node *n, const struct dnn_operands *o, struct err *err)
{
	const struct cuda_module *m = p->engine->graph.module;
	cudnnStatus_t status = update_pack(p, o);

	if (!status)
		status = m->calls.cudnnSetStream(m->dnn, (cudaStream_t)o->stream);
	if (!status)
		status = m->calls.cudnnBackendExecute(m->dnn, p->engine->candidates[0].plan, p->pack);
	return status ? set_dnn_error(m, ERR_IO, status, n->name, err) : 0;
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
