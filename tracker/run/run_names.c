/* run_names.c: draws ids and derives names from them. */
#include "tracker/run/run_names.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "tracker/base/err.h"

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
	unsigned char bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return ERR_IO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

bool names_is_id(const char *id)
{
	return strlen(id) == NAMES_ID_BYTES - 1 && strspn(id, "0123456789abcdef") == NAMES_ID_BYTES - 1;
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
