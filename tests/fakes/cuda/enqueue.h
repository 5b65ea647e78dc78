/* SPDX-License-Identifier: Apache-2.0 */
/* enqueue.h: interface of the fake device for the fakes of libraries, which are plain C: work in a stream's order. */
#ifndef DPT_TESTS_FAKES_CUDA_ENQUEUE_H
#define DPT_TESTS_FAKES_CUDA_ENQUEUE_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Calls run with a copy of the operands when the stream reaches it; it may then use the device's memory. */
void fake_enqueue(cudaStream_t stream, void (*run)(const void *operands), const void *operands, size_t bytes);

/* Appends a line to the file $DPTRAIN_FAKE_NOTES, if it is set. */
void fake_note(const char *what);

#ifdef __cplusplus
}
#endif

#endif
