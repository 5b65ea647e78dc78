/* SPDX-License-Identifier: Apache-2.0 */
/* blas.h: matrix products by cuBLASLt, whose matrices are column-major. Only this file uses that library. */
#ifndef DPT_BACKENDS_CUDA_BLAS_H
#define DPT_BACKENDS_CUDA_BLAS_H

#include "trainer/backends/cuda/cuda_matmul.h"
#include "trainer/backends/cuda/cuda_module.h"

/* Opens the library for a module; on failure err has the reason in one line. */
int blas_open(struct cuda_module *m, struct err *err);
void blas_close(struct cuda_module *m);

struct blas_plan;

struct blas_offer {
	bool wide;	  /* supports operands aligned to BLAS_ALIGN bytes */
	bool any;	  /* supports operands of any alignment */
	bool adds_bias;	  /* adds a bias of D's type; else the caller adds it afterwards */
	size_t workspace; /* bytes */
};

#define BLAS_ALIGN 16

/* Creates a plan. spec: m, n, k > 0. ERR_UNSUPPORTED: the library is not open or has no algorithm. */
int blas_plan_new(struct blas_plan **ret, struct blas_offer *ret_offer, const struct kernel_env *env,
		  const struct matmul_spec *spec, struct err *err);
void blas_plan_free(struct blas_plan *p); /* NULL is fine */
/* wide: all operands are aligned to BLAS_ALIGN. n: for messages. */
void blas_plan_run(struct blas_plan *p, const struct node *n, const struct matmul_operands *o, bool wide);

#endif
