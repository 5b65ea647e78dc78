/* SPDX-License-Identifier: Apache-2.0 */
/* conv.h: 2-D convolution without bias. x [N,H,W,C], w [K,R,S,C], y [N,P,Q,K], P = (H + 2 pad - R) / stride + 1.
 *   conv        in x, w    out y
 *   conv_dgrad  in dy, w   out dx      (attr.in_shape = shape of x)
 *   conv_wgrad  in x, dy   out dw      (master type, summed over the batch) */
#ifndef DPT_OPS_CONV_H
#define DPT_OPS_CONV_H

#include "trainer/graph/graph.h"

struct conv_attr {
	int stride, pad;
	int kernel;	       /* R = S; gives conv_wgrad's output shape */
	struct shape in_shape; /* of x; gives conv_dgrad's output shape */
};

struct tensor *conv_add(struct graph *g, struct tensor *x, struct tensor *w, int stride, int pad);

#endif
