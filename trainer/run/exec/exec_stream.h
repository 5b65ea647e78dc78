/* exec_stream.h: the executor of backends with streams. */
#ifndef DPT_RUN_EXEC_STREAM_H
#define DPT_RUN_EXEC_STREAM_H

#include "trainer/run/exec/exec.h"

extern const struct exec_ops exec_stream;

#endif
