/* change_text.h: findings in one English sentence: the same words on the terminal, in REST and on the page. */
#ifndef DPT_INSIGHT_CHANGE_TEXT_H
#define DPT_INSIGHT_CHANGE_TEXT_H

#include "tracker/base/buf.h"
#include "tracker/insight/run_change.h"

/* "B is 1.31x faster than A (1.27-1.35), all of it in data_wait". Never "faster" or "slower" without an interval that
 * says so. */
void change_text_change(struct buf *out, const struct change *c, const char *a, const char *b);

#endif
