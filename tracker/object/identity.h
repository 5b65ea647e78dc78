/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h: credentials of requests; finds those for S3: AWS's variables, then the profile of its files, then the
 * role of the container or instance (valid for hours, then requested again). */
#ifndef DPT_OBJECT_IDENTITY_H
#define DPT_OBJECT_IDENTITY_H

#include "tracker/curl/curlso.h"
#include "tracker/object/settings.h"

enum identity_kind { IDENTITY_KEYS /* sign requests */, IDENTITY_BEARER /* a token alone */, IDENTITY_ANONYMOUS };

struct identity {
	enum identity_kind kind;
	char id[256], secret[256];
	char token[AWS_PROFILE_VALUE_BYTES]; /* session token of temporary keys; "": none */
	char who[256];			     /* the account, for messages; "": unknown */
	double until_s;			 /* expiry, wall clock; 0: never */
	bool given;			 /* the keys come from a container or instance and can be renewed */
};

/* The message of ERR_USAGE lists the sources that were searched. May wait some seconds for a container's or an
 * instance's answer. */
int identity_find(struct identity *ret, const struct settings *s, const struct curlso *so, struct err *err);

/* Stores keys. token: NULL: none. ERR_USAGE: one of them is too long or has a line break. */
int identity_copy(struct identity *ret, const char *id, const char *secret, const char *token, struct err *err);

#endif
