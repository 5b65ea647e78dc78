/* tfrecord.h: the records of a TFRecord file as samples: each a tf.train.Example with a picture (image/encoded) and
 * a label (image/class/label), as TensorFlow's scripts write ImageNet
 * (https://www.tensorflow.org/tutorials/load_data/tfrecord). A picture is contiguous in its record, so a sample is
 * its position. Does not decode pictures. */
#ifndef DPT_DATA_TFRECORD_H
#define DPT_DATA_TFRECORD_H

#include <stdbool.h>

#include "trainer/data/container/byte_source.h"
#include "trainer/data/container/samples.h"
#include "trainer/data/container/webdataset.h"

#define TFRECORD_HEAD 12
#define TFRECORD_BYTES_MAX ((uint64_t)256 << 20) /* per record */

/* Returns true if head, the first TFRECORD_HEAD bytes of a file, begins a TFRecord file: checks the CRC of the first
 * length. */
bool tfrecord_probe(const void *head);

/* Adds the samples of file number `object` of a store. fields: feature names as for webdataset_scan, followed by
 * TensorFlow's. Damaged records, and those without picture or label, are noted in *to and skipped. After a damaged
 * length the rest of the file is skipped. Fails only if the file cannot be read. */
int tfrecord_scan(struct samples *to, const struct byte_source *file, uint32_t object,
		  const struct webdataset_fields *f, struct err *err);

#endif
