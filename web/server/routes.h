/* routes.h: the table of routes, generated from schema/api/routes.def. */
#ifndef DPT_SERVER_ROUTES_H
#define DPT_SERVER_ROUTES_H

#include "web/api/call.h"

extern const struct route route_table[];
extern const size_t route_count;

#endif
