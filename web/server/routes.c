/* routes.c: the route table, generated from schema/api/routes.def. */
#include "web/server/routes.h"

#include "web/api/handlers.h"

const struct route route_table[] = {
#define ROUTE(dialect, method, pattern, handler, scope, body_max) \
	{ DIALECT_##dialect, METHOD_##method, pattern, on_##handler, #handler, SCOPE_##scope, body_max },
#include "schema/api/routes.def"
#undef ROUTE
};

const size_t route_count = sizeof(route_table) / sizeof(route_table[0]);
