/* aws_profile.h: the settings files of AWS's tools (AWS SDKs and Tools Reference Guide, "Shared config and credentials
 * files"): sections, "name = value", and indented values below a name without a value. Text only. */
#ifndef DPT_OBJECT_AWS_PROFILE_H
#define DPT_OBJECT_AWS_PROFILE_H

#include <stdbool.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

#define AWS_PROFILE_VALUE_BYTES 4096
#define AWS_PROFILE_FILE_MAX ((size_t)1 << 20)

/* Reads the file's text; a missing file is empty. ERR_USAGE if it is unreadable. */
int aws_profile_load(struct buf *ret, const char *path, struct err *err);

struct aws_profile_place {
	const char *section; /* "default", "profile research", "services minio" */
	const char *parent;  /* the name above the indented lines; NULL: not indented */
	const char *name;
};

/* Returns false if the text does not define the value; *ret is then unchanged. */
bool aws_profile_find(const struct buf *text, const struct aws_profile_place *p, char ret[AWS_PROFILE_VALUE_BYTES]);

/* Returns true if the text has this section. */
bool aws_profile_has(const struct buf *text, const char *section);

#endif
