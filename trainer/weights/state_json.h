/* state_json.h: converts state.json of a checkpoint to text and back. Internal to trainer/weights. */
#ifndef DPT_WEIGHTS_STATE_JSON_H
#define DPT_WEIGHTS_STATE_JSON_H

#include "trainer/weights/checkpoint.h"

enum { STATE_MODEL, STATE_OPTIMIZER, STATE_FILES };

struct state_file {
	struct checkpoint_state state;
	struct st_sum sum[STATE_FILES];
	struct json_t *config, *kernels; /* name → text; owned; kernels may be NULL */
};

/* Returns the text to write, which the caller frees; NULL: out of memory, or a text is not UTF-8. */
char *state_text(const struct checkpoint_write_opts *o, const struct st_sum sum[STATE_FILES]);

/* Parses n bytes of text; path is for messages. ERR_USAGE. state_done frees *ret. */
int state_parse(struct state_file *ret, const char *path, const char *text, size_t n, struct err *err);
void state_done(struct state_file *s);

#endif
