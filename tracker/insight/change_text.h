/* change_text.h: findings as one English sentence, the same on the terminal, in REST and on the page. */
#ifndef DPT_INSIGHT_CHANGE_TEXT_H
#define DPT_INSIGHT_CHANGE_TEXT_H

#include "tracker/base/buf.h"
#include "tracker/insight/run_change.h"

/* Appends "B is 1.31x faster than A (1.27-1.35), all of it in data_wait". Uses "faster" or "slower" only if the
 * interval confirms it. */
void change_text_change(struct buf *out, const struct change *c, const char *a, const char *b);

#endif
