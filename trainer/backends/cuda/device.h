/* SPDX-License-Identifier: Apache-2.0 */
/* device.h: the C++ layer for kernels: element types with their arithmetic, 16-byte accesses, sums over a warp and a
 * block, tensor core products, launches. nvcc compiles kernels for a GPU; g++ compiles the same source for the tests'
 * emulation (CUDA_EMULATION names its header, which replaces CUDA's built-in names). Knows no op.
 *
 * Kernels use features of compute capability 8.0 only. Every sum has a fixed order: no atomics. */
#ifndef DPT_BACKENDS_CUDA_DEVICE_H
#define DPT_BACKENDS_CUDA_DEVICE_H

#include <cuda_runtime_api.h>
#include <math.h>

#include <type_traits>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
/* An array in the block's shared memory. */
#define SHARED(type, name, count) __shared__ type name[count]
#else
#include CUDA_EMULATION
#endif

extern "C" {
#include "trainer/graph/kernel.h"
#include "trainer/ops/cast/float16.h"
}

#define WARP 32
#define WHOLE_WARP 0xffffffffu

/* ---- element types ---- */

/* 16-bit types are stored as bits; arithmetic is in float. */
struct bf16 {
	uint16_t bits;
};

struct f16 {
	uint16_t bits;
};

/* acc_t<T>: type in which elements of type T are computed and summed; also the master type for low type T. */
template <typename T> struct arithmetic {
	using acc = float;
};
template <> struct arithmetic<double> {
	using acc = double;
};
template <typename T> using acc_t = typename arithmetic<T>::acc;

template <typename T> constexpr bool is_bf16 = false;
template <> constexpr bool is_bf16<bf16> = true;

__device__ inline double widen(double v)
{
	return v;
}

__device__ inline float widen(float v)
{
	return v;
}

__device__ inline float widen(bf16 v)
{
	return bf16_to_float(v.bits);
}

__device__ inline float widen(f16 v)
{
#ifdef __CUDACC__
	return __half2float(__ushort_as_half(v.bits));
#else
	return f16_to_float(v.bits);
#endif
}

/* Rounded to nearest even. */
template <typename T> __device__ inline T narrow(acc_t<T> v)
{
	return v;
}

template <> __device__ inline bf16 narrow<bf16>(float v)
{
#ifdef __CUDACC__
	return { __bfloat16_as_ushort(__float2bfloat16_rn(v)) };
#else
	return { bf16_from_float(v) };
#endif
}

template <> __device__ inline f16 narrow<f16>(float v)
{
#ifdef __CUDACC__
	return { __half_as_ushort(__float2half_rn(v)) };
#else
	return { f16_from_float(v) };
#endif
}

/* ---- memory ---- */

/* True if an access is inside its array. A named function, so that the emulation can disable one such test at a time to
 * check that the tests notice. */
#ifdef __CUDACC__
__device__ inline bool inside(bool within)
{
	return within;
}
#endif

/* W contiguous elements, moved in accesses of up to 16 bytes; aligned to W elements. */
template <typename T, int W> struct alignas(sizeof(T) * W < 16 ? sizeof(T) * W : 16) pack {
	T v[W];
};

/* Elements per 16-byte access. */
template <typename T> constexpr int vector_width = 16 / (int)sizeof(T);

/* The same as loaded from memory, in whole registers: two 16-bit elements in one. */
template <typename T, int W> struct bits {
	static constexpr int each = sizeof(T) == 2 && W > 1 ? 2 : 1; /* elements per word */
	using word = std::conditional_t<each == 2, uint32_t, T>;
	pack<word, W / each> words;
};

template <int W, typename T> __device__ inline bits<T, W> fetch(const T *from)
{
	return *reinterpret_cast<const bits<T, W> *>(from);
}

template <int W, typename A, typename T> __device__ inline void decompress(A (&to)[W], const bits<T, W> &from)
{
	for (int k = 0; k < W; k++)
		if constexpr (bits<T, W>::each == 2)
			to[k] = (A)widen(T{ (uint16_t)(from.words.v[k / 2] >> k % 2 * 16) });
		else
			to[k] = (A)widen(from.words.v[k]);
}

template <int W, typename A, typename T> __device__ inline void load(A (&to)[W], const T *from)
{
	decompress(to, fetch<W>(from));
}

template <int W, typename A, typename T> __device__ inline void store(T *to, const A (&from)[W])
{
	pack<T, W> p;

	for (int k = 0; k < W; k++)
		p.v[k] = narrow<T>((acc_t<T>)from[k]);
	*reinterpret_cast<pack<T, W> *>(to) = p;
}

/* ---- sums and maxima ---- */

template <typename A> __device__ inline A warp_sum(A v)
{
	for (int lane = WARP / 2; lane > 0; lane /= 2)
		v += __shfl_xor_sync(WHOLE_WARP, v, lane);
	return v;
}

template <typename A> __device__ inline A warp_max(A v)
{
	for (int lane = WARP / 2; lane > 0; lane /= 2)
		v = fmax(v, __shfl_xor_sync(WHOLE_WARP, v, lane));
	return v;
}

/* Applies fold, a reduction over a warp, to the values of all threads of the block; every thread gets the result.
 * nothing: the neutral value. At most 32 warps; all threads call it. */
template <typename A, class F> __device__ inline A block_fold(A v, A nothing, const F &fold)
{
	SHARED(A, of_warp, WARP);
	const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP, warps = (int)blockDim.x / WARP;

	v = fold(v);
	__syncthreads(); /* the previous call may still be reading of_warp */
	if (lane == 0)
		of_warp[warp] = v;
	__syncthreads();
	return fold(lane < warps ? of_warp[lane] : nothing);
}

template <typename A> __device__ inline A block_sum(A v)
{
	return block_fold(v, A(0), [](A of_lane) { return warp_sum(of_lane); });
}

template <typename A> __device__ inline A block_max(A v)
{
	return block_fold(v, A(-INFINITY), [](A of_lane) { return warp_max(of_lane); });
}

/* ---- tensor core products, in 16 bits, by a whole warp ---- */

/* Fragment layout for lane 4 g + t. A [16][16]: register 0 has elements 2t and 2t + 1 of row g, 1 those of row g + 8, 2
 * and 3 the same 8 columns later. B [16][8]: register 0 has rows 2t and 2t + 1 of column g, 1 the same 8 rows later. C
 * [16][8]: elements 0 and 1 are 2t and 2t + 1 of row g, 2 and 3 those of row g + 8. (PTX ISA, mma.m16n8k16.) */

/* Packs two elements into one register, the first in the lower half. */
template <typename T> __device__ inline uint32_t pair_of(float first, float second)
{
	return (uint32_t)narrow<T>(first).bits | (uint32_t)narrow<T>(second).bits << 16;
}

/* Loads four 8 x 8 matrices from shared memory: lane 8 i + r passes the address of row r of matrix i, aligned to 16
 * bytes. Register i of lane 4 g + t gets elements 2t and 2t + 1 of row g of matrix i; turned: of column g. */
template <bool turned, typename T> __device__ inline void load_matrices(uint32_t (&to)[4], const T *row)
{
#ifdef __CUDACC__
	const unsigned at = (unsigned)__cvta_generic_to_shared(row);

	if (turned)
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
			     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
			     : "r"(at)
			     : "memory");
	else
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
			     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
			     : "r"(at)
			     : "memory");
#else
	emulated_matrices(to, row, turned);
#endif
}

/* c += A B. */
template <typename T>
__device__ inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
#ifdef __CUDACC__
	if constexpr (is_bf16<T>)
		asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
			     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
			     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
			     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
	else
		asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
			     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
			     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
			     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
	emulated_multiply(c, a, b0, b1, [](uint16_t bits) { return widen(T{ bits }); });
#endif
}

/* ---- launches ---- */

#ifdef __CUDACC__
/* Enqueues a kernel on the stream of the node's run. The module's take_failure returns its errors. */
template <typename... P, typename... A>
void launch(const struct kernel_args *args, dim3 grid, int threads, void (*kernel)(P...), A... operands)
{
	kernel<<<grid, (unsigned)threads, 0, (cudaStream_t)args->stream>>>(static_cast<P>(operands)...);
}
#endif

#endif
