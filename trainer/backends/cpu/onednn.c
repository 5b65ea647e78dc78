/* SPDX-License-Identifier: Apache-2.0 */
/* onednn.c: opens oneDNN: its engine, its stream and the attribute that all primitives share. */
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/onednn.h"

#include <stdlib.h>

#include "trainer/backends/cpu/onednn_lib.h"

void dnn_version(char *text, size_t n)
{
	const dnnl_version_t *v = dnnl_version();

	snprintf(text, n, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
}

int dnn_new(struct dnn **ret, struct err *err)
{
	struct dnn *d = mem_zalloc(sizeof(*d));
	dnnl_status_t st;

	/* the library's cache changes the order in which it lists implementations */
	dnnl_set_primitive_cache_capacity(0);
	st = dnnl_engine_create(&d->engine, dnnl_cpu, 0);
	if (st == dnnl_success)
		st = dnnl_stream_create(&d->stream, d->engine, dnnl_stream_default_flags);
	if (st == dnnl_success)
		st = dnnl_primitive_attr_create(&d->attr);
	if (st == dnnl_success)
		st = dnnl_primitive_attr_set_scratchpad_mode(d->attr, dnnl_scratchpad_mode_user);
	if (st == dnnl_success) {
		*ret = d;
		return 0;
	}
	dnn_free(d);
	return dnn_fail(err, "opening the processor as a device", st);
}

void dnn_plan_only(struct dnn *d)
{
	d->plans = true;
}

int dnn_take_failure(struct dnn *d, struct err *err)
{
	const dnnl_status_t st = d->failed;

	d->failed = dnnl_success;
	return st == dnnl_success ? 0 : dnn_fail(err, "executing a primitive", st);
}

void dnn_free(struct dnn *d)
{
	if (!d)
		return;
	if (d->attr)
		dnnl_primitive_attr_destroy(d->attr);
	if (d->stream)
		dnnl_stream_destroy(d->stream);
	if (d->engine)
		dnnl_engine_destroy(d->engine);
	free(d);
}
