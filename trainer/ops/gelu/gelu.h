/* SPDX-License-Identifier: Apache-2.0 */
/* gelu.h: GELU in its tanh form: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel 2016).
 *   gelu in x out y; gelu_grad in dy, x out dx. */
#ifndef DPT_OPS_GELU_H
#define DPT_OPS_GELU_H

#include "trainer/graph/graph.h"

struct tensor *gelu_add(struct graph *g, struct tensor *x);

#endif
