/* SPDX-License-Identifier: Apache-2.0 */
/* host_device.h: HOST_DEVICE_INLINE marks small functions that host and device share. One source text makes every
 * backend compute the same values. It expands to a plain inline function in C and to one callable on both sides under
 * nvcc. */
#ifndef DPT_GRAPH_HOST_DEVICE_H
#define DPT_GRAPH_HOST_DEVICE_H

#ifdef __CUDACC__
#define HOST_DEVICE_INLINE static __host__ __device__ inline
#else
#define HOST_DEVICE_INLINE static inline
#endif

#endif
