/* SPDX-License-Identifier: Apache-2.0 */
/* tensorboard.h: the standard messages of an Event: their field numbers (event.proto, summary.proto, tensor.proto and
 * the hparams plugin's plugin_data.proto) and readers of summaries, tensors and hparams. */
#ifndef DPT_EVENT_TENSORBOARD_H
#define DPT_EVENT_TENSORBOARD_H

#include "tracker/event/event.h"

enum {
	TB_EVENT_WALL_TIME = 1,
	TB_EVENT_STEP = 2,
	TB_EVENT_FILE_VERSION = 3,
	TB_EVENT_GRAPH_DEF = 4,
	TB_EVENT_SUMMARY = 5,
	TB_EVENT_SESSION_LOG = 7,
	TB_SESSION_LOG_STATUS = 1,
	TB_SESSION_LOG_START = 1,
	TB_SUMMARY_VALUE = 1,
	TB_VALUE_TAG = 1,
	TB_VALUE_SIMPLE = 2,
	TB_VALUE_IMAGE = 4,
	TB_VALUE_HISTO = 5,
	TB_VALUE_AUDIO = 6,
	TB_VALUE_TENSOR = 8,
	TB_VALUE_METADATA = 9,
	TB_IMAGE_HEIGHT = 1,
	TB_IMAGE_WIDTH = 2,
	TB_IMAGE_COLORSPACE = 3,
	TB_IMAGE_BYTES = 4,
	TB_HISTO_MIN = 1,
	TB_HISTO_MAX = 2,
	TB_HISTO_LIMITS = 6,
	TB_HISTO_COUNTS = 7,
	TB_AUDIO_RATE = 1,
	TB_AUDIO_CHANNELS = 2,
	TB_AUDIO_FRAMES = 3,
	TB_AUDIO_BYTES = 4,
	TB_AUDIO_TYPE = 5,
	TB_METADATA_PLUGIN = 1,
	TB_PLUGIN_NAME = 1,
	TB_PLUGIN_CONTENT = 2,
	TB_TENSOR_DTYPE = 1,
	TB_TENSOR_SHAPE = 2,
	TB_TENSOR_CONTENT = 4,
	TB_TENSOR_FLOAT = 5,
	TB_TENSOR_DOUBLE = 6,
	TB_TENSOR_INT = 7,
	TB_TENSOR_STRING = 8,
	TB_TENSOR_INT64 = 10,
	TB_SHAPE_DIM = 2,
	TB_DIM_SIZE = 1,
	TB_DT_FLOAT = 1,
	TB_DT_DOUBLE = 2,
	TB_DT_INT32 = 3,
	TB_DT_STRING = 7,
	TB_DT_INT64 = 9,
	TB_HPARAMS_SESSION_START = 3,
	TB_HPARAMS_SESSION_END = 4,
	TB_SESSION_START_HPARAMS = 1,
	TB_SESSION_START_GROUP = 4,
	TB_SESSION_START_SECS = 5,
	TB_SESSION_END_STATUS = 1,
	TB_SESSION_END_SECS = 2,
	TB_MAP_KEY = 1,
	TB_MAP_VALUE = 2,
	TB_JSON_NUMBER = 2,
	TB_JSON_STRING = 3,
	TB_JSON_BOOL = 4,
};

/* The one number or text in a TensorProto (tensor.proto); only the size of larger tensors. */
struct tensorproto {
	unsigned dtype;	   /* TB_DT_… */
	uint64_t elements; /* UINT64_MAX: overflow */
	struct event_span content;
	bool has_number;
	bool has_text;
	double number; /* first element of the typed lists */
	struct event_text text;
};

/* The next dimension of a TensorShapeProto (tensor_shape.proto): 1 and its size, 0 at the end, or ERR_CORRUPT. */
int tensorproto_next_dim(struct event_span *shape, uint64_t *size);

/* Reads the next EVENT_PARAM of params: 1, 0 at the end, or ERR_CORRUPT. */
int hparams_next(struct event_span *params, struct event_item *ret);

/* Reads the plugin that a SummaryMetadata (summary.proto) names, and its content unless ret_content is NULL. What is
 * missing leaves its output unchanged. 0 or ERR_CORRUPT. */
int summary_plugin(struct event_span metadata, struct event_text *ret_name, struct event_span *ret_content);

/* Reads the next value of a Summary as an item: scalars of all versions, texts, hparams, and values that are not
 * interpreted. 1, 0 at the end, or ERR_CORRUPT. EVENT_HPARAMS_START sets *params for hparams_next to walk; otherwise it
 * is unchanged. */
int summary_next(struct event_span *summary, struct event_span *params, struct event_item *ret);

#endif
