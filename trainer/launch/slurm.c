/* slurm.c: expands lists with repetitions and ranges. */
#include "trainer/launch/slurm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 256
#define DIGITS_MOST 9

int slurm_number(const char *text, int i)
{
	while (*text) {
		char *end;
		long v = strtol(text, &end, 10), times = 1;

		if (end == text || v < 0 || v > 65536)
			return -1;
		if (!strncmp(end, "(x", 2)) {
			times = strtol(end + 2, &end, 10);
			if (times < 1 || *end++ != ')')
				return -1;
		}
		if (i < times)
			return (int)v;
		i -= (int)times;
		if (*end && *end != ',')
			return -1;
		text = *end ? end + 1 : end;
	}
	return -1;
}

/* Returns the end of the name that begins here: a comma outside of brackets, or the end of the text. */
static const char *end_of_slurm_name(const char *at)
{
	for (int depth = 0; *at && (depth || *at != ','); at++)
		depth += (*at == '[') - (*at == ']');
	return at;
}

struct slurm_range { /* "01-04": from 1 on, 4 of them, two digits */
	long first, count;
	int digits;
	const char *end;
};

static bool read_slurm_range(const char *at, struct slurm_range *ret)
{
	char *end;
	long first = strtol(at, &end, 10), last = first;
	int digits = (int)(end - at);

	if (digits < 1 || digits > DIGITS_MOST || first < 0)
		return false;
	if (*end == '-') {
		const char *from = end + 1;

		last = strtol(from, &end, 10);
		if (end == from || end - from > DIGITS_MOST || last < first)
			return false;
	}
	*ret = (struct slurm_range){ first, last - first + 1, digits, end };
	return *end == ',' || *end == ']';
}

static bool expand_slurm_name(const char *name, int *i, char *ret, size_t n);

/* Expands the first bracket of the name, which opens at `open`, into each of its numbers in turn. */
static bool expand_slurm_bracket(const char *name, const char *open, int *i, char *ret, size_t n)
{
	const char *close = strchr(open, ']');
	struct slurm_range r = { .end = open };
	char one[NAME_BYTES];

	while (close && r.end < close) {
		if (!read_slurm_range(r.end + 1, &r))
			return false;
		for (long k = 0; k < r.count; k++) {
			int wrote = snprintf(one, sizeof(one), "%.*s%0*ld%s", (int)(open - name), name, r.digits,
					     r.first + k, close + 1);

			if (wrote < 0 || (size_t)wrote >= sizeof(one))
				return false;
			if (expand_slurm_name(one, i, ret, n))
				return true;
			if (*i < 0)
				return false;
		}
	}
	return false;
}

/* Subtracts the names of one entry from *i; true: name *i was found and is in ret. */
static bool expand_slurm_name(const char *name, int *i, char *ret, size_t n)
{
	const char *open = strchr(name, '[');

	if (open)
		return expand_slurm_bracket(name, open, i, ret, n);
	if ((*i)-- > 0)
		return false;
	if (!*name || strlen(name) >= n)
		return false;
	memcpy(ret, name, strlen(name) + 1);
	return true;
}

bool slurm_name(const char *list, int i, char *ret, size_t n)
{
	while (*list && i >= 0) {
		const char *end = end_of_slurm_name(list);
		char one[NAME_BYTES];

		if ((size_t)(end - list) >= sizeof(one))
			return false;
		memcpy(one, list, (size_t)(end - list));
		one[end - list] = '\0';
		if (expand_slurm_name(one, &i, ret, n))
			return true;
		list = *end ? end + 1 : end;
	}
	return false;
}
