/* SPDX-License-Identifier: Apache-2.0 */
/* session.h: the form that asks a browser for a token, and the session cookie. */
#ifndef DPT_API_SESSION_H
#define DPT_API_SESSION_H

#include <stddef.h>

#include "web/api/call.h"

/* Replies with the form, status 401. query: the page to show after the login; problem: an error text. Both may be
 * NULL. */
enum call_next session_form(struct call *c, const char *query, const char *problem);

/* Name of the session cookie; it differs between stores, as cookies do not distinguish ports. */
const char *session_cookie_name(const struct call *c);
/* Value of that cookie in a Cookie header (NULL: absent): *ret_len bytes within the header. Returns NULL when
 * missing. */
const char *session_cookie_value(const char *cookies, const char *name, size_t *ret_len);

#endif
