/* SPDX-License-Identifier: Apache-2.0 */
/* ref_backend.c: the built-in reference backend: f64, one thread, plain loops. It defines the results that every other
 * backend must produce. All tests that strategies preserve results run on it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/backends/backend.h"

#define OP(name) extern const struct kernel name##_ref;
#include "trainer/ops/ops.def"
#undef OP

extern const struct kernel ref_emulate;

static void ref_version(char *text, size_t n)
{
	snprintf(text, n, "f64, one thread");
}

static int ref_probe(char *reason, size_t n)
{
	if (n)
		reason[0] = '\0';
	return 0;
}

static bool ref_takes(const struct precision *p)
{
	return p->casts || (p->low == DTYPE_F64 && p->master == DTYPE_F64);
}

static int ref_open(const struct backend_opts *o, void **ret_module, struct err *err)
{
	(void)o;
	(void)err;
	*ret_module = NULL;
	return 0;
}

static void ref_close(void *module)
{
	(void)module;
}

static int ref_alloc(void *module, enum space space, size_t bytes, void **ret, struct err *err)
{
	void *p = NULL;

	(void)module;
	(void)space;
	if (posix_memalign(&p, 64, bytes ? bytes : 64) != 0)
		return err_set(err, ERR_NOMEM, "cannot allocate %zu bytes: lower --batch-size", bytes);
	memset(p, 0, bytes);
	*ret = p;
	return 0;
}

static void ref_free(void *module, enum space space, void *memory, size_t bytes)
{
	(void)module;
	(void)space;
	(void)bytes;
	free(memory);
}

static int ref_copy(void *module, void *to, const void *from, size_t bytes, struct err *err)
{
	(void)module;
	(void)err;
	if (bytes)
		memcpy(to, from, bytes);
	return 0;
}

#define OP(name) [OP_##name] = &name##_ref,
const struct backend backend_ref = {
	.abi = BACKEND_ABI,
	.op_count = OP_COUNT,
	.name = "ref",
	.version = ref_version,
	.probe = ref_probe,
	.takes = ref_takes,
	.open = ref_open,
	.close = ref_close,
	.alloc = ref_alloc,
	.release = ref_free,
	.copy = ref_copy,
	.kernel = {
#include "trainer/ops/ops.def"
	},
	.emulate_f16 = &ref_emulate,
	.emulates_f32 = true,
};
#undef OP
