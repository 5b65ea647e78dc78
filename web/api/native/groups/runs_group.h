/* runs_group.h: replies with a list of runs as groups. */
#ifndef DPT_NATIVE_RUNS_GROUP_H
#define DPT_NATIVE_RUNS_GROUP_H

#include "web/api/native/groups/groups.h"

/* Replies {"groups":[{"group","runs","n","metrics":{KEY:{"first","last","min","max"}}}]}. Each of the four has n, mean
 * and std of the finite values of the runs. */
enum call_next runs_group_reply(struct call *c, const char *const *fields, size_t n, const struct query_runs *runs);

#endif
