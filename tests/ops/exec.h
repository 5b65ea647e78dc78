/* SPDX-License-Identifier: Apache-2.0 */
/* exec.h: runs a small graph on one backend, every tensor in separate memory followed by guard bytes, so that a write
 * past the end or an element that was not written is detected. Independent of the planner and the engine. */
#ifndef DPT_TESTS_EXEC_H
#define DPT_TESTS_EXEC_H

#include "trainer/backends/backend.h"

struct rig { /* a backend opened for one number of threads and one pair of types */
	const struct backend *backend;
	void *module;
	struct kernel_env env;
	struct precision precision;
};

int rig_open(struct rig *ret, const struct backend *b, int threads, const struct precision *p, struct err *err);
void rig_close(struct rig *r);

struct exec;

/* Prepares every node. in_place: outputs use their input's memory wherever the op allows it and both have the same
 * size, and a kernel that can run many nodes is called that way. g must outlive it. */
int exec_new(struct exec **ret, struct graph *g, const struct rig *r, bool in_place, struct err *err);
void exec_free(struct exec *e);

/* Elements as doubles, converted to and from the tensor's type. */
void exec_put(struct exec *e, const struct tensor *t, const double *values);
void exec_get(const struct exec *e, const struct tensor *t, double *values);

int exec_run(struct exec *e, const struct step_page *page, struct err *err);

/* Name of the first tensor or workspace with bytes written past its end; NULL: none. */
const char *exec_damage(const struct exec *e);

double value_get(const void *p, enum dtype t, int64_t i);
void value_put(void *p, enum dtype t, int64_t i, double v);
double value_round(enum dtype t, double v); /* as stored in t */

#endif
