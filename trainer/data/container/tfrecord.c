/* tfrecord.c: records (length, its CRC, bytes, their CRC), and what of protocol buffers an Example needs: fields by
 * number, varints, lengths (https://protobuf.dev/programming-guides/encoding/). Nothing is believed: every length ends
 * within what holds it. */
#include "trainer/data/container/tfrecord.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/crc32c.h"

#define TAIL 4
#define IMAGE ";image/encoded"
#define LABEL ";image/class/label;label"
#define NAMES_BYTES 1024
#define VARINT_BYTES 10

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

struct span {
	const unsigned char *at, *end;
};

struct field {
	uint64_t number;
	enum wire wire;
	uint64_t value;	   /* of a varint */
	struct span bytes; /* of BYTES */
};

static uint32_t u32(const unsigned char *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t u64(const unsigned char *at)
{
	return u32(at) | (uint64_t)u32(at + 4) << 32;
}

static bool varint(struct span *s, uint64_t *ret)
{
	*ret = 0;
	for (int i = 0; i < VARINT_BYTES && s->at < s->end; i++) {
		unsigned char byte = *s->at++;

		*ret |= (uint64_t)(byte & 127) << 7 * i;
		if (byte < 128)
			return true;
	}
	return false;
}

/* The next field; false at the end, and (s->at NULL) where there is none. */
static bool next_field(struct span *s, struct field *ret)
{
	uint64_t tag, n = 0;
	bool good;

	if (!s->at || s->at == s->end)
		return false;
	good = varint(s, &tag);
	*ret = (struct field){ .number = tag >> 3, .wire = (enum wire)(tag & 7) };
	if (ret->wire == VARINT)
		good = good && varint(s, &ret->value);
	else if (ret->wire == BYTES)
		good = good && varint(s, &n);
	else
		good = good && (ret->wire == FIXED64 || ret->wire == FIXED32);
	n = ret->wire == FIXED64 ? 8 : ret->wire == FIXED32 ? 4 : n;
	if (!good || n > (uint64_t)(s->end - s->at)) {
		s->at = NULL;
		return false;
	}
	ret->bytes = (struct span){ s->at, s->at + n };
	s->at += n;
	return true;
}

/* ---- an Example ---- */

struct scan {
	struct samples *to;
	const struct tar_walk_source *file;
	uint32_t object;
	char image[NAMES_BYTES], label[NAMES_BYTES];
	unsigned char *bytes; /* of a record */
	size_t cap;
	int64_t records;
};

struct found {
	struct span image;
	int64_t label;
	int image_rank, label_rank;
	bool broken;
};

/* Feature: 1 a BytesList, 3 an Int64List; each has its values in field 1, numbers packed or not. */
static bool first_value(struct span feature, uint64_t list, struct field *ret)
{
	struct field f, value;

	while (next_field(&feature, &f)) {
		struct span values = f.bytes;

		if (f.number != list || f.wire != BYTES)
			continue;
		while (next_field(&values, &value))
			if (value.number == 1 && (value.wire == BYTES || value.wire == VARINT)) {
				*ret = value;
				return true;
			}
	}
	return false;
}

static void take_feature(struct found *found, const struct scan *s, const char *name, struct span feature)
{
	int image = webdataset_rank(s->image, name), label = webdataset_rank(s->label, name);
	struct field value;

	if (image < found->image_rank && first_value(feature, 1, &value) && value.wire == BYTES) {
		found->image_rank = image;
		found->image = value.bytes;
	}
	if (label >= found->label_rank || !first_value(feature, 3, &value))
		return;
	found->label_rank = label;
	if (value.wire == BYTES && !varint(&value.bytes, &value.value)) /* packed, and empty */
		found->label_rank = WEBDATASET_NO_RANK;
	found->label = (int64_t)value.value;
}

/* An entry of the map: 1 its name, 2 the feature. */
static void take_entry(struct found *found, const struct scan *s, struct span entry)
{
	char name[WEBDATASET_FIELD_MAX] = "";
	struct span feature = { NULL, NULL };
	struct field f;

	while (next_field(&entry, &f)) {
		size_t n = (size_t)(f.bytes.end - f.bytes.at);

		if (f.wire == BYTES && f.number == 1 && n < sizeof(name)) {
			memcpy(name, f.bytes.at, n);
			name[n] = '\0';
		} else if (f.wire == BYTES && f.number == 2) {
			feature = f.bytes;
		}
	}
	found->broken |= !entry.at;
	if (feature.at)
		take_feature(found, s, name, feature);
}

static struct found read_example(const struct scan *s, struct span record)
{
	struct found found = { .image_rank = WEBDATASET_NO_RANK, .label_rank = WEBDATASET_NO_RANK };
	struct field f, entry;

	while (next_field(&record, &f)) {
		struct span features = f.bytes;

		while (f.number == 1 && f.wire == BYTES && next_field(&features, &entry))
			if (entry.number == 1 && entry.wire == BYTES)
				take_entry(&found, s, entry.bytes);
		found.broken |= !features.at;
	}
	found.broken |= !record.at;
	return found;
}

/* Where the record's bytes lie in the file says where the picture's do. */
static void take_record(struct scan *s, uint64_t offset, size_t n)
{
	struct found found = read_example(s, (struct span){ s->bytes, s->bytes + n });
	size_t image = (size_t)(found.image.end - found.image.at);
	const char *wrong = found.broken ? "is no Example"
			    : found.image_rank == WEBDATASET_NO_RANK
				    ? "has no picture (--image-field)"
			    : found.label_rank == WEBDATASET_NO_RANK
				    ? "has no label that is a number (--label-field)"
			    : found.label < 0 || found.label >= INT32_MAX ? "its label is no whole number from 0"
									   : NULL;
	char name[TAR_WALK_NAME_MAX];

	if (wrong) {
		samples_lose(s->to, "%.200s: record %lld: %s", s->file->name, (long long)s->records, wrong);
		return;
	}
	snprintf(name, sizeof(name), "%.200s/%09lld.%s", s->file->name, (long long)s->records,
		 image > 4 && !memcmp(found.image.at, "\x89PNG", 4) ? "png" : "jpg");
	samples_add(s->to,
		    &(struct sample){ .offset = offset + (uint64_t)(found.image.at - s->bytes),
				      .bytes = (uint32_t)image,
				      .object = s->object,
				      .label = (int32_t)found.label },
		    name);
}

/* ---- records ---- */

bool tfrecord_probe(const void *head)
{
	return u32((const unsigned char *)head + 8) == crc32c_mask(crc32c(0, head, 8));
}

static int read_bytes(struct scan *s, uint64_t at, size_t n, struct err *err)
{
	unsigned char *more;

	if (n > s->cap) {
		more = realloc(s->bytes, n + n / 4);
		if (!more)
			return err_set(err, ERR_NOMEM, "out of memory: %.200s", s->file->name);
		s->bytes = more;
		s->cap = n + n / 4;
	}
	return s->file->read(s->file->user, at, s->bytes, n, err);
}

/* One record at *at, which moves behind it. */
static int read_record(struct scan *s, uint64_t *at, struct err *err)
{
	uint64_t left = s->file->bytes - *at, n;
	unsigned char head[TFRECORD_HEAD];
	int rc = left < TFRECORD_HEAD ? 0 : s->file->read(s->file->user, *at, head, sizeof(head), err);

	if (rc)
		return rc;
	n = left < TFRECORD_HEAD || !tfrecord_probe(head) ? UINT64_MAX : u64(head);
	if (left < TFRECORD_HEAD + TAIL || n > left - TFRECORD_HEAD - TAIL) {
		samples_lose(s->to, "%.200s: damaged or cut off at byte %llu: the records from there on are lost",
			     s->file->name, (unsigned long long)*at);
		*at = s->file->bytes;
		return 0;
	}
	*at += TFRECORD_HEAD;
	if (n > TFRECORD_BYTES_MAX) {
		samples_lose(s->to, "%.200s: record %lld: %llu bytes are too many", s->file->name,
			     (long long)s->records, (unsigned long long)n);
	} else {
		rc = read_bytes(s, *at, (size_t)n + TAIL, err);
		if (!rc && u32(s->bytes + n) != crc32c_mask(crc32c(0, s->bytes, (size_t)n)))
			samples_lose(s->to, "%.200s: record %lld: its checksum is wrong", s->file->name,
				     (long long)s->records);
		else if (!rc)
			take_record(s, *at, (size_t)n);
	}
	*at += n + TAIL;
	s->records++;
	return rc;
}

int tfrecord_scan(struct samples *to, const struct tar_walk_source *file, uint32_t object,
		  const struct webdataset_fields *f, struct err *err)
{
	struct scan *s = calloc(1, sizeof(*s));
	int rc = s ? 0 : err_set(err, ERR_NOMEM, "out of memory");

	if (rc)
		return rc;
	s->to = to;
	s->file = file;
	s->object = object;
	snprintf(s->image, sizeof(s->image), "%.900s" IMAGE, f->image);
	snprintf(s->label, sizeof(s->label), "%.900s" LABEL, f->label);
	for (uint64_t at = 0; !rc && at < file->bytes;)
		rc = read_record(s, &at, err);
	free(s->bytes);
	free(s);
	return rc;
}
