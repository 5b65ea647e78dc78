/* enqueue.h: what the fakes of libraries, which are plain C, need of the fake device: work in a stream's order. */
#ifndef DPT_TESTS_FAKES_CUDA_ENQUEUE_H
#define DPT_TESTS_FAKES_CUDA_ENQUEUE_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* run is called with a copy of the operands when the stream comes to it; it may then use the device's memory. */
void fake_enqueue(cudaStream_t stream, void (*run)(const void *operands), const void *operands, size_t bytes);

/* Adds a line to the file that $DPTRAIN_FAKE_NOTES names; else nothing. */
void fake_note(const char *what);

#ifdef __cplusplus
}
#endif

#endif
