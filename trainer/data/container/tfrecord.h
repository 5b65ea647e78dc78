/* tfrecord.h: the records of a TFRecord file as samples: each a tf.train.Example with a picture (image/encoded) and a
 * label (image/class/label), as TensorFlow's own scripts write ImageNet
 * (https://www.tensorflow.org/tutorials/load_data/tfrecord). The picture's bytes lie whole in the record, so a sample
 * is where they are. Knows no pictures. */
#ifndef DPT_DATA_TFRECORD_H
#define DPT_DATA_TFRECORD_H

#include <stdbool.h>

#include "trainer/data/container/byte_source.h"
#include "trainer/data/container/samples.h"
#include "trainer/data/container/webdataset.h"

#define TFRECORD_HEAD 12
#define TFRECORD_BYTES_MAX ((uint64_t)256 << 20) /* of a record */

/* Whether a file that begins so is one: the checksum of its first length. */
bool tfrecord_probe(const void *head);

/* Adds the samples of a file, which is number `object` of its store; fields as webdataset_scan's, by the names of the
 * Example's features, with TensorFlow's behind them. Records that are damaged, or have no picture or label, are noted
 * in *to and passed over; behind a damaged length the rest is lost. Fails only where the file cannot be read. */
int tfrecord_scan(struct samples *to, const struct byte_source *file, uint32_t object,
		  const struct webdataset_fields *f, struct err *err);

#endif
