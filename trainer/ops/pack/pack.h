/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h: copies a plain tensor (any float type) into the layout and type that one consumer's kernel requests
 * (kernel->pack_bytes). in x out packed (opaque_bytes > 0). Pack kernel and consumer derive the layout from the same
 * node, so they agree. */
#ifndef DPT_OPS_PACK_H
#define DPT_OPS_PACK_H

#include "trainer/graph/pass.h" /* struct pack_attr */

#endif
