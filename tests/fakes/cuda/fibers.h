/* fibers.h: runs the threads of one launch. It knows kernels as functions, and neither streams nor memory. */
#ifndef DPT_TESTS_FAKES_CUDA_FIBERS_H
#define DPT_TESTS_FAKES_CUDA_FIBERS_H

#include "tests/fakes/cuda/emulate.h"

/* Every block of the grid, one after another. Ends the process when threads wait for each other for ever. */
void fibers_run(const struct emulated_launch *l);

#endif
