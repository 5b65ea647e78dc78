/* media_make.c: builds contents, and records of them. Pictures and sounds use the messages that every reader of
 * TensorBoard's files knows; histograms, texts and tables use the tensors of their plugins. */
#include "tracker/event/fields.h"
#include "tracker/event/event_media.h"
#include "tracker/event/record.h"
#include "tracker/event/tensorboard.h"
#include "tracker/event/wire.h"

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
