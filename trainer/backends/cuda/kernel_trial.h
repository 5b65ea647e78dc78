/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_trial.h: times implementations of a library on this device, with memory of its own, before training starts.
 * Nothing is timed with --deterministic, whose choices must not depend on a clock. */
#ifndef DPT_BACKENDS_CUDA_KERNEL_TRIAL_H
#define DPT_BACKENDS_CUDA_KERNEL_TRIAL_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#define TRIALS_MAX 8 /* implementations that are compared */
#define TRIAL_ALIGN 256

struct trial {
	char *memory; /* filled with values of moderate size in every type */
	cudaStream_t stream;
	cudaEvent_t from, to;
};

/* Returns false if the device has no memory left; then there is nothing to close. */
bool trial_open(struct trial *t, size_t bytes);
void trial_close(struct trial *t);

/* Returns the next piece of the memory and advances *used. */
void *trial_piece(const struct trial *t, size_t bytes, size_t *used);

/* Bytes that trial_piece uses for a piece. */
size_t trial_room(size_t bytes);

/* Milliseconds of the fastest of a few runs; INFINITY on failure. run enqueues the work and returns 0. */
double trial_ms(const struct trial *t, int (*run)(void *user, cudaStream_t stream), void *user);

/* Index of the implementation with the smallest ms; the first if all fail. */
int trial_fastest(int n, double (*ms)(void *user, int way), void *user);

#endif
