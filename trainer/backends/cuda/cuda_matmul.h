/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_matmul.h: D(m, n) = sum over k of A(m, k) B(k, n), for row-major matrices: the product of linear layers. Uses
 * cuBLASLt if it is available and supports the types, else the tiles of product.h. It is planned when a node is
 * prepared; run only enqueues. */
#ifndef DPT_BACKENDS_CUDA_CUDA_MATMUL_H
#define DPT_BACKENDS_CUDA_CUDA_MATMUL_H

#include "trainer/graph/kernel.h"

struct matmul_spec {
	int64_t m, n, k;
	enum dtype in;	 /* type of A and B */
	enum dtype out;	 /* type of D: `in` or its master type */
	bool a_turned;	 /* A is stored as [k, m] */
	bool b_turned;	 /* B is stored as [n, k] */
	int64_t a_pitch; /* elements between rows in memory */
	int64_t b_pitch, d_pitch;
	bool bias; /* adds a vector of the master type to every row of D; a library may round it to D's type
		    * first */
};

struct matmul_operands {
	const void *a, *b;
	void *d;
	const void *bias; /* with spec.bias */
	bool adds;	  /* adds to D */
	void *workspace;  /* matmul_workspace bytes */
	struct stream_handle *stream;
};

struct matmul;

/* Plans a product. n: its node, for messages; outlives the result. The library is optional: without it the tiled
 * kernels are used. ERR_UNSUPPORTED: too large for both. */
int matmul_new(struct matmul **ret, const struct kernel_env *env, const struct node *n, const struct matmul_spec *spec,
	       struct err *err);
void matmul_free(void *m); /* NULL is ignored; a kernel's release */
size_t matmul_workspace(const struct matmul *m);
const struct node *matmul_node(const void *m);
const char *matmul_impl(const void *m); /* a kernel's impl: name of the implementation */

/* Operands need only the alignment of their elements. Empty sums are 0. */
void matmul_run(const struct matmul *m, const struct matmul_operands *o);

/* matmul_own.cu: the tiled kernels; adds only the bias to D; converts the bias to D's type. */
size_t matmul_own_workspace(const struct matmul_spec *s);
void matmul_own_run(const struct matmul_spec *s, const struct matmul_operands *o);
void matmul_own_bias(const struct matmul_spec *s, const struct matmul_operands *o);
void matmul_own_round(const struct matmul_spec *s, const struct matmul_operands *o, void *to);

#endif
