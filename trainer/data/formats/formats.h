/* formats.h: the formats of formats.def, and the detection of a folder's format. */
#ifndef DPT_DATA_FORMATS_H
#define DPT_DATA_FORMATS_H

#include "trainer/data/dataset.h"

enum formats_id {
#define FORMAT(name) FORMATS_##name,
#include "trainer/data/formats/formats.def"
#undef FORMAT
	FORMATS_COUNT
};

#define FORMAT(name) extern const struct dataset_ops dataset_##name;
#include "trainer/data/formats/formats.def"
#undef FORMAT

extern const struct dataset_ops *const formats_table[FORMATS_COUNT];

/* Opens o->path with the first format that recognises it. */
int formats_open(struct dataset **ret, const struct dataset_opts *o, struct err *err);

#endif
