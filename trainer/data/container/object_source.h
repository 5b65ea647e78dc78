/* object_source.h: an object of a store as a byte source. */
#ifndef DPT_DATA_OBJECT_SOURCE_H
#define DPT_DATA_OBJECT_SOURCE_H

#include "trainer/data/container/byte_source.h"
#include "trainer/data/store/data_objects.h"

struct object_source {
	struct objects *store;
	int object;
};

/* s must outlive the returned source. */
struct byte_source object_source_of(struct object_source *s);

#endif
