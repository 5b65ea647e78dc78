/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h: finds credentials: AWS's variables, then the profile of its files, then the role of the container or
 * instance (valid for hours, then requested again). */
#ifndef DPT_OBJECT_IDENTITY_H
#define DPT_OBJECT_IDENTITY_H

#include "tracker/curl/curlso.h"
#include "tracker/object/settings.h"

struct identity {
	char id[256], secret[256];
	char token[AWS_PROFILE_VALUE_BYTES]; /* session token of temporary keys; "": none */
	double until_s;			 /* expiry, wall clock; 0: never */
	bool given;			 /* the keys come from a container or instance and can be renewed */
};

/* The message of ERR_USAGE lists the sources that were searched. May wait some seconds for a container's or an
 * instance's answer. */
int identity_find(struct identity *ret, const struct settings *s, const struct curlso *so, struct err *err);

#endif
