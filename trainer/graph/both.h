/* both.h: functions of a few numbers that host and device share: one text, so that every backend computes the same.
 * Plain inline functions for a C compiler, callable on both sides for nvcc. */
#ifndef DPT_GRAPH_BOTH_H
#define DPT_GRAPH_BOTH_H

#ifdef __CUDACC__
#define BOTH_INLINE static __host__ __device__ inline
#else
#define BOTH_INLINE static inline
#endif

#endif
