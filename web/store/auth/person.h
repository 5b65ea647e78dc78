/* SPDX-License-Identifier: Apache-2.0 */
/* person.h: persons who sign in by a provider, and tokens that programs get from a person's session. A person is a row
 * of tokens whose text does not exist: sessions name its hash. Whatever a check says of that row holds for the person's
 * sessions and programs. Any thread. */
#ifndef DPT_STORE_PERSON_H
#define DPT_STORE_PERSON_H

#include "web/store/auth/token.h"

/* A sign-in: makes the person or changes the scope, and begins a session. TOKEN_NONE: changes the scope of a person who
 * exists, and begins none. */
struct person_sign_in {
	const char *name; /* PROVIDER:NAME, used if the person is new */
	const char *issuer, *subject;
	enum token_scope scope;
	const char *grants;	    /* text of grants.h; "": the scope in all experiments */
	struct session_new session; /* its token is filled by the change */
};

/* Draws the session: its cookie text, and the row in *s. */
int person_session(struct person_sign_in *s, char ret[TOKEN_TEXT_MAX], struct err *err);

/* A person lets a program use a token: it has the rights of the session's token at each moment, ends with that, and
 * replaces the earlier one of the same name. */
struct login_confirm {
	const char *session; /* the hash of the session's cookie */
	const char *device;  /* the token is named OWNER/DEVICE */
	const char *hash;    /* of the program's token */
	int64_t expires_ms;
};

/* The name of the token or person that a session is of, in the arena; NULL: no row, such as for the token of
 * DPTRACK_TOKEN. hash: of the session's cookie. */
int person_of_session(struct store *s, const char *hash, struct arena *a, const char **ret, struct err *err);

#endif
