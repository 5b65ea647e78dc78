/* findings.c: writes the findings of a check of the store as JSON. */
#include "web/api/native/findings.h"

void findings_write(struct js *j, const struct check_report *r, bool texts)
{
	size_t i;

	js_key_str(j, "worst", check_level_name(r->worst));
	js_key(j, "checked_time");
	if (r->time_ms)
		js_int(j, r->time_ms);
	else
		js_null(j);
	js_key(j, "findings");
	js_open(j, '[');
	for (i = 0; i < r->count; i++) {
		js_open(j, '{');
		js_key_str(j, "level", check_level_name(r->items[i].level));
		js_key_str(j, "check", r->items[i].name);
		if (texts)
			js_key_str(j, "text", r->items[i].text);
		js_close(j, '}');
	}
	js_close(j, ']');
}
