/* settings.h: AWS's variables and files (AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE, AWS_PROFILE), looked at in the
 * order of AWS's own tools, and where a bucket lies by them. Reads no network. */
#ifndef DPT_OBJECT_SETTINGS_H
#define DPT_OBJECT_SETTINGS_H

#include "tracker/object/aws_profile.h"

struct settings {
	struct buf credentials, config;
	const char *profile; /* "default" */
};

/* ERR_USAGE for a file that cannot be read and a profile that stands in none. */
int settings_load(struct settings *s, struct err *err);
void settings_done(struct settings *s);

/* A variable that is set and not empty, else NULL. */
const char *settings_env(const char *name);

/* A value of the profile. */
bool settings_get(const struct settings *s, const char *name, char ret[AWS_PROFILE_VALUE_BYTES]);

#define SETTINGS_URL_BYTES 512

/* Where a bucket lies. */
struct settings_place {
	char region[64];
	char url[SETTINGS_URL_BYTES];  /* in front of path */
	char host[SETTINGS_URL_BYTES]; /* as the Host header says it */
	char path[128];		       /* in front of "/key": "/bucket", or "" where the host names it */
};

/* By AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL and their lines in the files; else AWS's own address in the region. A region
 * that is given stands in for the one of variables and files. */
int settings_place(const struct settings *s, const char *bucket, const char *region, struct settings_place *ret,
		   struct err *err);

#endif
