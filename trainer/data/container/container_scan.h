/* SPDX-License-Identifier: Apache-2.0 */
/* container_scan.h: the readers of containers. Each adds the samples of one file to a table: where the encoded picture
 * of each is, and its label. None decodes pictures. Input is untrusted. */
#ifndef DPT_DATA_CONTAINER_SCAN_H
#define DPT_DATA_CONTAINER_SCAN_H

#include "trainer/data/container/samples.h"
#include "trainer/data/container/shard_list.h"
#include "trainer/data/store/data_objects.h"

/* Lists of fields in order of preference; "json:NAME" is member NAME of the field json. */
struct webdataset_fields {
	const char *image;	       /* "jpg;jpeg;png;npy" */
	const char *label;	       /* "cls;json:label" */
	bool image_given, label_given; /* by the user: the usual names of the format do not count */
};

/* Adds the samples of file number `object` of a store, in the file's order. Each reader appends the usual field names
 * of its format to f, unless they are given. Labels are numbers, truth values, or texts (labels.h). Samples without
 * picture or label, and damaged ones, are noted in *to and skipped. ERR_USAGE names what is not supported; other
 * errors: the file cannot be read. */
typedef int container_scan(struct samples *to, const struct byte_source *file, uint32_t object,
			   const struct webdataset_fields *f, struct err *err);

/* A tar archive in WebDataset's format (webdataset.h). */
container_scan webdataset_scan;

/* TFRecord: each record is a tf.train.Example with a picture (image/encoded) and a label (image/class/label), as
 * TensorFlow's scripts write ImageNet (https://www.tensorflow.org/tutorials/load_data/tfrecord). After a damaged length
 * the rest of the file is skipped. */
container_scan tfrecord_scan;

/* LMDB (data.mdb, as LMDB 0.9 writes it on 64-bit machines), in key order. A value is Caffe's Datum with an encoded
 * picture and a label; or entries are named KEY.jpg and KEY.cls as in a tar archive. The reader is our own instead of
 * liblmdb: liblmdb trusts the file (a damaged one ends the process) and cannot read over a network. Refused, with the
 * remedy: LMDB 1.0, several values per key, pickled values, raw pixels. */
container_scan lmdb_scan;

/* The rows of a Parquet file: a column of encoded pictures (Hugging Face's struct image: bytes, path; a struct's name
 * matches its member "bytes") and a column of labels. */
container_scan parquet_scan;

/* The rows of an Arrow IPC file or stream (https://arrow.apache.org/docs/format/Columnar.html), with columns as in
 * Parquet. A value is contiguous in the file or in a compressed buffer (decompress.h), so a sample is its position.
 * Refuses batches with more than 256 MiB of pictures in one compressed buffer. */
container_scan arrow_scan;

/* Each returns true if head, the first bytes of a file, begins such a file. */
#define CONTAINER_HEAD 24 /* enough for all of them */

bool tfrecord_probe(const void *head); /* checks the CRC of the first length */
bool lmdb_probe(const void *head);
bool arrow_probe(const void *head);

/* ---- all shards of a store, with several threads ---- */

struct shard_index_opts {
	const struct webdataset_fields *fields;
	const struct shard_sums *known; /* [object]: from their index file; NULL: no index file */
	double timeout_s;		/* for index files next to remote shards */
};

/* The result is ordered by object, then by entry, whatever the threads do. A remote shard with known labels and with
 * DALI's index next to it is not read. *ret_whole: number of shards with known labels that were read because that
 * index was missing. The caller ends *ret with samples_done; unusable samples are in its notes. */
int shard_index(struct samples *ret, struct objects *store, const struct shard_index_opts *o, int *ret_whole,
		struct err *err);

#endif
