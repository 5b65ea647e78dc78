/* descriptor.h: what the files of the fake cuDNN share: descriptors as they were set, tensors read from them, and
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
	int engine;			 /* of configurations and engines */
	const struct descriptor *graph; /* of configurations */
	struct descriptor *config; /* of plans that were read from a text: its own, graph included */
};

size_t value_bytes(cudnnBackendAttributeType_t type);

/* Ends the process: what was asked is undefined. */
void __attribute__((noreturn)) wrong(const char *what);

/* NULL: it was not set. */
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

/* The caller's to free. */
char *plan_written(const struct descriptor *config, size_t version);
/* The graph of a plan, tree_free's to free; NULL: none that this version has written. */
struct descriptor *graph_read(const char *text, size_t version, int *ret_engine);
void tree_free(struct descriptor *d); /* with all that it names; NULL is fine */

/* ---- graphs of several operations (steps.c) ---- */

/* Whether it is one, whose tensors fit each other and have sizes that the fake takes. */
bool steps_supported(const struct descriptor *graph);

#define STEPS_OPERANDS_MAX 16

/* What a run is given: where the tensors of these numbers lie. Numbers by value are read when it is enqueued. */
struct steps {
	const struct descriptor *graph;
	int64_t n, uid[STEPS_OPERANDS_MAX];
	void *address[STEPS_OPERANDS_MAX];
	float value[STEPS_OPERANDS_MAX];
};

void steps_bind(struct steps *s);	 /* checks and reads what a run needs */
void steps_run(const void *steps); /* on the device */

#endif
