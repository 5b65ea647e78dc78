/* shard.h: `dptrain shard`: packs a set into tar shards, without ranks. */
#ifndef DPT_TOOLS_SHARD_H
#define DPT_TOOLS_SHARD_H

#include "trainer/run/engine.h"

/* Writes the shards of both splits into the folder of --out, which appears when all of them are complete; adds a
 * summary to out. */
int shard_main(const struct run_config *cfg, struct buf *out, struct err *err);

#endif
