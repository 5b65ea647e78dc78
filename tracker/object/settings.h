/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h: the address of a bucket and the credentials for it. settings.c reads AWS's variables and files
 * (AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE, AWS_PROFILE), searched in the order of AWS's own tools, and does not
 * use the network. */
#ifndef DPT_OBJECT_SETTINGS_H
#define DPT_OBJECT_SETTINGS_H

#include "tracker/base/buf.h"
#include "tracker/curl/curl_request.h"

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

/* ---- auth_request.c ----
 * Short requests to metadata and token servers. */

/* Sends the request with one more header line (NULL: none). Callers set what is sent, and direct for a server of this
 * machine or its network. answer.status 0: no answer, see error. text receives the body and a NUL. */
void auth_request_send(const struct curlso *so, const char *header, struct curl_request *r, struct buf *text);

/* ---- identity.c ----
 * Credentials of requests; finds those for S3: AWS's variables, then the profile of its files, then the role of the
 * container or instance (valid for hours, then requested again). */

enum identity_kind { IDENTITY_KEYS /* sign requests */, IDENTITY_BEARER /* a token alone */, IDENTITY_ANONYMOUS };

struct identity {
	enum identity_kind kind;
	char id[256], secret[256];
	char token[AWS_PROFILE_VALUE_BYTES]; /* session token of temporary keys; "": none */
	char who[256];			     /* the account, for messages; "": unknown */
	double until_s;			     /* expiry, wall clock; 0: never */
	bool given;			     /* the keys come from a container or instance and can be renewed */
};

/* The message of ERR_USAGE lists the sources that were searched. May wait some seconds for a container's or an
 * instance's answer. */
int identity_find(struct identity *ret, const struct settings *s, const struct curlso *so, struct err *err);

/* Stores keys. token: NULL: none. ERR_USAGE: one of them is too long or has a line break. */
int identity_copy(struct identity *ret, const char *id, const char *secret, const char *token, struct err *err);

/* ---- google_auth.c ----
 * Credentials for Google Cloud Storage, searched in this order: HMAC keys (GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY,
 * gsutil's names), then Google's "Application Default Credentials": the file that GOOGLE_APPLICATION_CREDENTIALS names,
 * gcloud's file, the metadata server of the machine. Requests are anonymous with
 * CLOUDSDK_AUTH_DISABLE_CREDENTIALS=true, and to an emulator if no variable names credentials. */

struct google_auth;

/* Reads variables and files, without the network. ERR_USAGE: a variable or file is not usable; ERR_UNSUPPORTED: a
 * library is missing. */
int google_auth_open(struct google_auth **ret, struct err *err);
void google_auth_close(struct google_auth *a); /* overwrites secrets; NULL is fine */

/* Returns keys or a new access token. Repeats failed requests for some seconds. ERR_USAGE: refused; ERR_IO: no
 * answer. */
int google_auth_identity(const struct google_auth *a, const struct curlso *so, struct identity *ret, struct err *err);

/* The address of a bucket: of STORAGE_EMULATOR_HOST, or of Google. */
int google_place(const char *bucket, struct settings_place *ret, struct err *err);

#endif
