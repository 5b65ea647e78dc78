/* series_names.c: the table of renamed series: an old prefix of keys and its replacement. */
#include "web/store/write/series_names.h"

static const struct {
	const char *old, *current;
	bool whole; /* the old text is the whole key, not a prefix */
} renamed[] = {
	{ "data/broken", "data/unreadable", true },
	{ "dead/", "dead_units/", false },
};

struct event_text series_current_name(struct event_text key, char scratch[SERIES_NAME_BYTES])
{
	for (size_t i = 0; i < sizeof renamed / sizeof *renamed && key.len <= LIMIT_key_bytes; i++) {
		size_t n = strlen(renamed[i].old), current_n = strlen(renamed[i].current);

		if (key.len < n || memcmp(key.at, renamed[i].old, n) || (renamed[i].whole && key.len > n))
			continue;
		memcpy(scratch, renamed[i].current, current_n);
		memcpy(scratch + current_n, key.at + n, key.len - n);
		return (struct event_text){ scratch, key.len - n + current_n };
	}
	return key;
}
