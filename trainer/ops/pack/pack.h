/* pack.h: copies a plain tensor (any float type) into the layout and type that one consumer's kernel asked for
 * (kernel->pack_bytes). in x out packed (opaque_bytes > 0). The kernel derives the layout from the consumer's node, so
 * both ends choose alike. */
#ifndef DPT_OPS_PACK_H
#define DPT_OPS_PACK_H

#include "trainer/graph/pass.h" /* struct pack_attr */

#endif
