/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h: AWS's variables and files (AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE, AWS_PROFILE), searched in the
 * order of AWS's own tools, and the address of a bucket. Does not use the network. */
#ifndef DPT_OBJECT_SETTINGS_H
#define DPT_OBJECT_SETTINGS_H

#include <stdbool.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

#define AWS_PROFILE_VALUE_BYTES 4096

struct settings {
	struct buf credentials, config;
	const char *profile; /* "default" */
};

/* Returns ERR_USAGE for an unreadable file, and for a profile that neither file has. */
int settings_load(struct settings *s, struct err *err);
void settings_done(struct settings *s);

/* Returns a variable that is set and not empty, else NULL. */
const char *settings_env(const char *name);

/* Finds a value of the profile. */
bool settings_get(const struct settings *s, const char *name, char ret[AWS_PROFILE_VALUE_BYTES]);

#define SETTINGS_URL_BYTES 512

/* The address of a bucket. */
struct settings_place {
	char region[64];
	char url[SETTINGS_URL_BYTES];  /* in front of path */
	char host[SETTINGS_URL_BYTES]; /* of the Host header */
	char path[128];		       /* in front of "/key": "/bucket", or "" if the host names the bucket */
};

/* Uses AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL and the same settings of the files, else AWS's own address in the region.
 * `region` (may be NULL) replaces that of variables and files. */
int settings_place(const struct settings *s, const char *bucket, const char *region, struct settings_place *ret,
		   struct err *err);

/* Addresses the bucket as a path of the endpoint, which must be scheme://host[:port] alone. Sets url, host and path.
 * setting: what names the endpoint, for messages. */
int settings_place_at(struct settings_place *p, const char *setting, const char *endpoint, const char *bucket,
		      struct err *err);

#endif
