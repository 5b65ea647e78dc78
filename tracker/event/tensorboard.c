/* SPDX-License-Identifier: Apache-2.0 */
/* tensorboard.c: reads the values of a Summary. A TensorProto holds its elements as raw content or in a list of their
 * type, packed or not. Writers differ, so every form is read. The path of a simple scalar is short, because an import
 * spends its time there. */
#include "tracker/event/tensorboard.h"

#include "tracker/event/extension.h"

/* ---- tensors ---- */

int tensorproto_next_dim(struct event_span *shape, uint64_t *size)
{
	struct wire_field f, d;
	struct event_span dim;
	int rc;

	do {
		rc = wire_next(shape, &f);
		if (rc <= 0)
			return rc;
	} while (f.number != TB_SHAPE_DIM);
	*size = 0;
	dim = wire_span(&f);
	while ((rc = wire_next(&dim, &d)) > 0)
		if (d.number == TB_DIM_SIZE && d.type == WIRE_VARINT)
			*size = d.value;
	return rc ? rc : 1;
}

static int count_elements(struct event_span shape, uint64_t *elements)
{
	uint64_t size;
	int rc;

	while ((rc = tensorproto_next_dim(&shape, &size)) > 0)
		if (__builtin_mul_overflow(*elements, size, elements))
			*elements = UINT64_MAX;
	return rc;
}

/* Reads the first number of a list, packed or not; type is the list's unpacked wire type. */
static void read_first_number(struct tensorproto *t, const struct wire_field *f, enum wire_type type)
{
	unsigned char padded[11] = { 0 };
	struct wire_field one = *f;

	if (t->has_number)
		return;
	if (f->type == WIRE_BYTES) {
		size_t n = (size_t)(f->bytes.end - f->bytes.at);
		struct event_span s;

		if (!n)
			return;
		padded[0] = (unsigned char)(1 << 3 | type);
		memcpy(padded + 1, f->bytes.at, n < 10 ? n : 10);
		s = (struct event_span){ padded, padded + 1 + (n < 10 ? n : 10) };
		if (wire_next(&s, &one) != 1)
			return;
	} else if (f->type != type) {
		return;
	}
	t->has_number = true;
	if (type == WIRE_FIXED32)
		t->number = wire_float(one.value);
	else if (type == WIRE_FIXED64)
		t->number = wire_double(one.value);
	else
		t->number = (double)(int64_t)one.value;
}

/* 0 or ERR_CORRUPT; texts and content point into s. */
static int tensorproto_parse(struct event_span s, struct tensorproto *ret)
{
	struct wire_field f;
	int rc, shape_rc = 0;

	*ret = (struct tensorproto){ .elements = 1 };
	while (!shape_rc && (rc = wire_next(&s, &f)) > 0) {
		switch (f.number) {
		case TB_TENSOR_DTYPE:
			ret->dtype = (unsigned)f.value;
			break;
		case TB_TENSOR_SHAPE:
			shape_rc = count_elements(wire_span(&f), &ret->elements);
			break;
		case TB_TENSOR_CONTENT:
			ret->content = wire_span(&f);
			break;
		case TB_TENSOR_FLOAT:
			read_first_number(ret, &f, WIRE_FIXED32);
			break;
		case TB_TENSOR_DOUBLE:
			read_first_number(ret, &f, WIRE_FIXED64);
			break;
		case TB_TENSOR_INT:
		case TB_TENSOR_INT64:
			read_first_number(ret, &f, WIRE_VARINT);
			break;
		case TB_TENSOR_STRING:
			if (!ret->has_text && f.type == WIRE_BYTES)
				ret->text = wire_text(&f);
			ret->has_text = true;
			break;
		}
	}
	return shape_rc ? shape_rc : rc;
}

/* Content is little-endian, as every writer stores it. */
static bool tensorproto_number(const struct tensorproto *t, double *ret)
{
	size_t n = (size_t)(t->content.end - t->content.at);
	uint64_t bits = 0;

	if (t->elements != 1 || t->dtype == TB_DT_STRING)
		return false;
	if (t->has_number) {
		*ret = t->number;
		return true;
	}
	for (size_t i = 0; i < n && i < 8; i++)
		bits |= (uint64_t)t->content.at[i] << 8 * i;
	if (t->dtype == TB_DT_FLOAT && n == 4)
		*ret = wire_float(bits);
	else if (t->dtype == TB_DT_DOUBLE && n == 8)
		*ret = wire_double(bits);
	else if (t->dtype == TB_DT_INT32 && n == 4)
		*ret = (double)(int32_t)bits;
	else if (t->dtype == TB_DT_INT64 && n == 8)
		*ret = (double)(int64_t)bits;
	else
		return false;
	return true;
}

/* ---- hparams ---- */

/* Reads one entry of the map; returns 1 if it is a param, 0 if its value has no plain type. */
static int parse_hparam(struct event_span s, struct event_item *ret)
{
	struct wire_field f, v;
	struct event_span value = { NULL, NULL };
	int rc, found = 0;

	ret->kind = EVENT_PARAM;
	ret->key = (struct event_text){ "", 0 };
	ret->segment = ret->changed = false;
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == TB_MAP_KEY && f.type == WIRE_BYTES)
			ret->key = wire_text(&f);
		else if (f.number == TB_MAP_VALUE)
			value = wire_span(&f);
	}
	while (!rc && (rc = wire_next(&value, &v)) > 0) {
		found = 1;
		if (v.number == TB_JSON_NUMBER && v.type == WIRE_FIXED64) {
			ret->type = EVENT_TYPE_F64;
			ret->value = wire_double(v.value);
		} else if (v.number == TB_JSON_STRING && v.type == WIRE_BYTES) {
			ret->type = EVENT_TYPE_TEXT;
			ret->text = wire_text(&v);
		} else if (v.number == TB_JSON_BOOL && v.type == WIRE_VARINT) {
			ret->type = EVENT_TYPE_BOOL;
			ret->integer = v.value != 0;
		} else {
			found = 0;
		}
		rc = 0;
	}
	return rc < 0 ? rc : found;
}

int hparams_next(struct event_span *params, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	while ((rc = wire_next(params, &f)) > 0) {
		if (f.number != TB_SESSION_START_HPARAMS || f.type != WIRE_BYTES)
			continue;
		rc = parse_hparam(f.bytes, ret);
		if (rc)
			return rc;
	}
	return rc;
}

static int parse_session_start(struct event_span s, struct event_span *params, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	*params = s;
	ret->kind = EVENT_HPARAMS_START;
	ret->value = 0;
	ret->text = (struct event_text){ "", 0 };
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == TB_SESSION_START_SECS && f.type == WIRE_FIXED64)
			ret->value = wire_double(f.value);
		else if (f.number == TB_SESSION_START_GROUP && f.type == WIRE_BYTES)
			ret->text = wire_text(&f);
	}
	return rc ? rc : 1;
}

static int parse_session_end(struct event_span s, struct event_item *ret)
{
	static const enum event_status known[] = { EVENT_FINISHED, EVENT_FINISHED, EVENT_FAILED, EVENT_RUNNING };
	struct wire_field f;
	int rc;

	ret->kind = EVENT_HPARAMS_END;
	ret->value = 0;
	ret->status = EVENT_FINISHED;
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == TB_SESSION_END_STATUS && f.type == WIRE_VARINT && f.value < 4)
			ret->status = known[f.value];
		else if (f.number == TB_SESSION_END_SECS && f.type == WIRE_FIXED64)
			ret->value = wire_double(f.value);
	}
	return rc ? rc : 1;
}

/* Reads what the hparams plugin stores in a summary value: the start of a session with its params, or its end. Returns
 * 1 or ERR_CORRUPT. 1: *ret is EVENT_HPARAMS_START, with *params for hparams_next to walk, or
 * EVENT_HPARAMS_END; any other content leaves it unchanged. */
static int hparams_item(struct event_span content, struct event_span *params, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	while ((rc = wire_next(&content, &f)) > 0) {
		if (f.number == TB_HPARAMS_SESSION_START)
			return parse_session_start(wire_span(&f), params, ret);
		if (f.number == TB_HPARAMS_SESSION_END)
			return parse_session_end(wire_span(&f), ret);
	}
	return rc ? rc : 1; /* an experiment's description */
}

/* ---- summary values ---- */

struct summary_value {
	struct event_text tag, plugin;
	struct event_span content, tensor;
	unsigned oneof_field; /* number of the set member of the oneof; 0: none */
	double simple;
	bool has_exact;
	double exact;
	int rank;
};

int summary_plugin(struct event_span metadata, struct event_text *ret_name, struct event_span *ret_content)
{
	struct wire_field f, p;
	int rc;

	while ((rc = wire_next(&metadata, &f)) > 0) {
		struct event_span plugin = wire_span(&f);

		if (f.number != TB_METADATA_PLUGIN)
			continue;
		while ((rc = wire_next(&plugin, &p)) > 0) {
			if (p.number == TB_PLUGIN_NAME && p.type == WIRE_BYTES)
				*ret_name = wire_text(&p);
			else if (p.number == TB_PLUGIN_CONTENT && ret_content)
				*ret_content = wire_span(&p);
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
		return summary_plugin(wire_span(f), &v->plugin, &v->content);
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
