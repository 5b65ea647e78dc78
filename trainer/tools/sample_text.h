/* sample_text.h: `dptrain sample`: generates text with a trained language model, without ranks. */
#ifndef DPT_TOOLS_SAMPLE_TEXT_H
#define DPT_TOOLS_SAMPLE_TEXT_H

#include "trainer/run/engine.h"

int sample_main(const struct job *job, struct err *err); /* 0, or a negative code */

#endif
