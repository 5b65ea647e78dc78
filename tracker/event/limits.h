/* limits.h: schema/event/limits.def as constants LIMIT_<name>. */
#ifndef DPT_EVENT_LIMITS_H
#define DPT_EVENT_LIMITS_H

enum limit {
#define LIMIT(name, value) LIMIT_##name = (value),
#include "schema/event/limits.def"
#undef LIMIT
};

#endif
