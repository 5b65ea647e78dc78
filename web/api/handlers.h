/* handlers.h: declares the handlers by the names in routes.def, which are the operations of openapi.json. They are
 * defined in native/ and mlflow/; only the table of routes calls them. */
#ifndef DPT_API_HANDLERS_H
#define DPT_API_HANDLERS_H

#include "web/api/call.h"

#define ROUTE(dialect, method, pattern, handler, scope, body_max) enum call_next on_##handler(struct call *c);
#include "schema/api/routes.def"
#undef ROUTE

#endif
