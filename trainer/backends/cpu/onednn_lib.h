/* SPDX-License-Identifier: Apache-2.0 */
/* onednn_lib.h: shared by the files that call oneDNN: its versions 2.6 to 3.x under one set of names, and the iteration
 * over the implementations of an operation. For dnn*.c only. */
#ifndef DPT_BACKENDS_CPU_ONEDNN_LIB_H
#define DPT_BACKENDS_CPU_ONEDNN_LIB_H

#include <dnnl.h>
#include <stdio.h>
#include <string.h>

#include "trainer/backends/cpu/onednn.h"

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t desc_ref;
typedef dnnl_memory_desc_t desc_own;

static inline desc_ref desc_borrow(const desc_own *d)
{
	return *d;
}

static inline dnnl_status_t desc_make(desc_own *d, int ndims, const dnnl_dims_t dims, dnnl_data_type_t type,
				      dnnl_format_tag_t tag)
{
	return dnnl_memory_desc_create_with_tag(d, ndims, dims, type, tag);
}

static inline dnnl_status_t desc_strided(desc_own *d, const dnnl_dims_t dims, const dnnl_dims_t strides,
					 dnnl_data_type_t type)
{
	return dnnl_memory_desc_create_with_strides(d, 2, dims, type, strides);
}

static inline void desc_drop(desc_own *d)
{
	if (*d)
		dnnl_memory_desc_destroy(*d);
	*d = NULL;
}
#else
typedef const dnnl_memory_desc_t *desc_ref;
typedef dnnl_memory_desc_t desc_own;

static inline desc_ref desc_borrow(const desc_own *d)
{
	return d;
}

static inline dnnl_status_t desc_make(desc_own *d, int ndims, const dnnl_dims_t dims, dnnl_data_type_t type,
				      dnnl_format_tag_t tag)
{
	return dnnl_memory_desc_init_by_tag(d, ndims, dims, type, tag);
}

static inline dnnl_status_t desc_strided(desc_own *d, const dnnl_dims_t dims, const dnnl_dims_t strides,
					 dnnl_data_type_t type)
{
	return dnnl_memory_desc_init_by_strides(d, 2, dims, type, strides);
}

static inline void desc_drop(desc_own *d)
{
	(void)d;
}
#endif

struct dnn {
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	dnnl_primitive_attr_t attr; /* user-mode scratchpad */
	bool plans;		    /* see dnn_plan_only */
	dnnl_status_t failed;	    /* see dnn_take_failure */
};

/* Iterates over the implementations of one operation. */
struct pd_walk {
	dnnl_primitive_desc_t hint; /* for gradients: the forward description */
	bool first;
#if DNNL_VERSION_MAJOR >= 3
	dnnl_primitive_desc_t pd;
#else
	union { /* the iterator keeps reading it */
		dnnl_convolution_desc_t conv;
		dnnl_matmul_desc_t matmul;
	} op;
	dnnl_primitive_desc_iterator_t it;
#endif
};

static inline bool walk_next(struct pd_walk *w)
{
	if (w->first) {
		w->first = false;
		return true;
	}
#if DNNL_VERSION_MAJOR >= 3
	return dnnl_primitive_desc_next_impl(w->pd) == dnnl_success;
#else
	return dnnl_primitive_desc_iterator_next(w->it) == dnnl_success;
#endif
}

static inline dnnl_primitive_desc_t walk_take(struct pd_walk *w)
{
#if DNNL_VERSION_MAJOR >= 3
	dnnl_primitive_desc_t copy = NULL;

	return dnnl_primitive_desc_clone(&copy, w->pd) == dnnl_success ? copy : NULL;
#else
	return dnnl_primitive_desc_iterator_fetch(w->it);
#endif
}

static inline void walk_close(struct pd_walk *w)
{
#if DNNL_VERSION_MAJOR >= 3
	if (w->pd)
		dnnl_primitive_desc_destroy(w->pd);
#else
	if (w->it)
		dnnl_primitive_desc_iterator_destroy(w->it);
#endif
	if (w->hint)
		dnnl_primitive_desc_destroy(w->hint);
}

static inline const char *pd_impl(const_dnnl_primitive_desc_t pd)
{
	const char *name = "";

	dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
	return name;
}

/* Reference loops are a thousand times slower; "gemm:ref" and "nspc" loops are no better. */
static inline bool impl_usable(const char *name)
{
	return name[0] && !strstr(name, "ref");
}

/* Returns the name of usable implementation i; false after the last one. */
static inline bool walk_name(struct pd_walk *w, int i, char *name, size_t n)
{
	bool found = false;

	while (!found && walk_next(w)) {
		dnnl_primitive_desc_t pd = walk_take(w);

		if (pd && impl_usable(pd_impl(pd)) && i-- == 0) {
			snprintf(name, n, "%s", pd_impl(pd));
			found = true;
		}
		if (pd)
			dnnl_primitive_desc_destroy(pd);
	}
	return found;
}

/* Finds the description of the implementation called impl (NULL: the first usable one); NULL if not found. */
static inline dnnl_primitive_desc_t walk_find(struct pd_walk *w, const char *impl)
{
	dnnl_primitive_desc_t pd = NULL;

	while (!pd && walk_next(w)) {
		pd = walk_take(w);
		if (pd && (impl ? strcmp(pd_impl(pd), impl) != 0 : !impl_usable(pd_impl(pd)))) {
			dnnl_primitive_desc_destroy(pd);
			pd = NULL;
		}
	}
	return pd;
}

static inline void dnn_execute(struct dnn *d, dnnl_primitive_t prim, int n, const dnnl_exec_arg_t *args)
{
	const dnnl_status_t st = dnnl_primitive_execute(prim, d->stream, n, args);

	if (!d->failed)
		d->failed = st;
}

static inline int dnn_fail(struct err *err, const char *what, dnnl_status_t st)
{
	return err_set(err, st == dnnl_out_of_memory ? ERR_NOMEM : ERR_UNSUPPORTED, "oneDNN: %s failed with status %d",
		       what, (int)st);
}

static inline dnnl_status_t memory_make(dnnl_memory_t *m, desc_ref desc, struct dnn *d)
{
	return dnnl_memory_create(m, desc, d->engine, DNNL_MEMORY_NONE);
}

#endif
