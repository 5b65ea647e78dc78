/* SPDX-License-Identifier: Apache-2.0 */
/* router.h: maps the address of a request to its route, path variables and query arguments. The one place that decodes
 * percent-encoding, once. Pure but for the arena; any thread. */
#ifndef DPT_SERVER_ROUTER_H
#define DPT_SERVER_ROUTER_H

#include "web/api/call.h"

struct router_match {
	const struct route *route;  /* NULL: the address exists for other methods only */
	unsigned methods;           /* bit for each enum call_method that the address supports */
	enum call_error code;       /* set when router_find returns false */
	const char *why;
};

/* Splits and decodes target (path?query), finds its route and fills c->address. Returns false with code and why
 * if there is no such address, or it cannot be decoded. */
bool router_find(struct router_match *ret, struct call *c, enum call_method method, const char *target);

/* "GET, HEAD, OPTIONS, POST" for the bits of router_match.methods; text has room for 64 bytes. */
void router_allow(unsigned methods, char *text);

#endif
