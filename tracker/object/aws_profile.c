/* aws_profile.c: parses profiles line by line. */
#include "tracker/object/aws_profile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tracker/base/file.h"

#define LINE_MAX_BYTES 8192

int aws_profile_load(struct buf *ret, const char *path, struct err *err)
{
	struct err failure;
	int rc = file_load(ret, path, &failure);

	if (!rc || errno == ENOENT || errno == ENOTDIR)
		return 0;
	return err_set(err, rc, "%s", failure.text);
}

static char *trim_blanks(char *text)
{
	size_t n = strlen(text);

	while (n && strchr(" \t\r", text[n - 1]))
		text[--n] = '\0';
	return text + strspn(text, " \t");
}

/* "[profile research]", with any number of blanks between words. */
static bool is_section_line(const char *line, const char *section)
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

/* Parses "name = value"; returns false for another name. */
static bool parse_setting(char *line, const char *name, const char **ret)
{
	char *equals = strchr(line, '=');

	if (!equals)
		return false;
	*equals = '\0';
	if (strcasecmp(trim_blanks(line), name))
		return false;
	*ret = trim_blanks(equals + 1);
	return true;
}

struct profile_walk {
	const struct aws_profile_place *place;
	bool in_section, in_parent; /* in the section; in the parent */
	bool section_found;	    /* the section exists */
};

/* Reads one line; returns true if it has the wanted value. */
static bool scan_profile_line(struct profile_walk *w, char *line, const char **ret)
{
	const struct aws_profile_place *p = w->place;
	bool indented = *line == ' ' || *line == '\t';

	line = trim_blanks(line);
	if (!*line || *line == '#' || *line == ';')
		return false;
	if (*line == '[' && !indented) {
		w->in_section = is_section_line(line, p->section);
		w->section_found |= w->in_section;
		w->in_parent = false;
		return false;
	}
	if (!w->in_section)
		return false;
	if (!p->name)
		return false;
	if (indented)
		return p->parent && w->in_parent && parse_setting(line, p->name, ret);
	if (!p->parent)
		return parse_setting(line, p->name, ret);
	w->in_parent = parse_setting(line, p->parent, ret) && !**ret;
	return false;
}

/* Returns true if a line has the wanted value. */
static bool scan_profile(struct profile_walk *w, const struct buf *text, char ret[AWS_PROFILE_VALUE_BYTES])
{
	const char *at = text->data ? text->data : "", *value;
	char line[LINE_MAX_BYTES];

	while (*at) {
		size_t n = strcspn(at, "\n");

		if (n < sizeof(line)) { /* longer lines are ignored */
			memcpy(line, at, n);
			line[n] = '\0';
			if (scan_profile_line(w, line, &value)) {
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
	struct profile_walk w = { .place = p };

	return scan_profile(&w, text, ret);
}

bool aws_profile_has(const struct buf *text, const char *section)
{
	struct aws_profile_place p = { .section = section };
	struct profile_walk w = { .place = &p };

	scan_profile(&w, text, NULL);
	return w.section_found;
}
