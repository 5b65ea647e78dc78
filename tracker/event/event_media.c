/* SPDX-License-Identifier: Apache-2.0 */
/* event_media.c: reads and writes media contents. Plugins store in tensors what older writers store in specific
 * messages; both are read. Pictures and sounds are written in the messages that every reader knows, the rest in
 * tensors. */
#include "tracker/event/event_media.h"

#include <ctype.h>
#include <strings.h>

#include "tracker/event/extension.h"
#include "tracker/event/record.h"
#include "tracker/event/tensorboard.h"

#define BIN_BYTES 24u

static const char *const kind_names[MEDIA_KINDS] = { NULL, "image", "histogram", "text", "table", "audio" };

const char *media_kind_name(enum media_kind kind)
{
	return (unsigned)kind < MEDIA_KINDS ? kind_names[kind] : NULL;
}

static size_t count_span_bytes(struct event_span s)
{
	return (size_t)(s.end - s.at);
}

struct media_tensor {
	unsigned dtype, dims;
	uint64_t dim[2];
	struct event_span content, doubles, all;
};

static int read_tensor_shape(struct event_span s, struct media_tensor *t)
{
	uint64_t size;
	int rc;

	for (; (rc = tensorproto_next_dim(&s, &size)) > 0; t->dims++)
		if (t->dims < 2)
			t->dim[t->dims] = size;
	return rc;
}

static int read_media_tensor(struct event_span s, struct media_tensor *t)
{
	struct wire_field f;
	int rc;

	*t = (struct media_tensor){ .all = s };
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == TB_TENSOR_DTYPE && f.type == WIRE_VARINT)
			t->dtype = (unsigned)f.value;
		else if (f.number == TB_TENSOR_SHAPE)
			rc = read_tensor_shape(wire_span(&f), t);
		else if (f.number == TB_TENSOR_CONTENT)
			t->content = wire_span(&f);
		else if (f.number == TB_TENSOR_DOUBLE)
			t->doubles = wire_span(&f);
		if (rc < 0)
			return rc;
	}
	return rc;
}

bool media_string(struct event_span *strings, struct event_text *ret)
{
	struct wire_field f;

	while (wire_next(strings, &f) > 0)
		if (f.number == TB_TENSOR_STRING && f.type == WIRE_BYTES) {
			*ret = wire_text(&f);
			return true;
		}
	return false;
}

static uint64_t parse_digits(struct event_text t)
{
	uint64_t n = 0;

	for (size_t i = 0; i < t.len && i < 9 && t.at[i] >= '0' && t.at[i] <= '9'; i++)
		n = n * 10 + (uint64_t)(t.at[i] - '0');
	return n;
}

/* Width and height as digits, then files, of which only the first is used. */
static int read_image_tensor(const struct media_tensor *t, struct media *m)
{
	struct event_span rest = t->all;
	struct event_text width, height, file;

	if (!media_string(&rest, &width) || !media_string(&rest, &height) || !media_string(&rest, &file))
		return ERR_CORRUPT;
	m->width = parse_digits(width);
	m->height = parse_digits(height);
	m->bytes = (struct event_span){ (const unsigned char *)file.at, (const unsigned char *)file.at + file.len };
	return 0;
}

static int read_audio_tensor(const struct media_tensor *t, struct media *m)
{
	struct event_span rest = t->all;
	struct event_text file;

	if (!media_string(&rest, &file))
		return ERR_CORRUPT;
	m->bytes = (struct event_span){ (const unsigned char *)file.at, (const unsigned char *)file.at + file.len };
	return 0;
}

static int read_histogram_tensor(const struct media_tensor *t, struct media *m)
{
	m->bins = count_span_bytes(t->content) ? t->content : t->doubles;
	return t->dtype == TB_DT_DOUBLE && count_span_bytes(m->bins) % BIN_BYTES == 0 ? 0 : ERR_CORRUPT;
}

static int read_image_message(struct event_span s, struct media *m)
{
	struct wire_field f;
	int rc;

	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == TB_IMAGE_WIDTH && f.type == WIRE_VARINT)
			m->width = f.value;
		else if (f.number == TB_IMAGE_HEIGHT && f.type == WIRE_VARINT)
			m->height = f.value;
		else if (f.number == TB_IMAGE_BYTES)
			m->bytes = wire_span(&f);
	}
	return rc;
}

static int read_audio_message(struct event_span s, struct media *m)
{
	struct wire_field f;
	int rc;

	while ((rc = wire_next(&s, &f)) > 0)
		if (f.number == TB_AUDIO_BYTES)
			m->bytes = wire_span(&f);
	return rc;
}

static int read_histogram_message(struct event_span s, struct media *m)
{
	struct wire_field f;
	int rc;

	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == TB_HISTO_MIN && f.type == WIRE_FIXED64)
			m->min = wire_double(f.value);
		else if (f.number == TB_HISTO_MAX && f.type == WIRE_FIXED64)
			m->max = wire_double(f.value);
		else if (f.number == TB_HISTO_LIMITS)
			m->limits = wire_span(&f);
		else if (f.number == TB_HISTO_COUNTS)
			m->counts = wire_span(&f);
	}
	if (rc || count_span_bytes(m->limits) % 8 || count_span_bytes(m->limits) != count_span_bytes(m->counts))
		return ERR_CORRUPT;
	return 0;
}

/* Interprets a tensor by its plugin, or by its type if no plugin is named. */
static int read_tensor_by_plugin(struct event_text plugin, const struct media_tensor *t, struct media *m)
{
	if (event_text_equal(plugin, "images")) {
		m->kind = MEDIA_IMAGE;
		return read_image_tensor(t, m);
	}
	if (event_text_equal(plugin, "audio")) {
		m->kind = MEDIA_AUDIO;
		return read_audio_tensor(t, m);
	}
	if (event_text_equal(plugin, "histograms")) {
		m->kind = MEDIA_HISTOGRAM;
		return read_histogram_tensor(t, m);
	}
	if (t->dtype != TB_DT_STRING || (plugin.len && !event_text_equal(plugin, "text")))
		return 0;
	m->kind = t->dims == 2 ? MEDIA_TABLE : MEDIA_TEXT;
	m->strings = t->all;
	m->height = t->dim[0];
	m->width = t->dim[1];
	return 0;
}

int media_read(struct event_span content, struct media *ret)
{
	struct event_text plugin = { "", 0 };
	struct media m = { .kind = MEDIA_NONE };
	struct media_tensor t = { 0 };
	struct wire_field f;
	int rc, tensor = 0;

	while ((rc = wire_next(&content, &f)) > 0) {
		if (f.number == TB_VALUE_METADATA)
			rc = summary_plugin(wire_span(&f), &plugin, NULL);
		else if (f.number == TB_VALUE_TENSOR)
			rc = read_media_tensor(wire_span(&f), &t), tensor = 1;
		else if (f.number == TB_VALUE_IMAGE)
			rc = read_image_message(wire_span(&f), &m), m.kind = MEDIA_IMAGE;
		else if (f.number == TB_VALUE_AUDIO)
			rc = read_audio_message(wire_span(&f), &m), m.kind = MEDIA_AUDIO;
		else if (f.number == TB_VALUE_HISTO)
			rc = read_histogram_message(wire_span(&f), &m), m.kind = MEDIA_HISTOGRAM;
		if (rc < 0)
			return rc;
	}
	if (!rc && tensor && !m.kind)
		rc = read_tensor_by_plugin(plugin, &t, &m);
	if (!rc)
		*ret = m;
	return rc;
}

static double read_double_at(struct event_span s, size_t i)
{
	uint64_t bits;

	memcpy(&bits, s.at + 8 * i, sizeof(bits));
	return wire_double(le64toh(bits));
}

size_t media_bins(const struct media *m)
{
	return count_span_bytes(m->bins) ? count_span_bytes(m->bins) / BIN_BYTES : count_span_bytes(m->limits) / 8;
}

struct media_bin media_bin(const struct media *m, size_t i)
{
	size_t n = media_bins(m);

	if (count_span_bytes(m->bins))
		return (struct media_bin){ read_double_at(m->bins, 3 * i), read_double_at(m->bins, 3 * i + 1),
					   read_double_at(m->bins, 3 * i + 2) };
	return (struct media_bin){ i ? read_double_at(m->limits, i - 1) : m->min,
				   i + 1 < n ? read_double_at(m->limits, i) : m->max, read_double_at(m->counts, i) };
}

enum media_kind media_content(struct event_span value, struct buf *to)
{
	const unsigned char *begin = value.at;
	struct event_span all = value;
	struct wire_field f;
	struct media m;

	if (media_read(value, &m) || !m.kind)
		return MEDIA_NONE;
	while (to && wire_next(&all, &f) > 0) {
		if (f.number != TB_VALUE_TAG && f.number != FIELD_value_rank)
			buf_add(to, begin, (size_t)(all.at - begin));
		begin = all.at;
	}
	return m.kind;
}

static bool has_magic(struct event_span s, const char *magic, size_t n)
{
	return (size_t)(s.end - s.at) >= n && !memcmp(s.at, magic, n);
}

/* Returns true if a text is an HTML document. */
static bool is_html_text(struct media m)
{
	struct event_text text;

	if (!media_string(&m.strings, &text))
		return false;
	for (; text.len && isspace((unsigned char)*text.at); text.at++)
		text.len--;
	return (text.len >= 9 && !strncasecmp(text.at, "<!doctype", 9)) ||
	       (text.len >= 5 && !strncasecmp(text.at, "<html", 5));
}

const char *media_type(const struct media *m)
{
	struct event_span file = m->bytes;

	if (m->kind == MEDIA_HISTOGRAM || m->kind == MEDIA_TABLE)
		return "application/json";
	if (m->kind == MEDIA_TEXT)
		return is_html_text(*m) ? "text/html; charset=utf-8" : "text/plain; charset=utf-8";
	if (has_magic(file, "\x89PNG", 4))
		return "image/png";
	if (has_magic(file, "\xff\xd8\xff", 3))
		return "image/jpeg";
	if (has_magic(file, "GIF8", 4))
		return "image/gif";
	if (has_magic(file, "RIFF", 4) && (size_t)(file.end - file.at) >= 12)
		return memcmp(file.at + 8, "WEBP", 4) ? "audio/wav" : "image/webp";
	if ((size_t)(file.end - file.at) >= 12 && !memcmp(file.at + 4, "ftyp", 4))
		return "video/mp4";
	if (has_magic(file, "\x1a\x45\xdf\xa3", 4))
		return "video/webm";
	if (has_magic(file, "OggS", 4))
		return "audio/ogg";
	if (has_magic(file, "fLaC", 4))
		return "audio/flac";
	return has_magic(file, "ID3", 3) || has_magic(file, "\xff\xfb", 2) ? "audio/mpeg" : "application/octet-stream";
}

/* ---- writing ---- */

#define COLORSPACE_RGB 3

static void add_media_plugin(struct buf *to, const char *name)
{
	size_t metadata = wire_begin(to, TB_VALUE_METADATA), plugin = wire_begin(to, TB_METADATA_PLUGIN);

	wire_add_string(to, TB_PLUGIN_NAME, name);
	wire_end(to, plugin);
	wire_end(to, metadata);
}

static void add_tensor_shape(struct buf *to, const uint64_t *dims, unsigned n)
{
	size_t shape = wire_begin(to, TB_TENSOR_SHAPE);

	for (unsigned i = 0; i < n; i++) {
		size_t dim = wire_begin(to, TB_SHAPE_DIM);

		wire_add_varint(to, TB_DIM_SIZE, dims[i]);
		wire_end(to, dim);
	}
	wire_end(to, shape);
}

static struct event_text text_from_span(struct event_span s)
{
	return (struct event_text){ (const char *)s.at, (size_t)(s.end - s.at) };
}

void media_add_image(struct buf *to, struct event_span file, unsigned width, unsigned height)
{
	size_t image = wire_begin(to, TB_VALUE_IMAGE);

	wire_add_varint(to, TB_IMAGE_HEIGHT, height);
	wire_add_varint(to, TB_IMAGE_WIDTH, width);
	wire_add_varint(to, TB_IMAGE_COLORSPACE, COLORSPACE_RGB);
	wire_add_text(to, TB_IMAGE_BYTES, text_from_span(file));
	wire_end(to, image);
}

void media_add_audio(struct buf *to, struct event_span file, struct event_text type)
{
	size_t audio = wire_begin(to, TB_VALUE_AUDIO);

	wire_add_text(to, TB_AUDIO_BYTES, text_from_span(file));
	wire_add_text(to, TB_AUDIO_TYPE, type);
	wire_end(to, audio);
}

void media_add_histogram(struct buf *to, const double *edges, const double *counts, size_t bins)
{
	size_t tensor = wire_begin(to, TB_VALUE_TENSOR), content;

	wire_add_varint(to, TB_TENSOR_DTYPE, TB_DT_DOUBLE);
	add_tensor_shape(to, (uint64_t[2]){ bins, 3 }, 2);
	content = wire_begin(to, TB_TENSOR_CONTENT);
	for (size_t i = 0; i < bins; i++) {
		const double row[3] = { edges[i], edges[i + 1], counts[i] };

		for (int k = 0; k < 3; k++) {
			uint64_t bits;

			memcpy(&bits, &row[k], sizeof(bits));
			buf_add_u64le(to, bits);
		}
	}
	wire_end(to, content);
	wire_end(to, tensor);
	add_media_plugin(to, "histograms");
}

static void add_string_tensor(struct buf *to, const struct event_text *texts, const uint64_t *dims, unsigned rank)
{
	size_t tensor = wire_begin(to, TB_VALUE_TENSOR);
	uint64_t n = rank == 2 ? dims[0] * dims[1] : dims[0];

	wire_add_varint(to, TB_TENSOR_DTYPE, TB_DT_STRING);
	add_tensor_shape(to, dims, rank);
	for (uint64_t i = 0; i < n; i++)
		wire_add_text(to, TB_TENSOR_STRING, texts[i]);
	wire_end(to, tensor);
	add_media_plugin(to, "text");
}

void media_add_text(struct buf *to, struct event_text text)
{
	add_string_tensor(to, &text, (uint64_t[1]){ 1 }, 1);
}

void media_add_table(struct buf *to, const struct event_text *cells, size_t rows, size_t columns)
{
	add_string_tensor(to, cells, (uint64_t[2]){ rows, columns }, 2);
}

void media_encode(struct buf *b, const struct media_place *place, struct event_span content)
{
	size_t rec = record_begin(b), summary, value;

	wire_add_double(b, TB_EVENT_WALL_TIME, place->wall_time);
	if (place->step)
		wire_add_varint(b, TB_EVENT_STEP, (uint64_t)place->step);
	summary = wire_begin(b, TB_EVENT_SUMMARY);
	value = wire_begin(b, TB_SUMMARY_VALUE);
	wire_add_text(b, TB_VALUE_TAG, place->key);
	buf_add(b, content.at, (size_t)(content.end - content.at));
	if (place->rank != (place->journal_rank == 0 ? EVENT_RANK_RUN : place->journal_rank))
		wire_add_sint(b, FIELD_value_rank, place->rank);
	wire_end(b, value);
	wire_end(b, summary);
	record_end(b, rec);
}
