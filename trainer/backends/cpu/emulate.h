/* emulate.h: the kernel of every node with f16 operands. */
#ifndef DPT_BACKENDS_CPU_EMULATE_H
#define DPT_BACKENDS_CPU_EMULATE_H

#include "trainer/graph/kernel.h"

extern const struct kernel cpu_emulate;

#endif
