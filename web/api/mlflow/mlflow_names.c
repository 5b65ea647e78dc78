/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow_names.c: MLflow's rules for the names of params, metrics, tags, runs and experiments. */
#include "web/api/mlflow/mlflow_request.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tracker/base/utf8.h"

const char *ml_cut(struct call *c, const char *text, size_t max_chars)
{
	const char *end = text;
	size_t n = 0;
	char *copy;

	if (strlen(text) <= max_chars)
		return text;
	for (; *end; end++)
		if (((unsigned char)*end & 0xc0) != 0x80 && n++ == max_chars)
			break;
	if (!*end)
		return text;
	copy = arena_alloc(c->arena, (size_t)(end - text) + 1);
	memcpy(copy, text, (size_t)(end - text));
	return copy;
}

bool ml_length_ok(struct call *c, const char *what, size_t max_chars, const char *text)
{
	if (!text || strlen(text) <= max_chars || utf8_chars(text) <= max_chars)
		return true;
	ml_fail(c, ML_INVALID_PARAMETER_VALUE, "'%s' exceeds the maximum length of %zu characters", what, max_chars);
	return false;
}

static uint32_t decode_utf8_char(const unsigned char **at)
{
	const unsigned char *s = *at;
	int more = s[0] < 0x80 ? 0 : s[0] < 0xe0 ? 1 : s[0] < 0xf0 ? 2 : 3;
	uint32_t ch = more == 0 ? s[0] : more == 1 ? s[0] & 0x1fu : more == 2 ? s[0] & 0xfu : s[0] & 7u;

	for (s++; more && (*s & 0xc0) == 0x80; more--)
		ch = ch << 6 | (*s++ & 0x3fu);
	*at = s;
	return ch;
}

/* Above ASCII, letters and digits of any script are allowed: the table lists the excluded blocks of punctuation,
 * symbols and pictures. */
static bool is_name_char(uint32_t ch)
{
	static const struct {
		uint32_t from, to;
	} others[] = {
		{ 0x80, 0xa9 },	    { 0xab, 0xb1 },	{ 0xb4, 0xb4 },	    { 0xb6, 0xb8 },	  { 0xbb, 0xbb },
		{ 0xbf, 0xbf },	    { 0xd7, 0xd7 },	{ 0xf7, 0xf7 },	    { 0x2000, 0x206f },	  { 0x20a0, 0x20cf },
		{ 0x2190, 0x245f }, { 0x2500, 0x2775 }, { 0x2794, 0x2bff }, { 0x3000, 0x3004 },	  { 0x3008, 0x3020 },
		{ 0xe000, 0xf8ff }, { 0xfe10, 0xfe6f }, { 0xfff0, 0xffff }, { 0x1f000, 0x1f0ff }, { 0x1f10d, 0x1faff },
	};
	size_t i;

	if (ch < 0x80)
		return isalnum((int)ch) || (ch && strchr("/_.-: ", (int)ch));
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (ch >= others[i].from && ch <= others[i].to)
			return false;
	return true;
}

/* The path without empty and "." segments, and with "x/.." resolved. */
static const char *normalize_name_path(struct call *c, const char *path)
{
	const char *parts[128];
	size_t lens[128], n = 0, i, len;
	const char *out = *path == '/' ? "/" : "";

	for (; *path; path += len + (path[len] == '/')) {
		len = strcspn(path, "/");
		if (!len || (len == 1 && *path == '.'))
			continue;
		if (len == 2 && !strncmp(path, "..", 2) && ((n && strncmp(parts[n - 1], "..", 2)) || *out)) {
			n -= n > 0;
			continue;
		}
		if (n < 128) {
			parts[n] = path;
			lens[n++] = len;
		}
	}
	for (i = 0; i < n; i++)
		out = arena_printf(c->arena, "%s%s%.*s", out, i ? "/" : "", (int)lens[i], parts[i]);
	return *out ? out : ".";
}

/* Returns true if normalize_name_path would not change the name and it stays below its folder. */
static bool is_plain_name_path(const char *name)
{
	size_t len;

	if (!*name || *name == '/' || !strncmp(name, "..", 2))
		return false;
	for (;; name += len + 1) {
		len = strcspn(name, "/");
		if (!len || (len == 1 && *name == '.') || (len == 2 && !strncmp(name, "..", 2)))
			return false;
		if (!name[len])
			return true;
	}
}

static bool has_name_chars_only(const char *name)
{
	const unsigned char *at = (const unsigned char *)name;

	while (*at)
		if (!is_name_char(decode_utf8_char(&at)))
			return false;
	return true;
}

bool ml_path_ok(struct call *c, const char *path, const char *name)
{
	json_t *value;

	if (is_plain_name_path(name))
		return true;
	value = json_string(name);
	ml_fail_value(c, path, value,
		      arena_printf(c->arena,
				   "Names may be treated as files in certain cases, and must not resolve to other "
				   "names when treated as such. This name would resolve to '%s'",
				   normalize_name_path(c, name)));
	json_decref(value);
	return false;
}

bool ml_name_ok(struct call *c, const char *path, const char *name)
{
	json_t *value;

	if (has_name_chars_only(name))
		return ml_path_ok(c, path, name);
	value = json_string(name);
	ml_fail_value(c, path, value,
		      "Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), "
		      "colon(:) and slashes (/).");
	json_decref(value);
	return false;
}

bool ml_item_name_ok(struct call *c, const char *what, size_t index, const char *member, const char *name)
{
	if (has_name_chars_only(name) && is_plain_name_path(name))
		return true;
	return ml_name_ok(c, arena_printf(c->arena, "%s[%zu].%s", what, index, member), name);
}

struct ingest_kv *ml_any_pairs(struct call *c, json_t *list, const char *what, bool keyed, size_t *ret_count)
{
	size_t n = json_array_size(list), i;
	struct ingest_kv *kv = arena_array(c->arena, n + 1, sizeof(*kv));

	for (i = 0; i < n; i++) {
		const struct ml_field fields[] = { { "key", ML_STRING, keyed, &kv[i].key, NULL },
						   { "value", ML_STRING, false, &kv[i].value, NULL },
						   { 0 } };

		kv[i] = (struct ingest_kv){ "", "" };
		if (!ml_read_item(c, list, what, i, fields))
			return NULL;
	}
	*ret_count = n;
	return kv;
}

bool ml_pairs(struct call *c, json_t *list, const char *what, size_t value_max, struct ingest_kv **ret)
{
	size_t n, i;
	struct ingest_kv *kv = ml_any_pairs(c, list, what, true, &n);

	for (i = 0; kv && i < n; i++) {
		if (!ml_item_name_ok(c, what, i, "key", kv[i].key))
			return false;
		kv[i].value = ml_cut(c, kv[i].value, value_max);
	}
	*ret = kv;
	return kv != NULL;
}

bool ml_word_ok(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	bool ok = true;

	while (*at && ok) {
		uint32_t ch = decode_utf8_char(&at);

		ok = is_name_char(ch) && (ch >= 0x80 || isalnum((int)ch) || ch == '_' || ch == '-');
	}
	return ok;
}

bool ml_run_id_ok(struct call *c, const char *id)
{
	json_t *value;

	if (isalnum((unsigned char)*id) && utf8_chars(id) <= 256 && ml_word_ok(id))
		return true;
	value = json_string(id);
	ml_fail_value(c, "run_id", value, "");
	json_decref(value);
	return false;
}

bool ml_experiment_id(struct call *c, const char *text, int64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoll(text, &end, 10);
	if (*text && !isspace((unsigned char)*text) && !*end && !errno)
		return true;
	ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Invalid experiment ID '%s'. Experiment ID must be a valid integer.",
		text);
	return false;
}

/* Words that MLflow's clients know as those of generated names; at most 20 characters with the number. */
const char *ml_random_name(struct call *c)
{
	static const char *const adjectives[] = {
		"able", "abundant", "adorable", "amazing", "awesome", "bold", "bright", "calm", "capable",
		"carefree", "caring", "casual", "charming", "chill", "classy", "clean", "colorful", "dashing",
		"dazzling", "delicate", "enthused", "fearless", "flawless", "fun", "funny", "gentle", "gifted",
		"handsome", "learned", "likeable", "luminous", "lyrical", "melodic", "merciful", "nebulous",
		"nimble", "orderly", "peaceful", "polite", "popular", "powerful", "rare", "redolent", "rumbling",
		"sedate", "serious", "silent", "skillful", "smiling", "sneaky", "stylish", "trusting", "unique",
		"upbeat", "upset", "useful", "valuable", "wise", "worried", "youthful", "zealous",
	};
	static const char *const nouns[] = {
		"ant",	 "bat",	 "bear",  "bee",   "bird",  "boar",  "carp", "cat",   "cod",   "crab",	"crane",
		"crow",	 "deer", "doe",	  "dog",   "dove",  "duck",  "eel",  "elk",   "finch", "fish",	"fox",
		"frog",	 "goat", "goose", "gull",  "hare",  "hawk",  "hen",  "horse", "jay",   "koi",	"lamb",
		"lark",	 "lynx", "mole",  "moose", "moth",  "mouse", "newt", "owl",   "perch", "quail", "rat",
		"robin", "seal", "shrew", "snail", "stork", "swan",  "toad", "trout", "vole",  "wolf",	"wren",
	};
	uint32_t r[3] = { 0 };

	if (getrandom(r, sizeof(r), 0) != sizeof(r))
		r[0] = (uint32_t)(uintptr_t)c;
	return arena_printf(c->arena, "%s-%s-%u", adjectives[r[0] % (sizeof(adjectives) / sizeof(adjectives[0]))],
			    nouns[r[1] % (sizeof(nouns) / sizeof(nouns[0]))], r[2] % 1000);
}
