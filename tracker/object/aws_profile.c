/* aws_profile.c: line by line. */
#include "tracker/object/aws_profile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define LINE_MAX_BYTES 8192

int aws_profile_load(struct buf *ret, const char *path, struct err *err)
{
	FILE *f = fopen(path, "re");
	char piece[4096];
	size_t n;
	int rc = 0;

	if (!f)
		return errno == ENOENT || errno == ENOTDIR
			? 0
			: err_set(err, ERR_USAGE, "%.300s: %s", path, strerror(errno));
	while ((n = fread(piece, 1, sizeof(piece), f)))
		buf_add(ret, piece, n);
	if (ferror(f) || buf_failed(ret))
		rc = err_set(err, ERR_USAGE, "%.300s: %s", path, ferror(f) ? "cannot be read" : "is too large");
	fclose(f);
	return rc;
}

static char *trimmed(char *text)
{
	size_t n = strlen(text);

	while (n && strchr(" \t\r", text[n - 1]))
		text[--n] = '\0';
	return text + strspn(text, " \t");
}

/* "[profile research]", blanks within as they may be. */
static bool is_section(const char *line, const char *section)
{
	size_t first = strcspn(section, " ");

	line += 1 + strspn(line + 1, " \t");
	if (strncmp(line, section, first))
		return false;
	line += first;
	if (section[first]) {
		const char *rest = section + first + 1;

		if (*line != ' ' && *line != '\t')
			return false;
		line += strspn(line, " \t");
		if (strncmp(line, rest, strlen(rest)))
			return false;
		line += strlen(rest);
	}
	line += strspn(line, " \t");
	return *line == ']';
}

/* "name = value"; false for another name. */
static bool take(char *line, const char *name, const char **ret)
{
	char *equals = strchr(line, '=');

	if (!equals)
		return false;
	*equals = '\0';
	if (strcasecmp(trimmed(line), name))
		return false;
	*ret = trimmed(equals + 1);
	return true;
}

struct walk {
	const struct aws_profile_place *place;
	bool inside, below; /* the section; the parent */
	bool met;	    /* the section */
};

/* One line; true when it holds what is looked for. */
static bool look(struct walk *w, char *line, const char **ret)
{
	const struct aws_profile_place *p = w->place;
	bool indented = *line == ' ' || *line == '\t';

	line = trimmed(line);
	if (!*line || *line == '#' || *line == ';')
		return false;
	if (*line == '[' && !indented) {
		w->inside = is_section(line, p->section);
		w->met |= w->inside;
		w->below = false;
		return false;
	}
	if (!w->inside)
		return false;
	if (!p->name)
		return false;
	if (indented)
		return p->parent && w->below && take(line, p->name, ret);
	if (!p->parent)
		return take(line, p->name, ret);
	w->below = take(line, p->parent, ret) && !**ret;
	return false;
}

/* True when a line holds what is looked for. */
static bool walk(struct walk *w, const struct buf *text, char ret[AWS_PROFILE_VALUE_BYTES])
{
	const char *at = text->data ? text->data : "", *value;
	char line[LINE_MAX_BYTES];

	while (*at) {
		size_t n = strcspn(at, "\n");

		if (n < sizeof(line)) { /* a longer one is nobody's */
			memcpy(line, at, n);
			line[n] = '\0';
			if (look(w, line, &value)) {
				snprintf(ret, AWS_PROFILE_VALUE_BYTES, "%s", value);
				return true;
			}
		}
		at += n + (at[n] == '\n');
	}
	return false;
}

bool aws_profile_find(const struct buf *text, const struct aws_profile_place *p, char ret[AWS_PROFILE_VALUE_BYTES])
{
	struct walk w = { .place = p };

	return walk(&w, text, ret);
}

bool aws_profile_has(const struct buf *text, const char *section)
{
	struct aws_profile_place p = { .section = section };
	struct walk w = { .place = &p };

	walk(&w, text, NULL);
	return w.met;
}
