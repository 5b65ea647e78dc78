/* run_names.c: draws ids and derives names from them. */
#include "tracker/run/run_names.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/err.h"
#include "tracker/base/text.h"

static const char *const adjectives[32] = {
	"amber",  "bold", "brisk", "calm",  "clear",  "crisp", "deep",   "eager", "early", "fair",  "fresh",
	"gentle", "keen", "light", "lively", "lucid", "mellow", "merry", "mild",  "nimble", "plain", "proud",
	"quick",  "quiet", "rapid", "silent", "solid", "steady", "sunny", "swift", "warm",  "wise",
};

static const char *const nouns[32] = {
	"alder", "badger", "beech", "birch", "brook", "cedar", "comet", "crane", "dune",  "falcon", "fern",
	"finch", "fjord",  "grove", "heron", "iris",  "lake",  "larch", "lynx",  "maple", "marsh",  "meadow",
	"otter", "pine",   "plover", "raven", "ridge", "river", "robin", "spruce", "swan", "willow",
};

int names_draw_id(char ret[NAMES_ID_BYTES])
{
	return text_random_hex(ret, (NAMES_ID_BYTES - 1) / 2) ? ERR_IO : 0;
}

bool names_is_id(const char *id)
{
	return text_is_hex(id, NAMES_ID_BYTES - 1, NAMES_ID_BYTES - 1);
}

void names_from_id(char ret[FILE_NAME_BYTES], const char *id)
{
	char digits[9] = "";
	unsigned long bits;

	memcpy(digits, id, 8);
	bits = strtoul(digits, NULL, 16);
	snprintf(ret, FILE_NAME_BYTES, "%s-%s-%lu", adjectives[bits & 31], nouns[bits >> 5 & 31],
		 (bits >> 10) % 100);
}

void names_host(char ret[FILE_NAME_BYTES])
{
	char host[256] = "";

	if (gethostname(host, sizeof(host) - 1) || !host[0])
		snprintf(host, sizeof(host), "localhost");
	file_name_of(ret, host);
}
