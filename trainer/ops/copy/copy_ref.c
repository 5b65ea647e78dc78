/* SPDX-License-Identifier: Apache-2.0 */
/* copy_ref.c: the copy of copy_host.h. */
#include "trainer/ops/copy/copy_host.h"
#include "trainer/ops/ref_kernel.h"

const struct kernel copy_ref = COPY_KERNEL;
