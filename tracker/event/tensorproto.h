/* tensorproto.h: the one number or text in a TensorProto (tensor.proto); only the size of larger tensors. */
#ifndef DPT_EVENT_TENSORPROTO_H
#define DPT_EVENT_TENSORPROTO_H

#include <stdbool.h>
#include <stdint.h>

#include "tracker/event/event.h"

struct tensorproto {
	unsigned dtype;    /* TB_DT_… */
	uint64_t elements; /* UINT64_MAX: overflow */
	struct event_span content;
	bool has_number;
	bool has_text;
	double number; /* first element of the typed lists */
	struct event_text text;
};

/* 0 or ERR_CORRUPT; texts and content point into s. */
int tensorproto_parse(struct event_span s, struct tensorproto *ret);

/* The next dimension of a TensorShapeProto (tensor_shape.proto): 1 and its size, 0 at the end, or ERR_CORRUPT. */
int tensorproto_next_dim(struct event_span *shape, uint64_t *size);

/* Returns true and *ret if the tensor is one number. */
bool tensorproto_number(const struct tensorproto *t, double *ret);

#endif
