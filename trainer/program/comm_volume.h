/* comm_volume.h: what an optimiser step sends from one rank to others, as its programs say, before anything is run. */
#ifndef DPT_PROGRAM_COMM_VOLUME_H
#define DPT_PROGRAM_COMM_VOLUME_H

#include "tracker/base/buf.h"
#include "trainer/program/prepare.h"

enum { COMM_VOLUME_KINDS = 4 }; /* allreduce, all_gather, reduce_scatter, send */

/* Bytes of each kind of collective in a step of so many micro-batches. */
void comm_volume_sent(const struct prepared *p, int64_t micros, double sent[COMM_VOLUME_KINDS]);

/* One line for each kind of collective that a step of so many micro-batches has: "  all_gather  12.3 MiB". A sum over n
 * ranks sends 2 (n - 1)/n of it (small ones, where time counts, n - 1 times as much), the others (n - 1)/n of the
 * whole; a message is sent once for each of the micro-batches that its schedule has. Nothing for one rank. */
void comm_volume_table(const struct prepared *p, int64_t micros, struct buf *out);

#endif
