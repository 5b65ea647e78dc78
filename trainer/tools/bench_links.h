/* bench_links.h: `dptrain bench --link LINK;LINK;…`: the same steps over several links, a row each. */
#ifndef DPT_TOOLS_BENCH_LINKS_H
#define DPT_TOOLS_BENCH_LINKS_H

#include <stdbool.h>

#include "trainer/run/engine.h"

/* Whether --link of `dptrain bench` names more than one. */
bool bench_links_wanted(const struct run_config *cfg);

/* Starts `dptrain bench` anew for each link, and prints what its steps took. The exit code; negative with err. */
int bench_links_main(const struct job *job, struct err *err);

#endif
