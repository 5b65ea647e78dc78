/* event.c: walks an Event message. Three spans are nested (event, summary, hparams map); event_next empties the
 * innermost first. */
#include "tracker/event/event.h"

#include <math.h>

#include "tracker/base/err.h"
#include "tracker/event/fields.h"
#include "tracker/event/limits.h"
#include "tracker/event/tensorboard.h"
#include "tracker/event/wire.h"

#define ID_CHARS 32u

static const char *const status_names[] = { "running", "finished", "failed", "killed", "preempted", "scheduled" };

static struct event_span span_of(const struct wire_field *f)
{
	return f->type == WIRE_BYTES ? f->bytes : (struct event_span){ NULL, NULL };
}

int event_open(struct event *ret, const void *payload, size_t n)
{
	struct event_span s = { payload, (const unsigned char *)payload + n };
	struct wire_field f;
	unsigned others = 0, summaries = 0;
	int rc;

	ret->wall_time = 0;
	ret->step = 0;
	ret->ours = false;
	ret->top = s;
	ret->summary = ret->params = (struct event_span){ NULL, NULL };
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == TB_EVENT_WALL_TIME && f.type == WIRE_FIXED64) {
			ret->wall_time = wire_double(f.value);
		} else if (f.number == TB_EVENT_STEP && f.type == WIRE_VARINT) {
			ret->step = (int64_t)f.value;
		} else if (f.number == TB_EVENT_SUMMARY && f.type == WIRE_BYTES) {
			ret->summary = f.bytes;
			summaries++;
		} else {
			others++;
			ret->ours |= f.number >= FIELD_event_header && f.number <= FIELD_event_mirror;
		}
	}
	if (rc || isnan(ret->wall_time))
		return ERR_CORRUPT;
	if (summaries == 1 && !others) /* nearly every record: no need to walk the top again */
		ret->top = (struct event_span){ NULL, NULL };
	else
		ret->summary = (struct event_span){ NULL, NULL };
	return 0;
}

/* ---- tensors ---- */

struct tensor {
	unsigned dtype;
	uint64_t elements;
	struct event_span content;
	bool has_number;
	bool has_text;
	double number; /* first element of the typed lists */
	struct event_text text;
};

static int parse_shape(struct event_span s, uint64_t *elements)
{
	struct wire_field f, d;
	int rc;

	while ((rc = wire_next(&s, &f)) > 0) {
		struct event_span dim = span_of(&f);
		uint64_t size = 0;

		if (f.number != TB_SHAPE_DIM)
			continue;
		while ((rc = wire_next(&dim, &d)) > 0)
			if (d.number == TB_DIM_SIZE && d.type == WIRE_VARINT)
				size = d.value;
		if (rc)
			return rc;
		if (__builtin_mul_overflow(*elements, size, elements))
			*elements = UINT64_MAX;
	}
	return rc;
}

/* First number of a list that is packed or not; type is the list's unpacked wire type. */
static void first_number(struct tensor *t, const struct wire_field *f, enum wire_type type)
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

static int parse_tensor(struct event_span s, struct tensor *t)
{
	struct wire_field f;
	int rc, shape_rc = 0;

	*t = (struct tensor){ .elements = 1 };
	while (!shape_rc && (rc = wire_next(&s, &f)) > 0) {
		switch (f.number) {
		case TB_TENSOR_DTYPE:
			t->dtype = (unsigned)f.value;
			break;
		case TB_TENSOR_SHAPE:
			shape_rc = parse_shape(span_of(&f), &t->elements);
			break;
		case TB_TENSOR_CONTENT:
			t->content = span_of(&f);
			break;
		case TB_TENSOR_FLOAT:
			first_number(t, &f, WIRE_FIXED32);
			break;
		case TB_TENSOR_DOUBLE:
			first_number(t, &f, WIRE_FIXED64);
			break;
		case TB_TENSOR_INT:
		case TB_TENSOR_INT64:
			first_number(t, &f, WIRE_VARINT);
			break;
		case TB_TENSOR_STRING:
			if (!t->has_text && f.type == WIRE_BYTES)
				t->text = wire_text(&f);
			t->has_text = true;
			break;
		}
	}
	return shape_rc ? shape_rc : rc;
}

/* A tensor of one number; little-endian content as every writer stores it. */
static bool tensor_number(const struct tensor *t, double *ret)
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

/* One entry of the map; 1 when it is a param, 0 when its value has no plain type. */
static int parse_hparam(struct event_span s, struct event_item *ret)
{
	struct wire_field f, v;
	struct event_span value = { NULL, NULL };
	int rc, found = 0;

	ret->kind = EVENT_PARAM;
	ret->key = (struct event_text){ "", 0 };
	ret->segment = false;
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == TB_MAP_KEY && f.type == WIRE_BYTES)
			ret->key = wire_text(&f);
		else if (f.number == TB_MAP_VALUE)
			value = span_of(&f);
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

static int next_hparam(struct event *ev, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	while ((rc = wire_next(&ev->params, &f)) > 0) {
		if (f.number != TB_SESSION_START_HPARAMS || f.type != WIRE_BYTES)
			continue;
		rc = parse_hparam(f.bytes, ret);
		if (rc)
			return rc;
	}
	return rc;
}

static int parse_session_start(struct event *ev, struct event_span s, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	ev->params = s;
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

/* ---- summary values ---- */

struct summary_value {
	struct event_text tag, plugin;
	struct event_span content, tensor;
	unsigned what; /* number of the member of the oneof that is set; 0: none */
	double simple;
	bool has_exact;
	double exact;
	int rank;
};

static int parse_metadata(struct event_span s, struct summary_value *v)
{
	struct wire_field f, p;
	int rc;

	while ((rc = wire_next(&s, &f)) > 0) {
		struct event_span plugin = span_of(&f);

		if (f.number != TB_METADATA_PLUGIN)
			continue;
		while ((rc = wire_next(&plugin, &p)) > 0) {
			if (p.number == TB_PLUGIN_NAME && p.type == WIRE_BYTES)
				v->plugin = wire_text(&p);
			else if (p.number == TB_PLUGIN_CONTENT)
				v->content = span_of(&p);
		}
		if (rc)
			return rc;
	}
	return rc;
}

static int parse_rank(const struct wire_field *f, int *ret)
{
	int64_t rank = wire_zigzag(f->value);

	if (f->type != WIRE_VARINT || rank < EVENT_RANK_LAUNCHER || rank > LIMIT_rank)
		return ERR_CORRUPT;
	*ret = (int)rank;
	return 0;
}

static int parse_value_field(const struct wire_field *f, struct summary_value *v)
{
	switch (f->number) {
	case TB_VALUE_TAG:
		if (f->type == WIRE_BYTES)
			v->tag = wire_text(f);
		return 0;
	case TB_VALUE_SIMPLE:
		v->what = TB_VALUE_SIMPLE;
		v->simple = wire_widen(f->value);
		return f->type == WIRE_FIXED32 ? 0 : ERR_CORRUPT;
	case TB_VALUE_TENSOR:
		v->tensor = span_of(f);
		v->what = TB_VALUE_TENSOR;
		return 0;
	case TB_VALUE_IMAGE:
	case TB_VALUE_HISTO:
	case TB_VALUE_AUDIO:
		v->what = f->number;
		return 0;
	case TB_VALUE_METADATA:
		return parse_metadata(span_of(f), v);
	case FIELD_value_f64:
		v->has_exact = f->type == WIRE_FIXED64;
		v->exact = wire_double(f->value);
		return 0;
	case FIELD_value_rank:
		return parse_rank(f, &v->rank);
	default:
		return 0;
	}
}

static int item_of_hparams(struct event *ev, const struct summary_value *v, struct event_item *ret)
{
	struct event_span s = v->content;
	struct wire_field f;
	int rc;

	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == TB_HPARAMS_SESSION_START)
			return parse_session_start(ev, span_of(&f), ret);
		if (f.number == TB_HPARAMS_SESSION_END)
			return parse_session_end(span_of(&f), ret);
	}
	return rc ? rc : 1; /* an experiment's description stays EVENT_OTHER */
}

/* A tensor is a scalar or a text when its plugin says so, or when nothing is said and its type does. */
static int item_of_tensor(const struct summary_value *v, struct event_item *ret)
{
	struct tensor t;

	if (v->plugin.len && !event_text_equal(v->plugin, "scalars") && !event_text_equal(v->plugin, "text"))
		return 1;
	if (parse_tensor(v->tensor, &t))
		return ERR_CORRUPT;
	if (!event_text_equal(v->plugin, "text") && tensor_number(&t, &ret->value))
		ret->kind = EVENT_SCALAR;
	else if (!event_text_equal(v->plugin, "scalars") && t.dtype == TB_DT_STRING && t.has_text) {
		ret->kind = EVENT_TEXT;
		ret->text = t.text;
	}
	return 1;
}

/* Values of old have a field of their own instead of a plugin that says what they are. */
static struct event_text plugin_of(unsigned field)
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

static int parse_value(struct event *ev, struct event_span s, struct event_item *ret)
{
	struct summary_value v = { .tag = { "", 0 }, .plugin = { "", 0 }, .rank = EVENT_RANK_DEFAULT };
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
	ret->text = v.plugin.len ? v.plugin : plugin_of(v.what);
	ret->rank = v.rank;
	if (v.what == TB_VALUE_SIMPLE) {
		ret->kind = EVENT_SCALAR;
		ret->value = v.has_exact ? v.exact : v.simple;
		return 1;
	}
	if (event_text_equal(v.plugin, "hparams"))
		return item_of_hparams(ev, &v, ret);
	return v.what == TB_VALUE_TENSOR ? item_of_tensor(&v, ret) : 1;
}

static int next_value(struct event *ev, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	while ((rc = wire_next(&ev->summary, &f)) > 0)
		if (f.number == TB_SUMMARY_VALUE && f.type == WIRE_BYTES)
			return parse_value(ev, f.bytes, ret);
	return rc;
}

/* ---- records of our own ---- */

static bool is_id(struct event_text t)
{
	if (t.len != ID_CHARS)
		return false;
	for (size_t i = 0; i < ID_CHARS; i++)
		if (!((t.at[i] >= '0' && t.at[i] <= '9') || (t.at[i] >= 'a' && t.at[i] <= 'f')))
			return false;
	return true;
}

static int parse_header_number(const struct wire_field *f, struct event_header *h)
{
	uint64_t max = f->number == FIELD_header_segment ? LIMIT_segment : (uint64_t)LIMIT_rank + 1;

	switch (f->number) {
	case FIELD_header_format:
		h->format = f->value > UINT_MAX ? UINT_MAX : (unsigned)f->value;
		return 0;
	case FIELD_header_rank:
		return parse_rank(f, &h->rank);
	case FIELD_header_world_size:
	case FIELD_header_segment:
		if (f->value > max)
			return ERR_CORRUPT;
		*(f->number == FIELD_header_segment ? &h->segment : &h->world_size) = (int)f->value;
		return 0;
	case FIELD_header_first_step:
		h->first_step = wire_zigzag(f->value);
		return 0;
	case FIELD_header_first_epoch:
		h->first_epoch = wire_zigzag(f->value);
		return 0;
	case FIELD_header_pid:
		h->pid = (int64_t)f->value;
		return 0;
	case FIELD_header_ordered:
		h->ordered = f->value == 1;
		return 0;
	default:
		return 0;
	}
}

static struct event_text *header_text(struct event_header *h, unsigned number)
{
	switch (number) {
	case FIELD_header_run_id:
		return &h->run_id;
	case FIELD_header_writer_id:
		return &h->writer_id;
	case FIELD_header_experiment:
		return &h->experiment;
	case FIELD_header_run_name:
		return &h->run_name;
	case FIELD_header_host:
		return &h->host;
	case FIELD_header_version:
		return &h->version;
	default:
		return NULL;
	}
}

static int parse_header(struct event *ev, struct event_span s, struct event_item *ret)
{
	const struct event_text none = { "", 0 };
	struct event_header *h = &ev->header;
	struct event_text *text;
	struct wire_field f;
	int rc;

	*h = (struct event_header){ .run_id = none, .writer_id = none, .experiment = none, .run_name = none,
				    .host = none, .version = none };
	while ((rc = wire_next(&s, &f)) > 0) {
		text = header_text(h, f.number);
		if (text && f.type == WIRE_BYTES)
			*text = wire_text(&f);
		else if (!text && f.type == WIRE_VARINT && parse_header_number(&f, h))
			return ERR_CORRUPT;
	}
	if (rc || !is_id(h->run_id) || !is_id(h->writer_id))
		return ERR_CORRUPT;
	ret->kind = EVENT_HEADER;
	ret->header = h;
	return 1;
}

static int parse_param(struct event_span s, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	ret->kind = EVENT_PARAM;
	ret->key = ret->text = (struct event_text){ "", 0 };
	ret->type = EVENT_TYPE_TEXT;
	ret->segment = false;
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == FIELD_param_key && f.type == WIRE_BYTES) {
			ret->key = wire_text(&f);
		} else if (f.number == FIELD_param_text && f.type == WIRE_BYTES) {
			ret->type = EVENT_TYPE_TEXT;
			ret->text = wire_text(&f);
		} else if (f.number == FIELD_param_f64 && f.type == WIRE_FIXED64) {
			ret->type = EVENT_TYPE_F64;
			ret->value = wire_double(f.value);
		} else if (f.number == FIELD_param_i64 && f.type == WIRE_VARINT) {
			ret->type = EVENT_TYPE_I64;
			ret->integer = wire_zigzag(f.value);
		} else if (f.number == FIELD_param_bool && f.type == WIRE_VARINT) {
			ret->type = EVENT_TYPE_BOOL;
			ret->integer = f.value != 0;
		} else if (f.number == FIELD_param_segment && f.type == WIRE_VARINT) {
			ret->segment = f.value != 0;
		}
	}
	return rc ? rc : 1;
}

static int parse_pair(struct event_span s, enum event_kind kind, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	ret->kind = kind;
	ret->key = ret->text = (struct event_text){ "", 0 };
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == FIELD_pair_key && f.type == WIRE_BYTES)
			ret->key = wire_text(&f);
		else if (f.number == FIELD_pair_value && f.type == WIRE_BYTES)
			ret->text = wire_text(&f);
	}
	return rc ? rc : 1;
}

static int parse_status(struct event_span s, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	ret->kind = EVENT_STATUS;
	ret->status = EVENT_RUNNING;
	ret->text = (struct event_text){ "", 0 };
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == FIELD_status_code && f.type == WIRE_VARINT) {
			if (f.value > EVENT_SCHEDULED)
				return ERR_CORRUPT;
			ret->status = (enum event_status)f.value;
		} else if (f.number == FIELD_status_reason && f.type == WIRE_BYTES) {
			ret->text = wire_text(&f);
		}
	}
	return rc ? rc : 1;
}

/* ---- the event ---- */

static int item_of_session_log(struct event_span s, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	ret->kind = EVENT_SESSION;
	ret->integer = 0;
	while ((rc = wire_next(&s, &f)) > 0)
		if (f.number == TB_SESSION_LOG_STATUS && f.type == WIRE_VARINT)
			ret->integer = (int64_t)f.value;
	return rc ? rc : 1;
}

/* A field of the standard message: 1 an item, 0 nothing to report by itself. */
static int item_of_standard(struct event *ev, const struct wire_field *f, struct event_item *ret)
{
	switch (f->number) {
	case TB_EVENT_FILE_VERSION:
		ret->kind = EVENT_FILE_VERSION;
		ret->text = f->type == WIRE_BYTES ? wire_text(f) : (struct event_text){ "", 0 };
		return 1;
	case TB_EVENT_GRAPH_DEF:
		ret->kind = EVENT_OTHER;
		ret->key = (struct event_text){ "", 0 };
		ret->text = (struct event_text){ "graph", 5 };
		return 1;
	case TB_EVENT_SUMMARY:
		ev->summary = span_of(f);
		return 0;
	case TB_EVENT_SESSION_LOG:
		return item_of_session_log(span_of(f), ret);
	default:
		return 0;
	}
}

static int item_of_extension(struct event *ev, const struct wire_field *f, struct event_item *ret)
{
	switch (f->number) {
	case FIELD_event_header:
		return parse_header(ev, span_of(f), ret);
	case FIELD_event_param:
		return parse_param(span_of(f), ret);
	case FIELD_event_tag:
		return parse_pair(span_of(f), EVENT_TAG, ret);
	case FIELD_event_env:
		return parse_pair(span_of(f), EVENT_ENV, ret);
	case FIELD_event_note:
		ret->kind = EVENT_NOTE;
		ret->text = f->type == WIRE_BYTES ? wire_text(f) : (struct event_text){ "", 0 };
		return 1;
	case FIELD_event_status:
		return parse_status(span_of(f), ret);
	case FIELD_event_heartbeat:
		ret->kind = EVENT_HEARTBEAT;
		ret->integer = (int64_t)f->value;
		return 1;
	default:
		return 0;
	}
}

int event_next(struct event *ev, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	for (;;) {
		rc = next_hparam(ev, ret);
		if (!rc)
			rc = next_value(ev, ret);
		if (rc)
			return rc;
		rc = wire_next(&ev->top, &f);
		if (rc <= 0)
			return rc;
		rc = ev->ours ? item_of_extension(ev, &f, ret) : item_of_standard(ev, &f, ret);
		if (rc)
			return rc;
	}
}

int event_scalar_rank(const struct event_item *scalar, const struct event_header *header)
{
	if (scalar->rank != EVENT_RANK_DEFAULT)
		return scalar->rank;
	return header && header->rank > 0 ? header->rank : EVENT_RANK_RUN;
}

const char *event_status_name(enum event_status s)
{
	return (unsigned)s < sizeof(status_names) / sizeof(status_names[0]) ? status_names[s] : NULL;
}

bool event_text_equal(struct event_text t, const char *s)
{
	return strlen(s) == t.len && !memcmp(t.at, s, t.len);
}
