/* SPDX-License-Identifier: Apache-2.0 */
/* copy_cpu.c: the copy of copy_host.h. */
#include "trainer/ops/copy/copy_host.h"

extern const struct kernel copy_cpu;
const struct kernel copy_cpu = COPY_KERNEL;
