EXTRA_DIST += schema/event/fields.def schema/event/limits.def
