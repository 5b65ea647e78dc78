/* lmdb.h: the pictures of an LMDB database (data.mdb, as LMDB 0.9 writes it on 64-bit machines) as samples. A value
 * is Caffe's Datum with an encoded picture and a label; or entries are named KEY.jpg and KEY.cls as in a tar
 * archive. A value is contiguous in the file, so a sample is its position. The reader is our own instead of liblmdb:
 * liblmdb trusts the file (a damaged one ends the process) and cannot read over a network. Does not decode pictures. */
#ifndef DPT_DATA_LMDB_H
#define DPT_DATA_LMDB_H

#include <stdbool.h>

#include "trainer/data/container/byte_source.h"
#include "trainer/data/container/samples.h"
#include "trainer/data/container/webdataset.h"

#define LMDB_HEAD 24

/* Returns true if head, the first LMDB_HEAD bytes of a file, begins an LMDB database. */
bool lmdb_probe(const void *head);

/* Adds the samples of a database in key order, like webdataset_scan. Damaged pages are noted and skipped. ERR_USAGE,
 * with the remedy, for an unsupported database: LMDB 1.0, several values per key, pickled values, raw pixels. */
int lmdb_scan(struct samples *to, const struct byte_source *file, uint32_t object, const struct webdataset_fields *f,
	      struct err *err);

#endif
