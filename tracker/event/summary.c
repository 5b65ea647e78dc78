/* summary.c: interprets a Summary.Value: by its simple value, by its plugin's name, or by its tensor's type. The whole
 * path of a simple scalar is in this file, so that the compiler can inline it: imports spend their time here. */
#include "tracker/event/summary.h"

#include "tracker/base/err.h"
#include "tracker/event/extension.h"
#include "tracker/event/fields.h"
#include "tracker/event/hparams.h"
#include "tracker/event/tensorboard.h"
#include "tracker/event/tensorproto.h"
#include "tracker/event/wire.h"

struct summary_value {
	struct event_text tag, plugin;
	struct event_span content, tensor;
	unsigned oneof_field; /* number of the set member of the oneof; 0: none */
	double simple;
	bool has_exact;
	double exact;
	int rank;
};

static int parse_value_metadata(struct event_span s, struct summary_value *v)
{
	struct wire_field f, p;
	int rc;

	while ((rc = wire_next(&s, &f)) > 0) {
		struct event_span plugin = wire_span(&f);

		if (f.number != TB_METADATA_PLUGIN)
			continue;
		while ((rc = wire_next(&plugin, &p)) > 0) {
			if (p.number == TB_PLUGIN_NAME && p.type == WIRE_BYTES)
				v->plugin = wire_text(&p);
			else if (p.number == TB_PLUGIN_CONTENT)
				v->content = wire_span(&p);
		}
		if (rc)
			return rc;
	}
	return rc;
}

/* Reads one field of a Summary.Value. */
static int parse_value_field(const struct wire_field *f, struct summary_value *v)
{
	switch (f->number) {
	case TB_VALUE_TAG:
		if (f->type == WIRE_BYTES)
			v->tag = wire_text(f);
		return 0;
	case TB_VALUE_SIMPLE:
		v->oneof_field = TB_VALUE_SIMPLE;
		v->simple = wire_widen(f->value);
		return f->type == WIRE_FIXED32 ? 0 : ERR_CORRUPT;
	case TB_VALUE_TENSOR:
		v->tensor = wire_span(f);
		v->oneof_field = TB_VALUE_TENSOR;
		return 0;
	case TB_VALUE_IMAGE:
	case TB_VALUE_HISTO:
	case TB_VALUE_AUDIO:
		v->oneof_field = f->number;
		return 0;
	case TB_VALUE_METADATA:
		return parse_value_metadata(wire_span(f), v);
	case FIELD_value_f64:
		v->has_exact = f->type == WIRE_FIXED64;
		v->exact = wire_double(f->value);
		return 0;
	case FIELD_value_rank:
		return extension_rank(f, &v->rank);
	default:
		return 0;
	}
}

/* A tensor is a scalar or a text if its plugin says so; without a plugin its type decides. */
static int parse_tensor_item(const struct summary_value *v, struct event_item *ret)
{
	struct tensorproto t;

	if (v->plugin.len && !event_text_equal(v->plugin, "scalars") && !event_text_equal(v->plugin, "text"))
		return 1;
	if (tensorproto_parse(v->tensor, &t))
		return ERR_CORRUPT;
	if (!event_text_equal(v->plugin, "text") && tensorproto_number(&t, &ret->value))
		ret->kind = EVENT_SCALAR;
	else if (!event_text_equal(v->plugin, "scalars") && t.dtype == TB_DT_STRING && t.has_text) {
		ret->kind = EVENT_TEXT;
		ret->text = t.text;
	}
	return 1;
}

/* Old values have a specific field instead of a plugin. */
static struct event_text plugin_from_field(unsigned field)
{
	switch (field) {
	case TB_VALUE_IMAGE:
		return (struct event_text){ "images", 6 };
	case TB_VALUE_HISTO:
		return (struct event_text){ "histograms", 10 };
	case TB_VALUE_AUDIO:
		return (struct event_text){ "audio", 5 };
	default:
		return (struct event_text){ "", 0 };
	}
}

/* Reads a Summary.Value and decides which kind of item it is. */
static int parse_summary_value(struct event_span s, struct event_span *params, struct event_item *ret)
{
	struct summary_value v = { .tag = { "", 0 }, .plugin = { "", 0 }, .rank = EVENT_RANK_DEFAULT };
	struct event_span whole = s;
	struct wire_field f;
	int rc;

	while ((rc = wire_next(&s, &f)) > 0) {
		rc = parse_value_field(&f, &v);
		if (rc)
			return rc;
	}
	if (rc)
		return rc;
	ret->kind = EVENT_OTHER;
	ret->key = v.tag;
	ret->text = v.plugin.len ? v.plugin : plugin_from_field(v.oneof_field);
	ret->rank = v.rank;
	ret->raw = whole;
	if (v.oneof_field == TB_VALUE_SIMPLE) {
		ret->kind = EVENT_SCALAR;
		ret->value = v.has_exact ? v.exact : v.simple;
		return 1;
	}
	if (event_text_equal(v.plugin, "hparams"))
		return hparams_item(v.content, params, ret);
	return v.oneof_field == TB_VALUE_TENSOR ? parse_tensor_item(&v, ret) : 1;
}

int summary_next(struct event_span *summary, struct event_span *params, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	while ((rc = wire_next(summary, &f)) > 0)
		if (f.number == TB_SUMMARY_VALUE && f.type == WIRE_BYTES)
			return parse_summary_value(f.bytes, params, ret);
	return rc;
}
