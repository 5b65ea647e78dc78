/* session.h: how a browser that has no token is asked for one, and the cookie that it has afterwards. */
#ifndef DPT_API_SESSION_H
#define DPT_API_SESSION_H

#include <stddef.h>

#include "web/api/call.h"

/* The form that asks for a token, as a reply of status 401. query: where to go afterwards; both may be NULL. */
enum call_next session_form(struct call *c, const char *query, const char *problem);

/* Of the cookie that holds a session; differs from store to store, as cookies do not tell ports apart. */
const char *session_cookie_name(const struct call *c);
/* Its value in a Cookie header (NULL: there is none), *ret_len bytes, within the header; NULL without. */
const char *session_cookie_value(const char *cookies, const char *name, size_t *ret_len);

#endif
