/* blas.h: products by cuBLASLt. It is the only file that knows that library, whose matrices lie in columns. */
#ifndef DPT_BACKENDS_CUDA_BLAS_H
#define DPT_BACKENDS_CUDA_BLAS_H

#include "trainer/backends/cuda/cuda_matmul.h"
#include "trainer/backends/cuda/cuda_module.h"

/* Opens the library for a module; err says in one line why it cannot be used. */
int blas_open(struct cuda_module *m, struct err *err);
void blas_close(struct cuda_module *m);

struct blas_plan;

struct blas_offer {
	bool wide;	  /* operands at multiples of BLAS_ALIGN bytes */
	bool any;	  /* operands of any alignment */
	bool adds_bias;	  /* one of D's type; else the caller does, behind it */
	size_t workspace; /* bytes */
};

#define BLAS_ALIGN 16

/* spec: m, n, k > 0. ERR_UNSUPPORTED: the library is not open, or offers nothing. */
int blas_plan_new(struct blas_plan **ret, struct blas_offer *ret_offer, const struct kernel_env *env,
		  const struct matmul_spec *spec, struct err *err);
void blas_plan_free(struct blas_plan *p); /* NULL is fine */
/* wide: the operands are aligned so. n: for messages. */
int blas_plan_run(struct blas_plan *p, const struct node *n, const struct matmul_operands *o, bool wide,
		  struct err *err);

#endif
