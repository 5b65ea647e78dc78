/* SPDX-License-Identifier: Apache-2.0 */
/* collectives_cpu.c: the collectives of collectives_host.h. */
#include "trainer/ops/collectives/collectives_host.h"

COLLECTIVE_KERNELS(cpu);
