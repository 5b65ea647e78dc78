/* SPDX-License-Identifier: Apache-2.0 */
/* google_auth.h: credentials for Google Cloud Storage, searched in this order: HMAC keys (GS_ACCESS_KEY_ID and
 * GS_SECRET_ACCESS_KEY, gsutil's names), then Google's "Application Default Credentials": the file that
 * GOOGLE_APPLICATION_CREDENTIALS names, gcloud's file, the metadata server of the machine. Requests are anonymous with
 * CLOUDSDK_AUTH_DISABLE_CREDENTIALS=true, and to an emulator if no variable names credentials. */
#ifndef DPT_OBJECT_GOOGLE_AUTH_H
#define DPT_OBJECT_GOOGLE_AUTH_H

#include "tracker/object/identity.h"

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
