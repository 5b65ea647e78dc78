/* SPDX-License-Identifier: Apache-2.0 */
/* emulate.h: CUDA's built-in names for kernels that g++ compiles: a thread is a fiber, which yields at barriers and
 * shuffles; a block's shared memory starts as NaN. Threads and blocks run in ascending, descending or random order
 * ($DPTRAIN_FAKE_ORDER: up, down or a number as the seed): if results depend on it, a barrier is missing.
 * Launches only queue; queue.h defines when work runs. */
#ifndef DPT_TESTS_FAKES_CUDA_EMULATE_H
#define DPT_TESTS_FAKES_CUDA_EMULATE_H

#include <cuda_runtime_api.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <source_location>
#include <tuple>

extern "C" {
#include "trainer/graph/kernel.h"
}

#define __launch_bounds__(...) /* for the compiler's choice of registers */

struct emulated_index {
	unsigned x, y, z;
};

extern struct emulated_index threadIdx, blockIdx, blockDim, gridDim;

/* Waits for every thread of the block that has not ended. */
void emulated_barrier(void);

/* Returns the value of the lane of that number of this warp; every lane of the warp calls it. */
uint64_t emulated_exchange(uint64_t bits, unsigned lane);

/* Returns the values of the 32 lanes of this warp, valid until it meets again; every lane of the warp calls it. After
 * emulated_parted, which every lane calls too, no other lane needs what this one's value points to. */
const uint64_t *emulated_met(uint64_t bits);
void emulated_parted(void);

/* load_matrices and multiply_add of device.h, for all lanes of a warp. */
void emulated_matrices(uint32_t (&to)[4], const void *row, bool turned);
void emulated_multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, float (*widened)(uint16_t));

/* Memory of one declaration in the running block, shared by its threads. */
void *emulated_shared(const void *declaration, size_t bytes);

/* Enqueues `body`, called once per thread with a copy of the operands. */
struct emulated_launch {
	dim3 grid;
	int threads;
	void (*body)(const void *operands);
	const void *operands;
	size_t bytes;
};
void emulated_enqueue(cudaStream_t stream, const struct emulated_launch *l);

#define SHARED(type, name, count)                                                                                   \
	static char name##_declaration;                                                                            \
	type *name = (type *)emulated_shared(&name##_declaration, sizeof(type) * (count))

/* Whether the chosen mutant (mutant.h) removes the barrier or the bounds test at that place of a kernel's source. */
extern bool mutant_chosen;
bool emulated_lacks(const char *kind, const std::source_location &at);

static inline void __syncthreads(std::source_location at = std::source_location::current())
{
	if (!mutant_chosen || !emulated_lacks("barrier", at))
		emulated_barrier();
}

static inline bool inside(bool within, std::source_location at = std::source_location::current())
{
	return (mutant_chosen && emulated_lacks("bounds", at)) || within;
}

template <typename T> T __shfl_sync(unsigned, T v, int lane)
{
	uint64_t bits = 0;

	memcpy(&bits, &v, sizeof(v));
	bits = emulated_exchange(bits, (unsigned)lane % 32);
	memcpy(&v, &bits, sizeof(v));
	return v;
}

template <typename T> T __shfl_xor_sync(unsigned mask, T v, int lanes)
{
	return __shfl_sync(mask, v, (int)(threadIdx.x % 32 ^ (unsigned)lanes));
}

/* For whole warps. */
static inline unsigned __ballot_sync(unsigned, bool v)
{
	const uint64_t *brought = emulated_met(v);
	unsigned lanes = 0;

	for (int lane = 0; lane < 32; lane++)
		lanes |= (unsigned)brought[lane] << lane;
	return lanes;
}

static inline int __popc(unsigned v)
{
	return __builtin_popcount(v);
}

template <typename... P> struct emulated_call {
	void (*kernel)(P...);
	std::tuple<P...> operands;

	static void body(const void *self)
	{
		const emulated_call *c = static_cast<const emulated_call *>(self);

		std::apply(c->kernel, c->operands);
	}
};

template <typename... P, typename... A>
void launch(const struct kernel_args *args, dim3 grid, int threads, void (*kernel)(P...), A... operands)
{
	const emulated_call<P...> call = { kernel, std::tuple<P...>(static_cast<P>(operands)...) };
	const struct emulated_launch l = { grid, threads, emulated_call<P...>::body, &call, sizeof(call) };

	emulated_enqueue((cudaStream_t)args->stream, &l);
}

#endif
