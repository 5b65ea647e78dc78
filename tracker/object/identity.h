/* identity.h: who asks: AWS's variables, then the profile of its files, then what a container or an instance gives to
 * whoever runs there (for hours, then anew). */
#ifndef DPT_OBJECT_IDENTITY_H
#define DPT_OBJECT_IDENTITY_H

#include "tracker/curl/curlso.h"
#include "tracker/object/settings.h"

struct identity {
	char id[256], secret[256];
	char token[AWS_PROFILE_VALUE_BYTES]; /* of keys that are lent; "" */
	double until_s;			 /* wall clock; 0: for good */
	bool given;			 /* by a container or an instance: may be asked for again */
};

/* ERR_USAGE says what was looked at. May wait for a container's or an instance's answer, some seconds at most. */
int identity_find(struct identity *ret, const struct settings *s, const struct curlso *so, struct err *err);

/* Of containers and instances (role.c). ERR_NOENT: there is none. */
int identity_role(struct identity *ret, const struct curlso *so, struct err *err);

#endif
