/* router.h: from the address of a request to its route, path variables and query arguments.
 * The one place where percent-encoding is undone, once. Pure but for the arena; any thread. */
#ifndef DPT_SERVER_ROUTER_H
#define DPT_SERVER_ROUTER_H

#include "web/api/call.h"

struct router_match {
	const struct route *route;  /* NULL: the address exists under other methods only */
	unsigned methods;           /* bit for each enum call_method that the address knows */
	enum call_error code;       /* when router_match returns false */
	const char *why;
};

/* Splits and decodes target (path?query) and finds its route; fills c->vars, rest, args. False with code and why:
 * no such address, or an address that cannot be decoded. */
bool router_find(struct router_match *ret, struct call *c, enum call_method method, const char *target);

/* "GET, HEAD, OPTIONS, POST" for the bits of router_match.methods; text has room for 64 bytes. */
void router_allow(unsigned methods, char *text);

#endif
