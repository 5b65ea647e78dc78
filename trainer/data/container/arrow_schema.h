/* SPDX-License-Identifier: Apache-2.0 */
/* arrow_schema.h: finds the columns of pictures and labels in the schema of an Arrow file, and the buffers that each
 * has in a batch. Private to the reader. */
#ifndef DPT_DATA_ARROW_SCHEMA_H
#define DPT_DATA_ARROW_SCHEMA_H

#include "trainer/data/container/webdataset.h"
#include "trainer/data/container/wire_formats.h"

#define ARROW_DEPTH_MAX 16

enum arrow_kind { ARROW_INTEGER, ARROW_TRUTH, ARROW_REAL, ARROW_TEXT, ARROW_BYTES };

/* How values are stored. width: bits of a number; of texts and bytes: 32 or 64 for their offsets. */
struct arrow_type {
	enum arrow_kind kind;
	int width;
	bool is_signed;
};

/* A column to read. */
struct arrow_column {
	char name[256];
	int rank;		      /* position of its name in the list; the best so far */
	int buffer;		      /* its first buffer: the validity bitmap */
	int parents[ARROW_DEPTH_MAX]; /* validity bitmaps of the structs that contain it */
	int n_parents;
	struct arrow_type type; /* of its values */
	bool listed;
	bool coded;		/* its values are in a dictionary, and the batches have codes */
	int64_t dictionary;	/* … its number */
	struct arrow_type code; /* … ARROW_INTEGER */
};

struct arrow_schema {
	const struct webdataset_fields *fields; /* set by the caller; borrowed */
	const char *file;			/* … for messages */
	struct buf *classes; /* … names of classes that the schema states are appended, each with a NUL */
	int64_t n_classes;   /* of them */
	char image_names[WEBDATASET_LIST_MAX], label_names[WEBDATASET_LIST_MAX];
	int given_labels; /* names in front of the usual ones */
	struct arrow_column image, label;
	int buffers;	 /* per batch */
	char names[300]; /* of the columns, for messages */
};

/* Reads the Schema at offset `table`. ERR_USAGE: a column is missing, or of a type that is not supported. */
int arrow_schema_read(struct arrow_schema *s, const struct flatbuffer *f, uint32_t table, struct err *err);

#endif
