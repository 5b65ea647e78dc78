/* bench_links.h: `dptrain bench --link LINK;LINK;…`: the same steps over several links, one row per link. */
#ifndef DPT_TOOLS_BENCH_LINKS_H
#define DPT_TOOLS_BENCH_LINKS_H

#include <stdbool.h>

#include "trainer/run/engine.h"

/* Returns true if --link of `dptrain bench` is a list. */
bool bench_links_wanted(const struct run_config *cfg);

/* Starts `dptrain bench` for each link and prints its step times. Returns the exit code, or a negative code with err.
 * */
int bench_links_main(const struct job *job, struct err *err);

#endif
