/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_trial.c: see kernel_trial.h. */
#include "tracker/base/round.h"
#include "trainer/backends/cuda/kernel_trial.h"

#include <math.h>

#define RUNS 4	  /* the first run is not timed */
#define FILL 0x3c /* bytes: 0.01 in bf16 and f32, 1 in f16 */

void trial_close(struct trial *t)
{
	if (t->to)
		cudaEventDestroy(t->to);
	if (t->from)
		cudaEventDestroy(t->from);
	if (t->stream)
		cudaStreamDestroy(t->stream);
	cudaFree(t->memory);
	*t = (struct trial){ 0 };
}

bool trial_open(struct trial *t, size_t bytes)
{
	void *memory = NULL;
	bool opened;

	*t = (struct trial){ .memory = NULL };
	opened = cudaMalloc(&memory, bytes) == cudaSuccess &&
		 cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking) == cudaSuccess &&
		 cudaEventCreateWithFlags(&t->from, cudaEventDefault) == cudaSuccess &&
		 cudaEventCreateWithFlags(&t->to, cudaEventDefault) == cudaSuccess &&
		 cudaMemsetAsync(memory, FILL, bytes, t->stream) == cudaSuccess;
	t->memory = memory;
	if (opened)
		return true;
	trial_close(t);
	cudaGetLastError(); /* clears the error */
	return false;
}

size_t trial_room(size_t bytes)
{
	return round_up_bytes(bytes, TRIAL_ALIGN);
}

void *trial_piece(const struct trial *t, size_t bytes, size_t *used)
{
	char *piece = t->memory + *used;

	*used += trial_room(bytes);
	return piece;
}

static double time_one_run(const struct trial *t, int (*run)(void *user, cudaStream_t stream), void *user)
{
	float ms = 0;

	if (cudaEventRecord(t->from, t->stream) != cudaSuccess || run(user, t->stream) != 0 ||
	    cudaEventRecord(t->to, t->stream) != cudaSuccess || cudaEventSynchronize(t->to) != cudaSuccess ||
	    cudaEventElapsedTime(&ms, t->from, t->to) != cudaSuccess)
		return INFINITY;
	return ms;
}

double trial_ms(const struct trial *t, int (*run)(void *user, cudaStream_t stream), void *user)
{
	double best = INFINITY;

	for (int i = 0; i < RUNS; i++) {
		const double ms = time_one_run(t, run, user);

		if (isinf(ms))
			return ms;
		if (i > 0)
			best = fmin(best, ms);
	}
	return best;
}

int trial_fastest(int n, double (*ms)(void *user, int way), void *user)
{
	double best_ms = INFINITY;
	int best = 0;

	for (int i = 0; i < n; i++) {
		const double took = ms(user, i);

		if (took < best_ms)
			best = i;
		best_ms = fmin(took, best_ms);
	}
	return best;
}
