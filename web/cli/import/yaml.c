/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.c: parses YAML as PyYAML's emitter writes it (safe_dump: block mappings, width 80). */
#include "web/cli/import/mlruns_inside.h"

#include <stdlib.h>

#define TEXT_MAX ((size_t)64 << 20)

struct yaml_parser {
	const char *at;
	int line;
	struct arena *arena;
	const char *parent;
	struct yaml_pair **end;
	struct err *err;
};

static int fail_yaml(struct yaml_parser *y, const char *what)
{
	return err_set(y->err, ERR_CORRUPT, "line %d: %s", y->line, what);
}

static size_t count_indent(const char *line)
{
	return strspn(line, " ");
}

static void skip_yaml_line(struct yaml_parser *y)
{
	y->at += strcspn(y->at, "\n");
	if (*y->at)
		y->at++;
	y->line++;
}

/* --- scalars ---------------------------------------------------------------------------------------------------- */

/* A line break inside a quoted or plain scalar: the first is a space, each further one a line feed. Begins at the break
 * and ends after the indentation of the next line. */
static void fold_line_break(struct yaml_parser *y, struct buf *to)
{
	int breaks = 0;

	while (to->len && to->data[to->len - 1] == ' ')
		to->data[--to->len] = 0;
	while (*y->at == '\n') {
		breaks++;
		y->line++;
		y->at++;
		y->at += count_indent(y->at);
	}
	if (breaks == 1)
		buf_addc(to, ' ');
	for (; breaks > 1; breaks--)
		buf_addc(to, '\n');
}

static void append_utf8(struct buf *to, uint32_t c)
{
	if (c < 0x80) {
		buf_addc(to, (char)c);
	} else if (c < 0x800) {
		buf_addc(to, (char)(0xc0 | c >> 6));
		buf_addc(to, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		buf_addc(to, (char)(0xe0 | c >> 12));
		buf_addc(to, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_addc(to, (char)(0x80 | (c & 0x3f)));
	} else {
		buf_addc(to, (char)(0xf0 | c >> 18));
		buf_addc(to, (char)(0x80 | (c >> 12 & 0x3f)));
		buf_addc(to, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_addc(to, (char)(0x80 | (c & 0x3f)));
	}
}

/* Parses the characters after a backslash. */
static int parse_yaml_escape(struct yaml_parser *y, struct buf *to)
{
	static const char letters[] = "0abtnvfre\"/\\ N_LP";
	static const uint32_t codes[] = { 0,   7,   8,	  9,   10,   11,   12,	   13,	  27,
					  '"', '/', '\\', ' ', 0x85, 0xa0, 0x2028, 0x2029 };
	char c = *y->at, hex[9] = "";
	const char *known = c ? strchr(letters, c) : NULL;
	int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;

	if (c == '\n') { /* an escaped line break adds nothing */
		y->line++;
		y->at += 1 + count_indent(y->at + 1);
		return 0;
	}
	if (known) {
		y->at++;
		append_utf8(to, codes[known - letters]);
		return 0;
	}
	if (!digits || strnlen(y->at + 1, 8) < (size_t)digits)
		return fail_yaml(y, "unknown escape after a backslash");
	memcpy(hex, y->at + 1, (size_t)digits);
	y->at += 1 + digits;
	append_utf8(to, (uint32_t)strtoul(hex, NULL, 16) & 0x1fffff);
	return 0;
}

static int parse_double_quoted(struct yaml_parser *y, struct buf *to)
{
	int rc = 0;

	for (y->at++; *y->at && *y->at != '"' && !rc;) {
		if (*y->at == '\n') {
			fold_line_break(y, to);
		} else if (*y->at == '\\') {
			y->at++;
			rc = parse_yaml_escape(y, to);
		} else {
			buf_addc(to, *y->at++);
		}
	}
	if (rc)
		return rc;
	return *y->at++ == '"' ? 0 : fail_yaml(y, "a quoted string has no end");
}

static int parse_single_quoted(struct yaml_parser *y, struct buf *to)
{
	for (y->at++; *y->at;) {
		if (*y->at == '\'' && y->at[1] != '\'')
			break;
		if (*y->at == '\n') {
			fold_line_break(y, to);
			continue;
		}
		y->at += *y->at == '\'';
		buf_addc(to, *y->at++);
	}
	return *y->at++ == '\'' ? 0 : fail_yaml(y, "a quoted string has no end");
}

/* A plain scalar ends with the last line that is indented further than its key. */
static void parse_plain_scalar(struct yaml_parser *y, struct buf *to, size_t indent)
{
	for (;;) {
		size_t n = strcspn(y->at, "\n");
		const char *next = y->at + n;

		buf_add(to, y->at, n);
		y->at = next;
		while (*next == '\n' && next[1] == '\n')
			next++;
		if (*next != '\n' || !next[1] || count_indent(next + 1) <= indent)
			return;
		fold_line_break(y, to);
	}
}

/* A literal block: its lines without their indentation. */
static void parse_literal_block(struct yaml_parser *y, struct buf *to, size_t indent)
{
	bool strip = y->at[1] == '-', keep = y->at[1] == '+';
	size_t own = 0;

	skip_yaml_line(y);
	while (*y->at && (count_indent(y->at) > indent || *y->at == '\n')) {
		size_t has = count_indent(y->at), n;

		own = own || *y->at == '\n' ? own : has;
		y->at += has < own ? has : own;
		n = strcspn(y->at, "\n");
		buf_add(to, y->at, n);
		buf_addc(to, '\n');
		skip_yaml_line(y);
	}
	while (!keep && to->len > (strip ? 0u : 1u) && to->data[to->len - 1] == '\n' &&
	       (strip || to->data[to->len - 2] == '\n'))
		to->data[--to->len] = 0;
}

/* Parses the value after a colon, of a key with this indentation. Ends at the next line. */
static int parse_yaml_scalar(struct yaml_parser *y, size_t indent, const char **ret)
{
	struct buf to;
	bool is_plain = !strchr("'\"|", *y->at) || !*y->at;
	int rc = 0;

	buf_init(&to, TEXT_MAX);
	buf_adds(&to, "");
	if (*y->at == '"')
		rc = parse_double_quoted(y, &to);
	else if (*y->at == '\'')
		rc = parse_single_quoted(y, &to);
	else if (*y->at == '|')
		parse_literal_block(y, &to, indent);
	else
		parse_plain_scalar(y, &to, indent);
	if (!rc && !(to.len == 0 && !is_plain) && is_plain &&
	    (!to.len || !strcmp(to.data, "null") || !strcmp(to.data, "~")))
		*ret = NULL;
	else if (!rc)
		*ret = arena_strdup(y->arena, to.len ? to.data : "");
	if (!rc && y->at[-1] != '\n')
		skip_yaml_line(y);
	buf_done(&to);
	return rc;
}

/* --- mappings --------------------------------------------------------------------------------------------------- */

/* Parses a key, quoted or plain, up to its colon. */
static int parse_yaml_key(struct yaml_parser *y, const char **ret)
{
	struct buf to;
	size_t n;
	int rc = 0;

	buf_init(&to, TEXT_MAX);
	buf_adds(&to, "");
	if (*y->at == '"') {
		rc = parse_double_quoted(y, &to);
	} else if (*y->at == '\'') {
		rc = parse_single_quoted(y, &to);
	} else {
		const char *end = strstr(y->at, ": "), *line = y->at + strcspn(y->at, "\n");

		if (!end || end > line)
			end = line > y->at && line[-1] == ':' ? line - 1 : NULL;
		n = end ? (size_t)(end - y->at) : 0;
		buf_add(&to, y->at, n);
		y->at += n;
	}
	if (!rc && *y->at != ':')
		rc = fail_yaml(y, "expected a key and a colon");
	if (!rc) {
		y->at++;
		y->at += count_indent(y->at);
		*ret = arena_strdup(y->arena, to.len ? to.data : "");
	}
	buf_done(&to);
	return rc;
}

static void add_yaml_pair(struct yaml_parser *y, const char *name, const char *value)
{
	struct yaml_pair *p = arena_alloc(y->arena, sizeof(*p));

	*p = (struct yaml_pair){ y->parent, name, value, NULL };
	*y->end = p;
	y->end = &p->next;
}

/* Skips lines that are indented further than the key, and the lines of a sequence, which may have the same
 * indentation. */
static void skip_nested_lines(struct yaml_parser *y, size_t indent)
{
	while (*y->at && (count_indent(y->at) > indent || (count_indent(y->at) == indent && y->at[indent] == '-')))
		skip_yaml_line(y);
}

/* Parses the mapping at this indentation; a mapping in it becomes pairs with a parent, deeper ones are skipped. */
static int parse_yaml_mapping(struct yaml_parser *y, size_t indent)
{
	int rc = 0;

	while (!rc && *y->at) {
		const char *name = NULL, *value = NULL;
		size_t in = count_indent(y->at);

		if (y->at[in] == '\n' || y->at[in] == '#' || !strncmp(y->at, "---", 3)) {
			skip_yaml_line(y);
			continue;
		}
		if (in != indent)
			return in < indent ? 0 : fail_yaml(y, "unexpected indentation");
		y->at += in;
		rc = parse_yaml_key(y, &name);
		if (rc)
			return rc;
		if (*y->at == '\n' || !*y->at) {
			skip_yaml_line(y);
			if (indent || count_indent(y->at) <= indent || y->at[count_indent(y->at)] == '-') {
				skip_nested_lines(y, indent);
				continue;
			}
			y->parent = name;
			rc = parse_yaml_mapping(y, count_indent(y->at));
			y->parent = "";
		} else if (*y->at == '[' || *y->at == '{') {
			skip_yaml_line(y); /* empty ones; others span several lines */
		} else {
			rc = parse_yaml_scalar(y, indent, &value);
			if (!rc)
				add_yaml_pair(y, name, value);
		}
	}
	return rc;
}

int yaml_read(const char *text, struct arena *a, struct yaml_pair **ret, struct err *err)
{
	struct yaml_pair *first = NULL;
	struct yaml_parser y = { .at = text, .line = 1, .arena = a, .parent = "", .end = &first, .err = err };
	int rc = parse_yaml_mapping(&y, 0);

	if (!rc)
		*ret = first;
	return rc;
}

const char *yaml_get(const struct yaml_pair *pairs, const char *name)
{
	for (; pairs; pairs = pairs->next)
		if (!*pairs->parent && !strcmp(pairs->key, name))
			return pairs->value ? pairs->value : "";
	return "";
}
