/* mutant.cc: see mutant.h. */
#include "tests/fakes/cuda/mutant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <set>
#include <string>
#include <utility>

#include "tests/fakes/cuda/emulate.h"

static const char *given(void)
{
	const char *text = getenv("DPTRAIN_FAKE_MUTANT");

	return text ? text : "";
}

static const std::string chosen = given();
static const unsigned chosen_line = chosen.find(':') == std::string::npos
					    ? 0 : (unsigned)atoi(chosen.c_str() + chosen.find(':') + 1);
static const bool listing = chosen == "list";
bool mutant_chosen = !chosen.empty();

static void report(const std::string &name)
{
	static std::set<std::string> reported;

	if (reported.insert(name).second)
		fprintf(stderr, "mutant: %s\n", name.c_str());
}

/* Returns its name, with the file's path below the sources. */
static std::string name_of(const char *kind, const char *file, unsigned line)
{
	const char *below = strstr(file, "trainer/");

	return std::string(kind) + " " + (below ? below : file) + ":" + std::to_string(line);
}

/* Kernels call this millions of times: names are made only if they may matter. */
bool mutant_at(const char *kind, const char *file, unsigned line)
{
	static std::set<std::pair<const char *, unsigned>> seen;

	if (listing && seen.insert({ file, line }).second)
		report(name_of(kind, file, line));
	return line == chosen_line && name_of(kind, file, line) == chosen;
}

bool mutant_numbered(const char *kind, int number)
{
	const std::string name = std::string(kind) + " " + std::to_string(number);

	if (listing)
		report(name);
	return name == chosen;
}

bool emulated_lacks(const char *kind, const std::source_location &at)
{
	return mutant_at(kind, at.file_name(), (unsigned)at.line());
}
