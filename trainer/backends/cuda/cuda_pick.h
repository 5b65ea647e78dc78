/* cuda_pick.h: chooses the GPU of a rank. */
#ifndef DPT_BACKENDS_CUDA_CUDA_PICK_H
#define DPT_BACKENDS_CUDA_CUDA_PICK_H

#include "trainer/backends/backend.h"

/* Compute capability, 10 * major + minor; 0: unknown. */
int pick_capability(int device);
#define PICK_CAPABILITY_MIN 80

int pick_describe(int device, struct backend_device *ret, struct err *err);

/* Chooses the device of o->local_rank among those that CUDA_VISIBLE_DEVICES shows. If ranks share a device, which only
 * o->share allows, each pretends to be another host to NCCL (NCCL_HOSTID). ERR_USAGE: one line with the devices
 * present. */
int pick_device(const struct backend_opts *o, int *ret, struct err *err);

#endif
