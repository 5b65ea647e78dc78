/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn.c: cuDNN's backend descriptors on the fake device: they are stored as they are set, and a plan computes what
 * they specify, with plain loops: single convolutions here, graphs of several operations in steps.c. There are four
 * engines, so that a wrong choice shows: two with tensor cores, which round fp32 to TF32, the first not deterministic;
 * a transform; plain sums.
 * $DPTRAIN_FAKE_CUDNN_VERSION: its version; each query for engines is noted (enqueue.h). Undefined calls end the
 * process with a line. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fakes/cuda/descriptor.h"
#include "tests/fakes/cuda/enqueue.h"
#include "tests/fakes/cuda/tf32.h"
#include "trainer/ops/cast/float16.h"

#define OPERANDS 3

static const struct engine {
	unsigned notes[3];
	int n_notes;
	int64_t workspace;
} engines[] = {
	{ { CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC }, 2, 1 << 20 },
	{ { CUDNN_NUMERICAL_NOTE_TENSOR_CORE }, 1, 4096 },
	{ { CUDNN_NUMERICAL_NOTE_WINOGRAD }, 1, 65536 },
	{ { 0 }, 0, 8192 },
};

#define ENGINES ((int)(sizeof(engines) / sizeof(engines[0])))

static _Thread_local char last_error[256];

static cudnnStatus_t refuse(cudnnStatus_t status, const char *why)
{
	snprintf(last_error, sizeof(last_error), "%s", why);
	return status;
}

void wrong(const char *what)
{
	fprintf(stderr, "fake cuDNN: %s\n", what);
	abort();
}

size_t cudnnGetVersion(void)
{
	const char *given = getenv("DPTRAIN_FAKE_CUDNN_VERSION");

	return given ? (size_t)strtol(given, NULL, 10) : 91900;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
	return status == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_BAD_PARAM";
}

void cudnnGetLastErrorString(char *text, size_t n)
{
	snprintf(text, n, "%s", last_error);
	last_error[0] = '\0';
}

struct cudnnContext {
	cudaStream_t stream;
	atomic_int at_work; /* threads that are using it */
};

/* Around long work with a handle, which only one thread may use at a time. */
static void handle_enter(cudnnHandle_t handle)
{
	if (handle && atomic_fetch_add(&handle->at_work, 1))
		wrong("a handle is used by two threads at a time");
}

static void handle_leave(cudnnHandle_t handle)
{
	if (handle)
		atomic_fetch_sub(&handle->at_work, 1);
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
	fake_note("handle");
	*handle = calloc(1, sizeof(struct cudnnContext));
	return *handle ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
	free(handle);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
	handle->stream = stream;
	return CUDNN_STATUS_SUCCESS;
}

/* ---- descriptors ---- */

size_t value_bytes(cudnnBackendAttributeType_t type)
{
	switch (type) {
	case CUDNN_TYPE_INT64:
	case CUDNN_TYPE_DOUBLE:
		return 8;
	case CUDNN_TYPE_HANDLE:
	case CUDNN_TYPE_VOID_PTR:
	case CUDNN_TYPE_BACKEND_DESCRIPTOR:
		return sizeof(void *);
	case CUDNN_TYPE_BOOLEAN:
	case CUDNN_TYPE_CHAR:
		return 1;
	default:
		return 4;
	}
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind, cudnnBackendDescriptor_t *ret)
{
	struct descriptor *d = calloc(1, sizeof(*d));

	if (!d)
		return CUDNN_STATUS_ALLOC_FAILED;
	d->kind = kind;
	*ret = d;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t desc)
{
	struct descriptor *d = desc;

	if (d->config)
		tree_free((struct descriptor *)d->config->graph);
	free(d->config);
	for (int i = 0; i < d->n; i++)
		free(d->at[i].values);
	free(d);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name,
				       cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
	struct descriptor *d = desc;
	const size_t bytes = value_bytes(type) * (size_t)count;
	struct attribute *a = &d->at[d->n];

	if (d->finished)
		return refuse(CUDNN_STATUS_BAD_PARAM, "the descriptor is finalized");
	if (d->n == ATTRIBUTES_MAX || count < 1 || !values)
		return refuse(CUDNN_STATUS_BAD_PARAM, "an attribute without a value");
	*a = (struct attribute){ name, type, count, malloc(bytes) };
	if (!a->values)
		return CUDNN_STATUS_ALLOC_FAILED;
	memcpy(a->values, values, bytes);
	d->n++;
	return CUDNN_STATUS_SUCCESS;
}

const void *find(const struct descriptor *d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
		 int64_t *ret_count)
{
	for (int i = 0; i < d->n; i++)
		if (d->at[i].name == name && d->at[i].type == type) {
			if (ret_count)
				*ret_count = d->at[i].count;
			return d->at[i].values;
		}
	return NULL;
}

const struct descriptor *inner(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
	const struct descriptor *const *p =
		(const struct descriptor *const *)find(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, NULL);

	return p ? *p : NULL;
}

/* ---- convolutions ---- */

/* Where the three operations store their operands. */
static const struct names {
	cudnnBackendDescriptorType_t kind;
	cudnnBackendAttributeName_t window, operand[OPERANDS]; /* x, w, y */
	cudnnBackendAttributeName_t alpha, beta;
	int result;
} convolutions[] = {
	{ CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
	  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
	  { CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
	    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y },
	  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
	  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
	  2 },
	{ CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
	  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
	  { CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
	    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY },
	  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
	  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
	  0 },
	{ CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
	  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
	  { CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
	    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY },
	  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
	  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
	  1 },
};

static const struct names *names_of(const struct descriptor *op)
{
	for (size_t i = 0; op && i < sizeof(convolutions) / sizeof(convolutions[0]); i++)
		if (convolutions[i].kind == op->kind)
			return &convolutions[i];
	return NULL;
}

struct convolution {
	struct operand t[OPERANDS];
	int64_t stride[2], pad[2];
	int result;
	bool tf32;
	void *address[OPERANDS], *workspace;
	int64_t workspace_bytes;
	bool slow;
};

bool read_operand(struct operand *ret, const struct descriptor *d)
{
	int64_t n = 0, strides = 0;
	const int64_t *uid = find(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, NULL);
	const int64_t *align = find(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, NULL);
	const int64_t *dim = find(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, &n);
	const int64_t *stride = find(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, &strides);
	const cudnnDataType_t *type = find(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, NULL);
	const bool *virtual = find(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, NULL);
	const bool *by_value = find(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, NULL);

	if (!uid || !align || *align % 2 || !type || n != 4 || strides != 4)
		return false;
	ret->uid = *uid;
	ret->type = *type;
	ret->virtual = virtual && *virtual;
	ret->by_value = by_value && *by_value;
	memcpy(ret->dim, dim, sizeof(ret->dim));
	memcpy(ret->stride, stride, sizeof(ret->stride));
	return true;
}

/* Reads everything that computing an operation needs; returns false if something is missing. */
static bool read_convolution(struct convolution *ret, const struct descriptor *op)
{
	const struct names *names = names_of(op);
	const struct descriptor *window = names ? inner(op, names->window) : NULL;
	const int64_t *stride, *pad, *post;
	const float *alpha, *beta;

	if (!window)
		return false;
	stride = find(window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, NULL);
	pad = find(window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, NULL);
	post = find(window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, NULL);
	alpha = find(op, names->alpha, CUDNN_TYPE_FLOAT, NULL);
	beta = find(op, names->beta, CUDNN_TYPE_FLOAT, NULL);
	if (!stride || !pad || !post || memcmp(pad, post, sizeof(ret->pad)))
		return false;
	if (!alpha || *alpha != 1 || !beta || *beta != 0)
		return false;
	memcpy(ret->stride, stride, sizeof(ret->stride));
	memcpy(ret->pad, pad, sizeof(ret->pad));
	ret->result = names->result;
	for (int i = 0; i < OPERANDS; i++) {
		const struct descriptor *t = inner(op, names->operand[i]);

		if (!t || !read_operand(&ret->t[i], t))
			return false;
	}
	return true;
}

/* Consistent sizes, one type, channels innermost, and in 16 bits a multiple of 8 of them. */
static bool is_supported(const struct convolution *c)
{
	const struct operand *x = &c->t[0], *w = &c->t[1], *y = &c->t[2];
	const bool low = x->type == CUDNN_DATA_BFLOAT16 || x->type == CUDNN_DATA_HALF;

	if (x->type != w->type || x->type != y->type || (!low && x->type != CUDNN_DATA_FLOAT))
		return false;
	if (x->dim[0] != y->dim[0] || x->dim[1] != w->dim[1] || y->dim[1] != w->dim[0])
		return false;
	for (int i = 0; i < 2; i++)
		if (y->dim[2 + i] != (x->dim[2 + i] + 2 * c->pad[i] - w->dim[2 + i]) / c->stride[i] + 1)
			return false;
	for (int i = 0; i < OPERANDS; i++)
		if (c->t[i].stride[1] != 1)
			return false;
	return !low || (x->dim[1] % 8 == 0 && y->dim[1] % 8 == 0);
}

int64_t count_of(const struct operand *t)
{
	return t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];
}

float element(const void *at, cudnnDataType_t type, int64_t i)
{
	return type == CUDNN_DATA_FLOAT ? ((const float *)at)[i]
	       : type == CUDNN_DATA_HALF ? f16_to_float(((const uint16_t *)at)[i])
					 : bf16_to_float(((const uint16_t *)at)[i]);
}

void put_element(void *at, cudnnDataType_t type, int64_t i, float v)
{
	if (type == CUDNN_DATA_FLOAT)
		((float *)at)[i] = v;
	else
		((uint16_t *)at)[i] = type == CUDNN_DATA_HALF ? f16_from_float(v) : bf16_from_float(v);
}

/* Position in memory of the at-th element of [number][height][width][channel]. */
static int64_t place_of(const struct operand *t, int64_t at)
{
	const int64_t k = at % t->dim[1], w = at / t->dim[1] % t->dim[3], h = at / (t->dim[1] * t->dim[3]) % t->dim[2];
	const int64_t n = at / (t->dim[1] * t->dim[3] * t->dim[2]);

	return n * t->stride[0] + k * t->stride[1] + h * t->stride[2] + w * t->stride[3];
}

/* [number][height][width][channel] in f32; for the result, zeros. */
static float *unpacked(const struct convolution *c, int which)
{
	const struct operand *t = &c->t[which];
	float *to = calloc((size_t)count_of(t) + 1, sizeof(*to));

	if (!to)
		wrong("out of memory");
	for (int64_t i = 0; i < count_of(t) && which != c->result; i++) {
		to[i] = element(c->address[which], t->type, place_of(t, i));
		if (c->tf32)
			to[i] = to_tf32(to[i]);
	}
	return to;
}

static void pack(const struct convolution *c, const float *from)
{
	const struct operand *t = &c->t[c->result];

	for (int64_t i = 0; i < count_of(t); i++)
		put_element(c->address[c->result], t->type, place_of(t, i), from[i]);
}

/* One pixel of x under one position of the window of one pixel of y, all channels: adds to the result's operand. */
static void meet(const struct convolution *c, float *x, float *w, float *y)
{
	const int64_t channels = c->t[0].dim[1], places = c->t[1].dim[2] * c->t[1].dim[3] * channels;

	for (int64_t k = 0; k < c->t[1].dim[0]; k++) {
		float *of = w + k * places, sum = 0;

		for (int64_t i = 0; i < channels; i++) {
			if (c->result == 2)
				sum += x[i] * of[i];
			else if (c->result == 0)
				x[i] += y[k] * of[i];
			else
				of[i] += y[k] * x[i];
		}
		y[k] += sum;
	}
}

static void convolve(const void *operands)
{
	const struct convolution *c = operands;
	const struct operand *tx = &c->t[0], *tw = &c->t[1], *ty = &c->t[2];
	const int64_t h = tx->dim[2], v = tx->dim[3], p = ty->dim[2], q = ty->dim[3], channels = tx->dim[1];
	float *all[OPERANDS];

	if (c->slow)
		usleep(5000);
	memset(c->workspace, 0xff, (size_t)c->workspace_bytes);
	for (int i = 0; i < OPERANDS; i++)
		all[i] = unpacked(c, i);
	for (int64_t at = 0; at < ty->dim[0] * p * q; at++)
		for (int64_t place = 0; place < tw->dim[2] * tw->dim[3]; place++) {
			const int64_t i = at / q % p * c->stride[0] - c->pad[0] + place / tw->dim[3];
			const int64_t j = at % q * c->stride[1] - c->pad[1] + place % tw->dim[3];

			if (i >= 0 && i < h && j >= 0 && j < v)
				meet(c, all[0] + ((at / (p * q) * h + i) * v + j) * channels, all[1] + place * channels,
				     all[2] + at * ty->dim[1]);
		}
	pack(c, all[c->result]);
	for (int i = 0; i < OPERANDS; i++)
		free(all[i]);
}

/* ---- engines and plans ---- */

/* Any device: engines and workspaces do not depend on it here. */
static bool describes_device(const struct descriptor *d)
{
	int64_t n = 0;
	const char *json = find(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, &n);

	return json && !json[n - 1] && strstr(json, "\"deviceVer\"") && strstr(json, "\"multiProcessorCount\"");
}

/* The configuration of a plan. */
static const struct descriptor *config_of(const struct descriptor *plan)
{
	return plan->config ? plan->config : inner(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
}

/* Returns false if its text is not a plan of this version. */
static bool read_text(struct descriptor *plan)
{
	int64_t n = 0;
	const char *text =
		find(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, &n);
	char *ended = text ? strndup(text, (size_t)n) : NULL;

	if (!text)
		return true;
	plan->config = calloc(1, sizeof(*plan->config));
	if (!ended || !plan->config)
		wrong("out of memory");
	plan->config->graph = graph_read(ended, cudnnGetVersion(), &plan->config->engine);
	free(ended);
	return plan->config->graph && plan->config->engine >= 0 && plan->config->engine < ENGINES;
}

static cudnnStatus_t give_text(const struct descriptor *plan, int64_t asked, int64_t *ret_n, char *ret)
{
	char *text = plan_written(config_of(plan), cudnnGetVersion());

	*ret_n = (int64_t)strlen(text) + 1;
	if (ret && asked < *ret_n)
		*ret_n = asked;
	if (ret)
		memcpy(ret, text, (size_t)*ret_n);
	free(text);
	return CUDNN_STATUS_SUCCESS;
}

/* Returns NULL if none was set. */
static cudnnHandle_t handle_of(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
	const cudnnHandle_t *handle = d ? find(d, name, CUDNN_TYPE_HANDLE, NULL) : NULL;

	return handle ? *handle : NULL;
}

/* Works long enough that others come to the same handle. */
static void work_with(cudnnHandle_t handle)
{
	handle_enter(handle);
	usleep(50);
	handle_leave(handle);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t desc)
{
	struct descriptor *d = desc;
	struct operand t;
	struct convolution c;

	if (d->kind == CUDNN_BACKEND_TENSOR_DESCRIPTOR && !read_operand(&t, d))
		return refuse(CUDNN_STATUS_BAD_PARAM, "a tensor lacks something");
	if (names_of(d) && !read_convolution(&c, d))
		return refuse(CUDNN_STATUS_BAD_PARAM, "a convolution lacks something");
	if (d->kind == CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR && !describes_device(d))
		return refuse(CUDNN_STATUS_BAD_PARAM, "a device's properties lack something");
	if (d->kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && !read_text(d))
		return refuse(CUDNN_STATUS_BAD_PARAM, "a text that is not a plan of this version");
	if (d->kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
		work_with(handle_of(d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE));
	d->finished = true;
	return CUDNN_STATUS_SUCCESS;
}

/* All engines; for the fallback only the last one; none for unsupported operations. */
static cudnnStatus_t results(const struct descriptor *heuristic, int64_t asked, int64_t *ret_n, void *ret)
{
	const cudnnBackendHeurMode_t *mode = find(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, NULL);
	const struct descriptor *graph = inner(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
	const struct descriptor *op = graph ? inner(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS) : NULL;
	struct descriptor **configs = ret;
	struct convolution c;

	fake_note("engines");
	work_with(handle_of(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE));
	*ret_n = 0;
	if (!mode || !op || (!steps_supported(graph) && !read_convolution(&c, op)))
		return refuse(CUDNN_STATUS_BAD_PARAM, "a graph without a known operation");
	if (!steps_supported(graph) && !is_supported(&c))
		return refuse(CUDNN_STATUS_NOT_SUPPORTED, "no engine supports it");
	for (int i = *mode == CUDNN_HEUR_MODE_FALLBACK ? ENGINES - 1 : 0; i < ENGINES && *ret_n < asked; i++) {
		configs[*ret_n]->engine = i;
		configs[*ret_n]->graph = graph;
		++*ret_n;
	}
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name,
				       cudnnBackendAttributeType_t type, int64_t asked, int64_t *ret_n, void *ret)
{
	const struct descriptor *d = desc;

	(void)type;
	switch (name) {
	case CUDNN_ATTR_ENGINEHEUR_RESULTS:
		return results(d, asked, ret_n, ret);
	case CUDNN_ATTR_ENGINECFG_ENGINE:
		(*(struct descriptor **)ret)->engine = d->engine;
		*ret_n = 1;
		return CUDNN_STATUS_SUCCESS;
	case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
		*ret_n = engines[d->engine].n_notes;
		memcpy(ret, engines[d->engine].notes, (size_t)*ret_n * sizeof(engines[0].notes[0]));
		return CUDNN_STATUS_SUCCESS;
	case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
		*(int64_t *)ret = engines[config_of(d)->engine].workspace;
		*ret_n = 1;
		return CUDNN_STATUS_SUCCESS;
	case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION:
		return give_text(d, asked, ret_n, ret);
	default:
		return refuse(CUDNN_STATUS_NOT_SUPPORTED, "an attribute that the fake does not have");
	}
}

/* Contents of a variant pack. */
struct given {
	const int64_t *uids;
	void *const *at;
	int64_t n;
	void *workspace;
};

static struct given read_pack(const struct descriptor *pack)
{
	int64_t n = 0, pointers = 0;
	const int64_t *uids = find(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, &n);
	void *const *at = find(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, &pointers);
	void *const *room = find(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, NULL);

	if (!uids || !at || n != pointers || !room || !*room)
		wrong("a pack without operands or workspace");
	return (struct given){ uids, at, n, *room };
}

/* Sets the operands' addresses, by their numbers. */
static void bind(struct convolution *c, const struct given *g)
{
	c->workspace = g->workspace;
	for (int i = 0; i < OPERANDS; i++) {
		for (int64_t k = 0; k < g->n; k++)
			if (g->uids[k] == c->t[i].uid)
				c->address[i] = g->at[k];
		if (!c->address[i] || (uintptr_t)c->address[i] % 16)
			wrong("an operand is missing, or less aligned than its descriptor says");
	}
}

static void enqueue_steps(cudaStream_t stream, const struct descriptor *graph, const struct given *g)
{
	struct steps s = { .graph = graph, .n = g->n };

	if (g->n > STEPS_OPERANDS_MAX)
		wrong("too many operands");
	memcpy(s.uid, g->uids, (size_t)g->n * sizeof(s.uid[0]));
	memcpy(s.address, g->at, (size_t)g->n * sizeof(s.address[0]));
	steps_bind(&s);
	fake_enqueue(stream, steps_run, &s, sizeof(s));
}

/* $DPTRAIN_FAKE_CUDNN_SLOW: the number of an engine that is slow. */
static int slow_engine(void)
{
	const char *given = getenv("DPTRAIN_FAKE_CUDNN_SLOW");

	return given ? (int)strtol(given, NULL, 10) : -1;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack)
{
	const struct descriptor *config = config_of(plan);
	struct convolution c = { 0 };
	struct given given;

	if (!config || !((struct descriptor *)plan)->finished || !((struct descriptor *)pack)->finished)
		return refuse(CUDNN_STATUS_BAD_PARAM, "a plan or pack that is not finalized");
	if (handle_of(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE) != handle)
		wrong("a plan is run with another handle than it was made with");
	given = read_pack(pack);
	if (steps_supported(config->graph)) {
		enqueue_steps(handle->stream, config->graph, &given);
		return CUDNN_STATUS_SUCCESS;
	}
	read_convolution(&c, inner(config->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS));
	c.tf32 = config->engine < 2 && c.t[0].type == CUDNN_DATA_FLOAT;
	c.workspace_bytes = engines[config->engine].workspace;
	c.slow = config->engine == slow_engine();
	bind(&c, &given);
	fake_enqueue(handle->stream, convolve, &c, sizeof(c));
	return CUDNN_STATUS_SUCCESS;
}
