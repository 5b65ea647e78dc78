/* SPDX-License-Identifier: Apache-2.0 */
/* onednn.h: the module's only interface to oneDNN (only dnn*.c include dnnl.h and hide the differences between its
 * versions 2 and 3). It has convolutions on NHWC activations, with weights in the layout that an implementation
 * prefers, and products of plain matrices. */
#ifndef DPT_BACKENDS_CPU_ONEDNN_H
#define DPT_BACKENDS_CPU_ONEDNN_H

#include "tracker/base/err.h"

struct dnn;	 /* the library's engine and stream */
struct dnn_conv; /* one implementation of one convolution, and the reorder of its weights */

enum dnn_pass { DNN_FORWARD, DNN_DGRAD, DNN_WGRAD };

struct dnn_conv_spec {
	enum dnn_pass pass;
	bool bf16; /* for activations and packed weights; gradients of weights are always f32 */
	int64_t n, h, w, c, k, p, q;
	int64_t kernel, stride, pad;
};

int dnn_new(struct dnn **ret, struct err *err);
void dnn_free(struct dnn *d);
/* Convolutions and products that are made from now on have sizes and names, but cannot run: code for them is not
 * generated. */
void dnn_plan_only(struct dnn *d);
/* Returns 0, or the error of the first run or pack that failed since the last call. */
int dnn_take_failure(struct dnn *d, struct err *err);
void dnn_version(char *text, size_t n); /* "oneDNN 2.6.3" */
bool dnn_takes_bf16(struct dnn *d);	/* found by trying, not from the processor */

/* impl: the implementation's name, NULL for the library's first choice. Fails if the library offers nothing or only its
 * reference loops. */
int dnn_conv_new(struct dnn_conv **ret, struct dnn *d, const struct dnn_conv_spec *spec, const char *impl,
		 struct err *err);
void dnn_conv_free(struct dnn_conv *c);

/* Returns the name of candidate i, in the library's order; false after the last one. Reference loops are left out. */
bool dnn_conv_candidate(struct dnn *d, const struct dnn_conv_spec *spec, int i, char *name, size_t n);

const char *dnn_conv_impl(const struct dnn_conv *c);
size_t dnn_conv_packed_bytes(const struct dnn_conv *c); /* bytes of the weights, for forward and dgrad */
size_t dnn_conv_workspace_bytes(const struct dnn_conv *c);

/* a, b, out: forward x, packed w, y; dgrad dy, packed w, dx; wgrad x, dy, dw (f32, KRSC). Threads: OpenMP's current
 * number. One caller at a time per dnn. */
struct dnn_conv_args {
	const void *a, *b;
	void *out, *workspace;
};

void dnn_conv_run(struct dnn_conv *c, const struct dnn_conv_args *args);
void dnn_conv_pack(struct dnn_conv *c, const void *krsc_f32, void *packed);

/* out [m,n] = a [m,k] b [k,n] (+ bias [n]), all row-major; a_turned: a is stored as [k,m], b_turned: b as [n,k]. */
struct dnn_matmul; /* one implementation of one product */

struct dnn_matmul_spec {
	int64_t m, n, k; /* each at least 1 */
	bool bf16;	 /* a and b; else f32. The sum and the bias are f32 */
	bool out_bf16;
	bool a_turned, b_turned;
	int64_t a_step, out_step; /* elements from one stored row to the next; 0: no gaps */
	bool bias;
	bool add; /* add to the present content of out */
};

bool dnn_matmul_alike(const struct dnn_matmul_spec *a, const struct dnn_matmul_spec *b);

/* Like the functions of the same name for convolutions. */
int dnn_matmul_new(struct dnn_matmul **ret, struct dnn *d, const struct dnn_matmul_spec *spec, const char *impl,
		   struct err *err);
void dnn_matmul_free(struct dnn_matmul *m);
bool dnn_matmul_candidate(struct dnn *d, const struct dnn_matmul_spec *spec, int i, char *name, size_t n);
const char *dnn_matmul_impl(const struct dnn_matmul *m);
size_t dnn_matmul_workspace_bytes(const struct dnn_matmul *m);

struct dnn_matmul_args {
	const void *a, *b;
	const float *bias; /* NULL without one */
	void *out, *workspace;
};

void dnn_matmul_run(struct dnn_matmul *m, const struct dnn_matmul_args *args);

#endif
