/* SPDX-License-Identifier: Apache-2.0 */
/* run_facts.c: the functions of dptrack.h that record everything except points: params, tags, environment, notes,
 * status, … They check and clean their input; lost or truncated input causes a warning. Independent of the encoding and
 * of the time of writing. */

#include <stdlib.h>

#include "tracker/base/utf8.h"
#include "tracker/run/run_inside.h"

static int warn_if_refused(struct dptrack_run *run, const char *what, const char *key, int rc)
{
	if (rc == ERR_EXISTS)
		warn_post(run->warn, WARN_PARAM, "%s \"%s\" already has another value; the first one is kept", what,
			  key);
	else if (rc)
		warn_post(run->warn, WARN_PARAM, "%s \"%s\" is lost: too many are set or queued", what, key);
	return rc;
}

static int check_fact_key(struct dptrack_run *run, const char *what, const char *key)
{
	const char *why = key_check(key ? key : "", key ? strlen(key) : 0);
	char shown[KEY_SHOWN_BYTES];

	if (!why)
		return 0;
	key_show(shown, key);
	warn_post(run->warn, WARN_PARAM, "%s \"%s\" is lost: the key %s", what, shown, why);
	return DPTRACK_USAGE;
}

/* Copies valid UTF-8 of at most cap - 1 bytes into the caller's storage. */
static struct event_text clean_fact_text(struct dptrack_run *run, const char *what, const char *value, char *to,
					 size_t cap)
{
	bool cut;
	size_t n = utf8_copy(to, cap, value ? value : "", value ? strlen(value) : 0, &cut);

	if (cut)
		warn_post(run->warn, WARN_CUT, "%s is longer than %zu bytes and was truncated", what, cap - 1);
	return (struct event_text){ to, n };
}

static int add_typed_param(struct dptrack_run *run, const char *key, struct encode_param *p)
{
	int rc;

	if (!run_usable(run))
		return DPTRACK_FORKED;
	rc = check_fact_key(run, "param", key);
	if (rc)
		return rc;
	p->key = (struct event_text){ key, strlen(key) };
	return warn_if_refused(run, "param", key, records_param(run->records, p));
}

static int add_text_param(struct dptrack_run *run, const char *key, const char *value, struct encode_param p)
{
	char text[LIMIT_value_bytes + 1];

	if (!run_usable(run))
		return DPTRACK_FORKED;
	p.type = EVENT_TYPE_TEXT;
	p.text = clean_fact_text(run, "the value of a param", value, text, sizeof(text));
	return add_typed_param(run, key, &p);
}

int dptrack_param(struct dptrack_run *run, const char *key, const char *value)
{
	return add_text_param(run, key, value, (struct encode_param){ 0 });
}

int dptrack_segment_param(struct dptrack_run *run, const char *key, const char *value)
{
	return add_text_param(run, key, value, (struct encode_param){ .segment = true });
}

int dptrack_param_change(struct dptrack_run *run, const char *key, const char *value)
{
	return add_text_param(run, key, value, (struct encode_param){ .changed = true });
}

int dptrack_param_f64(struct dptrack_run *run, const char *key, double value)
{
	return add_typed_param(run, key, &(struct encode_param){ .type = EVENT_TYPE_F64, .value = value });
}

int dptrack_param_i64(struct dptrack_run *run, const char *key, int64_t value)
{
	return add_typed_param(run, key, &(struct encode_param){ .type = EVENT_TYPE_I64, .integer = value });
}

int dptrack_param_bool(struct dptrack_run *run, const char *key, bool value)
{
	return add_typed_param(run, key, &(struct encode_param){ .type = EVENT_TYPE_BOOL, .integer = value });
}

static int add_key_value(struct dptrack_run *run, enum record_pair kind, const char *key, const char *value)
{
	const char *what = kind == RECORD_TAG ? "tag" : "environment entry";
	char text[LIMIT_value_bytes + 1];
	int rc;

	if (!run_usable(run))
		return DPTRACK_FORKED;
	rc = check_fact_key(run, what, key);
	if (rc)
		return rc;
	return warn_if_refused(run, what, key,
			       records_pair(run->records, kind, (struct event_text){ key, strlen(key) },
					    clean_fact_text(run, "the value of a tag", value, text, sizeof(text))));
}

int dptrack_tag(struct dptrack_run *run, const char *key, const char *value)
{
	return add_key_value(run, RECORD_TAG, key, value);
}

int dptrack_environment(struct dptrack_run *run, const char *key, const char *value)
{
	return add_key_value(run, RECORD_ENV, key, value);
}

int dptrack_note(struct dptrack_run *run, const char *markdown)
{
	char *text;
	int rc;

	if (!run_usable(run))
		return DPTRACK_FORKED;
	text = malloc(LIMIT_note_bytes + 1);
	if (!text)
		return DPTRACK_NOMEM;
	rc = records_note(run->records, clean_fact_text(run, "the note", markdown, text, LIMIT_note_bytes + 1));
	free(text);
	return warn_if_refused(run, "note", "", rc);
}

int dptrack_code(struct dptrack_run *run, const char *name, const char *value)
{
	char *text;
	int rc;

	if (!run_usable(run))
		return DPTRACK_FORKED;
	rc = check_fact_key(run, "a part of the code", name);
	if (rc)
		return rc;
	text = malloc(LIMIT_code_bytes + 1);
	if (!text)
		return DPTRACK_NOMEM;
	rc = records_code(run->records, (struct event_text){ name, strlen(name) },
			  clean_fact_text(run, "a part of the code", value, text, LIMIT_code_bytes + 1));
	free(text);
	return warn_if_refused(run, "a part of the code", name, rc);
}

int dptrack_alert(struct dptrack_run *run, enum dptrack_level level, int64_t step, const char *title, const char *text)
{
	char head[LIMIT_alert_title_bytes + 1], body[LIMIT_alert_text_bytes + 1];
	struct encode_alert a = { .level = (int)level, .step = step };

	if (!run_usable(run))
		return DPTRACK_FORKED;
	if (level < DPTRACK_INFO || level > DPTRACK_ERROR || !title || !*title)
		return DPTRACK_USAGE;
	a.title = clean_fact_text(run, "the title of an alert", title, head, sizeof(head));
	a.text = clean_fact_text(run, "the text of an alert", text, body, sizeof(body));
	return warn_if_refused(run, "alert", title, records_alert(run->records, &a));
}

int dptrack_input(struct dptrack_run *run, const struct dptrack_input_opts *o)
{
	char name[LIMIT_input_name_bytes + 1], digest[LIMIT_input_digest_bytes + 1];
	char context[LIMIT_input_word_bytes + 1], type[LIMIT_input_word_bytes + 1];
	char source[LIMIT_value_bytes + 1], profile[LIMIT_value_bytes + 1];
	struct event_input in;

	if (!run_usable(run))
		return DPTRACK_FORKED;
	if (!o->name || !*o->name || !o->digest || !*o->digest)
		return DPTRACK_USAGE;
	in.name = clean_fact_text(run, "the name of a data set", o->name, name, sizeof(name));
	in.digest = clean_fact_text(run, "the digest of a data set", o->digest, digest, sizeof(digest));
	in.context = clean_fact_text(run, "the context of a data set", o->context, context, sizeof(context));
	in.source_type = clean_fact_text(run, "the source type of a data set", o->source_type, type, sizeof(type));
	in.source = clean_fact_text(run, "the source of a data set", o->source, source, sizeof(source));
	in.profile = clean_fact_text(run, "the profile of a data set", o->profile, profile, sizeof(profile));
	return warn_if_refused(run, "data set", o->name, records_input(run->records, &in));
}

int dptrack_console(struct dptrack_run *run, int stream, const char *bytes, size_t n)
{
	if (!run_usable(run))
		return DPTRACK_FORKED;
	if (stream < 1 || stream > 2)
		return DPTRACK_USAGE;
	return console_capture_add(run->printed, stream, bytes, n) ? 0 : DPTRACK_LIMIT;
}

int dptrack_set_status(struct dptrack_run *run, enum dptrack_status status, const char *reason)
{
	char text[LIMIT_reason_bytes + 1];

	if (!run_usable(run))
		return DPTRACK_FORKED;
	if ((unsigned)status > DPTRACK_SCHEDULED)
		return DPTRACK_USAGE;
	return warn_if_refused(
		run, "status", "",
		records_status(run->records, (enum event_status)status,
			       clean_fact_text(run, "the reason of a status", reason, text, sizeof(text))));
}
