/* SPDX-License-Identifier: Apache-2.0 */
/* descriptor.h: shared by the files of the fake cuDNN: descriptors as they were set, tensors read from them, and
 * elements of every type as floats. */
#ifndef DPT_TESTS_FAKES_CUDA_DESCRIPTOR_H
#define DPT_TESTS_FAKES_CUDA_DESCRIPTOR_H

#include <cudnn.h>
#include <stdbool.h>
#include <stdint.h>

#define ATTRIBUTES_MAX 16

struct attribute {
	cudnnBackendAttributeName_t name;
	cudnnBackendAttributeType_t type;
	int64_t count;
	void *values;
};

struct descriptor {
	cudnnBackendDescriptorType_t kind;
	bool finished;
	int n;
	struct attribute at[ATTRIBUTES_MAX];
	int engine;			 /* for configurations and engines */
	const struct descriptor *graph; /* for configurations */
	struct descriptor *config; /* for plans read from a text: the plan's own, including its graph */
};

size_t value_bytes(cudnnBackendAttributeType_t type);

/* Ends the process: the call is undefined. */
void __attribute__((noreturn)) wrong(const char *what);

/* Returns NULL if it was not set. */
const void *find(const struct descriptor *d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
		 int64_t *ret_count);
const struct descriptor *inner(const struct descriptor *d, cudnnBackendAttributeName_t name);

/* A tensor of four dimensions; strides in elements. */
struct operand {
	int64_t uid, dim[4], stride[4];
	cudnnDataType_t type;
	bool virtual, by_value;
};

bool read_operand(struct operand *ret, const struct descriptor *d);
int64_t count_of(const struct operand *t);

float element(const void *at, cudnnDataType_t type, int64_t i);
void put_element(void *at, cudnnDataType_t type, int64_t i, float v);

/* ---- plans as texts (written.c) ---- */

/* The caller frees it. */
char *plan_written(const struct descriptor *config, size_t version);
/* The graph of a plan, freed by tree_free; NULL if this version did not write it. */
struct descriptor *graph_read(const char *text, size_t version, int *ret_engine);
void tree_free(struct descriptor *d); /* with everything it refers to; NULL is allowed */

/* ---- graphs of several operations (steps.c) ---- */

/* Whether it is one, with tensors that match and sizes that the fake supports. */
bool steps_supported(const struct descriptor *graph);

#define STEPS_OPERANDS_MAX 16

/* Input of a run: addresses of the tensors with these numbers. Numbers by value are read when it is enqueued. */
struct steps {
	const struct descriptor *graph;
	int64_t n, uid[STEPS_OPERANDS_MAX];
	void *address[STEPS_OPERANDS_MAX];
	float value[STEPS_OPERANDS_MAX];
};

void steps_bind(struct steps *s);	 /* checks and reads the input of a run */
void steps_run(const void *steps); /* on the device */

#endif
