/* lmdb.h: the pictures of an LMDB database (data.mdb, as LMDB 0.9 lays it out on machines of 64 bits) as samples: each
 * value Caffe's Datum with an encoded picture and a label, or entries KEY.jpg and KEY.cls as in a tar archive. A value
 * lies whole in its file, so a sample is where it does: pages are read here, by an own reader, and not by liblmdb,
 * which believes what a file says of itself (a damaged one ends the process) and reads nothing over a network.
 * Knows no pictures. */
#ifndef DPT_DATA_LMDB_H
#define DPT_DATA_LMDB_H

#include <stdbool.h>

#include "trainer/data/container/byte_source.h"
#include "trainer/data/container/samples.h"
#include "trainer/data/container/webdataset.h"

#define LMDB_HEAD 24

/* Whether a file that begins so is one. */
bool lmdb_probe(const void *head);

/* Adds the samples of a database in the order of its keys; as webdataset_scan. Damaged pages are noted and passed over.
 * ERR_USAGE for what is another kind of database: LMDB 1.0's, one with several values a key, pickled values, raw
 * pixels; with what to do. */
int lmdb_scan(struct samples *to, const struct byte_source *file, uint32_t object, const struct webdataset_fields *f,
	      struct err *err);

#endif
