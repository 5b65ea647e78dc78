/* SPDX-License-Identifier: Apache-2.0 */
/* webp.c: WebP through libwebp; of an animation the first frame. */
#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

#include "trainer/data/pictures/codec.h"

struct webp {
	struct codec_whole whole;
	int width, height;
	bool animated;
};

static void webp_close(void *state)
{
	free(((struct webp *)state)->whole.pixels);
}

static bool webp_is(const struct picture_input *in)
{
	return in->n > 16 && !memcmp(in->data, "RIFF", 4) && !memcmp(in->data + 8, "WEBP", 4);
}

static int webp_orientation(const WebPData *data)
{
	WebPDemuxer *demuxer = WebPDemux(data);
	WebPChunkIterator chunk;
	int orientation = 1;

	if (!demuxer)
		return 1;
	if (WebPDemuxGetChunk(demuxer, "EXIF", 1, &chunk)) {
		orientation = codec_exif_orientation(chunk.chunk.bytes, chunk.chunk.size);
		WebPDemuxReleaseChunkIterator(&chunk);
	}
	WebPDemuxDelete(demuxer);
	return orientation;
}

static int webp_header(void *state, const struct picture_input *in, struct codec_header *ret, struct err *err)
{
	const WebPData data = { in->data, in->n };
	struct webp *s = state;
	WebPBitstreamFeatures f;

	if (WebPGetFeatures(in->data, in->n, &f) != VP8_STATUS_OK)
		return err_set(err, ERR_CORRUPT, "%.300s: damaged WebP", in->name);
	s->width = f.width;
	s->height = f.height;
	s->animated = f.has_animation;
	*ret = (struct codec_header){ .width = f.width, .height = f.height, .orientation = webp_orientation(&data) };
	return 0;
}

static bool decode_first_frame(struct webp *s, const struct picture_input *in)
{
	const WebPData data = { in->data, in->n };
	WebPAnimDecoder *d = WebPAnimDecoderNew(&data, NULL);
	uint8_t *frame;
	int time;
	bool good = d && WebPAnimDecoderGetNext(d, &frame, &time);

	if (good)
		memcpy(s->whole.pixels, frame, (size_t)s->width * (size_t)s->height * 4);
	WebPAnimDecoderDelete(d);
	return good;
}

static int webp_rows(void *state, const struct picture_input *in, const struct codec_want *w, struct err *err)
{
	struct webp *s = state;
	const size_t bytes = (size_t)s->width * (size_t)s->height * 4;

	codec_whole_begin(&s->whole, s->width, s->height);
	if (s->animated ? !decode_first_frame(s, in)
			: !WebPDecodeRGBAInto(in->data, in->n, s->whole.pixels, bytes, s->width * 4))
		return err_set(err, ERR_CORRUPT, "%.300s: damaged WebP", in->name);
	codec_whole_rows(&s->whole, w);
	return 0;
}

const struct codec codec_webp = {
	.name = "WebP",
	.is = webp_is,
	.state_bytes = sizeof(struct webp),
	.close = webp_close,
	.header = webp_header,
	.rows = webp_rows,
};
