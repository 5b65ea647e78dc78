/* aws_profile.h: the files that AWS's tools keep settings in (AWS SDKs and Tools Reference Guide, "Shared config and
 * credentials files"): sections, "name = value", and values of indented lines below a name without one. Text only. */
#ifndef DPT_OBJECT_AWS_PROFILE_H
#define DPT_OBJECT_AWS_PROFILE_H

#include <stdbool.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

#define AWS_PROFILE_VALUE_BYTES 4096
#define AWS_PROFILE_FILE_MAX ((size_t)1 << 20)

/* The file's text; a file that is not there is empty. ERR_USAGE for one that cannot be read. */
int aws_profile_load(struct buf *ret, const char *path, struct err *err);

struct aws_profile_place {
	const char *section; /* "default", "profile research", "services minio" */
	const char *parent;  /* the name that the indented lines stand below; NULL: not indented */
	const char *name;
};

/* False: the text says nothing of it; ret is untouched then. */
bool aws_profile_find(const struct buf *text, const struct aws_profile_place *p, char ret[AWS_PROFILE_VALUE_BYTES]);

/* Whether the text has this section. */
bool aws_profile_has(const struct buf *text, const char *section);

#endif
