/* SPDX-License-Identifier: Apache-2.0 */
/* fibers.h: runs the threads of one launch. It knows kernels as functions, but neither streams nor memory. */
#ifndef DPT_TESTS_FAKES_CUDA_FIBERS_H
#define DPT_TESTS_FAKES_CUDA_FIBERS_H

#include "tests/fakes/cuda/emulate.h"

/* Runs all blocks of the grid in sequence. Ends the process if threads wait for each other for ever. */
void fibers_run(const struct emulated_launch *l);

#endif
