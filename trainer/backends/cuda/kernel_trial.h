/* kernel_trial.h: what a library's way of doing something takes on this device, by trying it on memory of its own, before
 * there is a step to wait for. Nothing is tried under --deterministic, whose choices must not hang on a clock. */
#ifndef DPT_BACKENDS_CUDA_KERNEL_TRIAL_H
#define DPT_BACKENDS_CUDA_KERNEL_TRIAL_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#define TRIALS_MAX 8	/* ways that are compared */
#define TRIAL_ALIGN 256

struct trial {
	char *memory; /* numbers of ordinary size in every type */
	cudaStream_t stream;
	cudaEvent_t from, to;
};

/* false: there is no room on the device; nothing is left to close. */
bool trial_open(struct trial *t, size_t bytes);
void trial_close(struct trial *t);

/* The next piece of the memory; *used counts them. */
void *trial_piece(const struct trial *t, size_t bytes, size_t *used);

/* Bytes that trial_piece takes for a piece. */
size_t trial_room(size_t bytes);

/* Milliseconds of the fastest of a few runs; INFINITY: it failed. run enqueues, and returns 0. */
double trial_ms(const struct trial *t, int (*run)(void *user, cudaStream_t stream), void *user);

/* The one of n ways, by number, of which ms says least; the first where all of them fail. */
int trial_fastest(int n, double (*ms)(void *user, int way), void *user);

#endif
