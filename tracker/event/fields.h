/* fields.h: schema/event/fields.def as constants FIELD_<message>_<name>. */
#ifndef DPT_EVENT_FIELDS_H
#define DPT_EVENT_FIELDS_H

enum field {
#define FIELD(name, number) FIELD_##name = (number),
#include "schema/event/fields.def"
#undef FIELD
};

#endif
