/* SPDX-License-Identifier: Apache-2.0 */
/* pack_ref.c: ref uses plain layouts only, so it has no pack kernel. */
#include "trainer/ops/pack/pack.h"

const struct kernel pack_ref = { .run = NULL };
