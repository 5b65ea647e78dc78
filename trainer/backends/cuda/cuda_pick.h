/* cuda_pick.h: which of the machine's GPUs a rank takes. */
#ifndef DPT_BACKENDS_CUDA_CUDA_PICK_H
#define DPT_BACKENDS_CUDA_CUDA_PICK_H

#include "trainer/backends/backend.h"

/* Compute capability, 10 * major + minor; 0: unknown. */
int pick_capability(int device);
#define PICK_CAPABILITY_MIN 80

int pick_describe(int device, struct backend_device *ret, struct err *err);

/* The device of o->local_rank, within what CUDA_VISIBLE_DEVICES shows. Where ranks share one, which only o->share
 * allows, NCCL is told another host for each (NCCL_HOSTID). ERR_USAGE: one line that says what there is. */
int pick_device(const struct backend_opts *o, int *ret, struct err *err);

#endif
