/* cuda_matmul.h: D(m, n) = sum over k of A(m, k) B(k, n), the product behind linear layers, for matrices that lie in rows:
 * by cuBLASLt where it is there and takes the types, else by the tiles of product.h. Planned when a node is prepared:
 * run only enqueues. */
#ifndef DPT_BACKENDS_CUDA_CUDA_MATMUL_H
#define DPT_BACKENDS_CUDA_CUDA_MATMUL_H

#include "trainer/graph/kernel.h"

struct matmul_spec {
	int64_t m, n, k;
	enum dtype in;	 /* of A and B */
	enum dtype out;	 /* of D: in, or its master type */
	bool a_turned;	 /* A lies in memory as [k, m] */
	bool b_turned;	 /* B as [n, k] */
	int64_t a_pitch; /* elements from one row in memory to the next */
	int64_t b_pitch, d_pitch;
	bool bias;	 /* every column of D gets a number, of the master type; a library may round it to D's first */
};

struct matmul_operands {
	const void *a, *b;
	void *d;
	const void *bias; /* with spec.bias */
	bool adds;	  /* to what stands in D */
	void *workspace;  /* matmul_workspace bytes */
	struct stream_handle *stream;
};

struct matmul;

/* n: whose product it is, for messages; it outlives the result. Nothing of the library is needed: where it cannot
 * serve, tiles do. ERR_UNSUPPORTED: too large for both. */
int matmul_new(struct matmul **ret, const struct kernel_env *env, const struct node *n, const struct matmul_spec *spec,
	       struct err *err);
void matmul_free(void *m); /* NULL is fine; a kernel's release */
size_t matmul_workspace(const struct matmul *m);
const struct node *matmul_node(const void *m);
const char *matmul_impl(const void *m); /* a kernel's impl: who computes it */

/* No operand need be aligned beyond its elements. Sums over nothing are 0. */
int matmul_run(const struct matmul *m, const struct matmul_operands *o, struct err *err);

/* matmul_own.cu: the same by tiles; the bias alone, added to D; the bias in D's type. */
size_t matmul_own_workspace(const struct matmul_spec *s);
int matmul_own_run(const struct node *n, const struct matmul_spec *s, const struct matmul_operands *o, struct err *err);
int matmul_own_bias(const struct node *n, const struct matmul_spec *s, const struct matmul_operands *o,
		    struct err *err);
int matmul_own_round(const struct node *n, const struct matmul_spec *s, const struct matmul_operands *o, void *to,
		     struct err *err);

#endif
