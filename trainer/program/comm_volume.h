/* comm_volume.h: the communication volume of an optimiser step: the bytes that one rank sends, from its programs,
 * before anything is run. */
#ifndef DPT_PROGRAM_COMM_VOLUME_H
#define DPT_PROGRAM_COMM_VOLUME_H

#include "tracker/base/buf.h"
#include "trainer/program/prepare.h"

enum { COMM_VOLUME_KINDS = 4 }; /* allreduce, all_gather, reduce_scatter, send */

/* Computes the bytes of each kind of collective in a step of that many micro-batches. */
void comm_volume_sent(const struct prepared *p, int64_t micros, double sent[COMM_VOLUME_KINDS]);

/* Appends one line for each kind of collective in a step of that many micro-batches: "  all_gather  12.3 MiB". A sum
 * over n ranks sends 2 (n - 1)/n of its bytes (small ones, where latency counts, n - 1 times as much), the others (n -
 * 1)/n of the whole. A message is sent once for each micro-batch of its schedule. Nothing for one rank. */
void comm_volume_table(const struct prepared *p, int64_t micros, struct buf *out);

#endif
