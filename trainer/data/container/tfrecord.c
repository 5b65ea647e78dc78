/* SPDX-License-Identifier: Apache-2.0 */
/* tfrecord.c: parses records (length, its CRC, content, its CRC) and the Example in each. Input is untrusted: every
 * length is checked against its container. */
#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/crc32c.h"
#include "tracker/base/little.h"
#include "tracker/mem/mem.h"
#include "trainer/data/container/webdataset.h"
#include "trainer/data/container/wire_formats.h"

#define TFRECORD_HEAD 12
#define TFRECORD_BYTES_MAX ((uint64_t)256 << 20) /* per record */
#define TAIL 4
#define IMAGE ";image/encoded;image" /* TensorFlow's scripts; TensorFlow Datasets */
#define LABEL ";image/class/label;label"

/* ---- an Example ---- */

struct tfrecord_reader {
	struct samples *to;
	const struct byte_source *file;
	uint32_t object;
	char image[WEBDATASET_LIST_MAX], label[WEBDATASET_LIST_MAX];
	unsigned char *bytes; /* of the current record */
	size_t cap;
	int64_t records;
};

struct example_match {
	struct proto_span image;
	struct sample_label label;
	int image_rank, label_rank;
	bool broken;
	char names[300]; /* of all features, for messages */
};

/* Feature: field 1 is a BytesList, 2 a FloatList, 3 an Int64List. Each has its values in field 1; numbers may be
 * packed. */
static bool find_first_value(struct proto_span feature, uint64_t list, struct proto_field *ret)
{
	struct proto_field f, value;

	while (proto_next(&feature, &f)) {
		struct proto_span values = f.bytes;

		if (f.number != list || f.wire != PROTO_BYTES)
			continue;
		while (proto_next(&values, &value))
			if (value.number == 1 && value.wire != PROTO_FIXED64) {
				*ret = value;
				return true;
			}
	}
	return false;
}

/* Reads a label from the first value of a feature. False: it has no value. */
static bool read_feature_label(struct proto_span feature, struct sample_label *ret)
{
	struct proto_field v;
	uint32_t bits;
	float real;

	if (find_first_value(feature, 3, &v)) {
		if (v.wire == PROTO_BYTES && !proto_varint(&v.bytes, &v.value)) /* packed and empty */
			return false;
		*ret = label_of_number((int64_t)v.value);
	} else if (find_first_value(feature, 1, &v) && v.wire == PROTO_BYTES) {
		*ret = label_of_text((const char *)v.bytes.at, (size_t)(v.bytes.end - v.bytes.at));
	} else if (find_first_value(feature, 2, &v) && v.bytes.end - v.bytes.at >= 4) {
		bits = little_get_u32(v.bytes.at);
		memcpy(&real, &bits, sizeof(real));
		*ret = label_of_real((double)real);
	} else {
		return false;
	}
	return true;
}

static void match_feature(struct example_match *found, const struct tfrecord_reader *s, const char *name,
			  struct proto_span feature)
{
	int image = webdataset_rank(s->image, name), label = webdataset_rank(s->label, name);
	size_t n = strlen(found->names);
	struct proto_field value;

	snprintf(found->names + n, sizeof(found->names) - n, "%s%s", n ? ", " : "", name);
	if (image < found->image_rank && find_first_value(feature, 1, &value) && value.wire == PROTO_BYTES) {
		found->image_rank = image;
		found->image = value.bytes;
	}
	if (label < found->label_rank && read_feature_label(feature, &found->label))
		found->label_rank = label;
}

/* An entry of the feature map: field 1 is its name, 2 the feature. */
static void read_feature_entry(struct example_match *found, const struct tfrecord_reader *s, struct proto_span entry)
{
	char name[WEBDATASET_FIELD_MAX] = "";
	struct proto_span feature = { NULL, NULL };
	struct proto_field f;

	while (proto_next(&entry, &f)) {
		size_t n = (size_t)(f.bytes.end - f.bytes.at);

		if (f.wire == PROTO_BYTES && f.number == 1 && n < sizeof(name)) {
			memcpy(name, f.bytes.at, n);
			name[n] = '\0';
		} else if (f.wire == PROTO_BYTES && f.number == 2) {
			feature = f.bytes;
		}
	}
	found->broken |= !entry.at;
	if (feature.at)
		match_feature(found, s, name, feature);
}

static struct example_match read_example(const struct tfrecord_reader *s, struct proto_span record)
{
	struct example_match found = { .image_rank = WEBDATASET_NO_RANK, .label_rank = WEBDATASET_NO_RANK };
	struct proto_field f, entry;

	while (proto_next(&record, &f)) {
		struct proto_span features = f.bytes;

		while (f.number == 1 && f.wire == PROTO_BYTES && proto_next(&features, &entry))
			if (entry.number == 1 && entry.wire == PROTO_BYTES)
				read_feature_entry(&found, s, entry.bytes);
		found.broken |= !features.at;
	}
	found.broken |= !record.at;
	return found;
}

/* Adds the Example in s->bytes as a sample, or notes why it is unusable. offset: of the record's content in the
 * file. */
static void add_record_sample(struct tfrecord_reader *s, uint64_t offset, size_t n)
{
	struct example_match found = read_example(s, (struct proto_span){ s->bytes, s->bytes + n });
	size_t image = (size_t)(found.image.end - found.image.at);
	bool lacks = found.image_rank == WEBDATASET_NO_RANK || found.label_rank == WEBDATASET_NO_RANK;
	const char *wrong = found.broken			     ? "is not an Example"
			    : found.image_rank == WEBDATASET_NO_RANK ? "has no picture (--image-field)"
			    : found.label_rank == WEBDATASET_NO_RANK ? "has no label (--label-field)"
								     : found.label.wrong;
	char name[WEBDATASET_NAME_MAX];

	if (wrong) {
		samples_lose(s->to, "%.200s: record %lld: %s%s%.250s", s->file->name, (long long)s->records, wrong,
			     lacks && !found.broken ? ": it has " : "", lacks && !found.broken ? found.names : "");
		return;
	}
	snprintf(name, sizeof(name), "%.200s/%09lld.%s", s->file->name, (long long)s->records,
		 image > 4 && !memcmp(found.image.at, "\x89PNG", 4) ? "png" : "jpg");
	samples_add_label(s->to,
			  &(struct sample){ .offset = offset + (uint64_t)(found.image.at - s->bytes),
					    .bytes = (uint32_t)image,
					    .object = s->object },
			  name, &found.label);
}

/* ---- records ---- */

bool tfrecord_probe(const void *head)
{
	return little_get_u32((const unsigned char *)head + 8) == crc32c_mask(crc32c(0, head, 8));
}

/* Reads the record at *at and advances *at past it. */
static int read_record(struct tfrecord_reader *s, uint64_t *at, struct err *err)
{
	uint64_t left = s->file->bytes - *at, n;
	unsigned char head[TFRECORD_HEAD];
	int rc = left < TFRECORD_HEAD ? 0 : s->file->read(s->file->user, *at, head, sizeof(head), err);

	if (rc)
		return rc;
	n = left < TFRECORD_HEAD || !tfrecord_probe(head) ? UINT64_MAX : little_get_u64(head);
	if (left < TFRECORD_HEAD + TAIL || n > left - TFRECORD_HEAD - TAIL) {
		samples_lose(s->to, "%.200s: damaged or truncated at byte %llu: the records after it are skipped",
			     s->file->name, (unsigned long long)*at);
		*at = s->file->bytes;
		return 0;
	}
	*at += TFRECORD_HEAD;
	if (n > TFRECORD_BYTES_MAX) {
		samples_lose(s->to, "%.200s: record %lld: %llu bytes exceed the maximum of 256 MiB", s->file->name,
			     (long long)s->records, (unsigned long long)n);
	} else {
		mem_reserve(&s->bytes, &s->cap, (size_t)n + TAIL);
		rc = s->file->read(s->file->user, *at, s->bytes, (size_t)n + TAIL, err);
		if (!rc && little_get_u32(s->bytes + n) != crc32c_mask(crc32c(0, s->bytes, (size_t)n)))
			samples_lose(s->to, "%.200s: record %lld: its checksum is wrong", s->file->name,
				     (long long)s->records);
		else if (!rc)
			add_record_sample(s, *at, (size_t)n);
	}
	*at += n + TAIL;
	s->records++;
	return rc;
}

int tfrecord_scan(struct samples *to, const struct byte_source *file, uint32_t object,
		  const struct webdataset_fields *f, struct err *err)
{
	struct tfrecord_reader *s = mem_zalloc(sizeof(*s));
	int rc = 0;

	s->to = to;
	s->file = file;
	s->object = object;
	webdataset_list(s->image, f->image, f->image_given, IMAGE);
	webdataset_list(s->label, f->label, f->label_given, LABEL);
	for (uint64_t at = 0; !rc && at < file->bytes;)
		rc = read_record(s, &at, err);
	free(s->bytes);
	free(s);
	return rc;
}
