/* host_device.h: functions of a few numbers that host and device share: one text, so that every backend computes the same.
 * Plain inline functions for a C compiler, callable on both sides for nvcc. */
#ifndef DPT_GRAPH_HOST_DEVICE_H
#define DPT_GRAPH_HOST_DEVICE_H

#ifdef __CUDACC__
#define HOST_DEVICE_INLINE static __host__ __device__ inline
#else
#define HOST_DEVICE_INLINE static inline
#endif

#endif
