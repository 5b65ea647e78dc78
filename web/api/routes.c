/* routes.c: the route table, made from schema/api/routes.def. */
#include "web/api/api.h"

const struct route route_table[] = {
#define ROUTE(method, pattern, handler, scope, body_max) \
	{ METHOD_##method, pattern, handler, #handler, SCOPE_##scope, body_max },
#include "schema/api/routes.def"
#undef ROUTE
};

const size_t route_count = sizeof(route_table) / sizeof(route_table[0]);
