/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_module.c: the cpu backend: probe, memory, and the table of kernels, which are defined next to their ops
 * (<op>_cpu.c). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tracker/mem/mem.h"
#include "trainer/backends/backend.h"
#include "trainer/backends/cpu/amx.h"
#include "trainer/backends/cpu/own_convs.h"
#include "trainer/backends/cpu/cpu_conv.h"
#include "trainer/backends/cpu/cpu_matmul.h"
#include "trainer/backends/cpu/cpu_pick.h"

static void cpu_version(char *text, size_t n)
{
	char dnn[64];

	dnn_version(dnn, sizeof(dnn));
	snprintf(text, n, "%s, %s", dnn, cpu_isa_name(cpu_isa_detect()));
}

static int cpu_probe(char *reason, size_t n)
{
	struct err err = ERR_INIT;
	struct dnn *d;

	if (dnn_new(&d, &err)) {
		snprintf(reason, n, "%s", err.text);
		return err.code;
	}
	dnn_free(d);
	return 0;
}

static bool cpu_takes(const struct precision *p)
{
	return p->master == DTYPE_F32 && (p->low == DTYPE_F32 || p->low == DTYPE_BF16 || p->low == DTYPE_F16);
}

static void cpu_close(void *module)
{
	struct cpu_module *m = module;

	if (!m)
		return;
	cpu_convs_free(m);
	cpu_matmul_free_all(m);
	cpu_picks_free(m->picks);
	dnn_free(m->dnn);
	free(m);
}

/* Detects the processor's features, and opens oneDNN and the stored choices. */
static int cpu_open(const struct backend_opts *o, void **ret_module, struct err *err)
{
	struct cpu_module *m = mem_zalloc(sizeof(*m));
	int rc;

	m->threads = o->threads > 0 ? o->threads : 1;
	m->deterministic = o->deterministic;
	m->dry = o->dry;
	m->direct = o->direct;
	m->split = o->split;
	m->isa = cpu_isa_detect();
	m->tiles = cpu_tiles_detect(m->isa);
	m->plain_dots = block_asks_plain_dots();
	rc = dnn_new(&m->dnn, err);
	if (!rc && m->dry)
		dnn_plan_only(m->dnn);
	if (!rc)
		m->widens = m->isa < CPU_AVX512 || !dnn_takes_bf16(m->dnn);
	if (!rc && !m->deterministic)
		m->picks = cpu_picks_open();
	if (rc) {
		cpu_close(m);
		return rc;
	}
	*ret_module = m;
	return 0;
}

static const char *cpu_slow(void *module, const struct precision *p)
{
	const struct cpu_module *m = module;

	if (p->low == DTYPE_F16)
		return "fp16 is emulated here, for correctness only: values are rounded to fp16, the arithmetic is f32";
	/* oneDNN takes bf16 on AVX-512 alone, at a third of f32's speed */
	if (p->low == DTYPE_BF16 && (m->widens || m->isa != CPU_AVX512_BF16))
		return "bf16 brings no speed here: this processor has no products of it, they are computed in f32";
	return NULL;
}

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

static void cpu_settled(void *module)
{
	const struct cpu_module *m = module;

	if (m->picks)
		cpu_pick_leave(m->picks);
}

static int cpu_take_failure(void *module, const char *node, struct err *err)
{
	(void)node; /* the executor of the host names it */
	return dnn_take_failure(((struct cpu_module *)module)->dnn, err);
}

/* Maps the slab: untouched pages cost nothing, and huge pages can be requested. The start is aligned to a huge page;
 * the excess around the slab is unmapped. */
static int cpu_alloc(void *module, enum space space, size_t bytes, void **ret, struct err *err)
{
	size_t mapped = round_up_bytes(bytes ? bytes : 1, 4096);
	char *p, *start, *end;

	(void)module;
	(void)space;
	if (bytes > SIZE_MAX / 2)
		return err_set(err, ERR_NOMEM, "backend cpu: cannot allocate %zu bytes", bytes);
	p = mmap(NULL, mapped + HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return err_set_errno(err, errno, "backend cpu: cannot allocate %zu MB for tensors", bytes >> 20);
	start = p + (HUGE_PAGE_BYTES - (uintptr_t)p % HUGE_PAGE_BYTES) % HUGE_PAGE_BYTES;
	end = start + mapped;
	if (start > p)
		munmap(p, (size_t)(start - p));
	if (end < p + mapped + HUGE_PAGE_BYTES)
		munmap(end, (size_t)(p + mapped + HUGE_PAGE_BYTES - end));
	madvise(start, mapped, MADV_HUGEPAGE);
	*ret = start;
	return 0;
}

static void cpu_release(void *module, enum space space, void *memory, size_t bytes)
{
	(void)module, (void)space;
	if (memory)
		munmap(memory, round_up_bytes(bytes ? bytes : 1, 4096));
}

static int cpu_copy(void *module, void *to, const void *from, size_t bytes, struct err *err)
{
	(void)module, (void)err;
	memcpy(to, from, bytes);
	return 0;
}

#define OP(name) extern const struct kernel name##_cpu;
#include "trainer/ops/ops.def"
#undef OP

extern const struct backend dptrain_backend_v1;
BACKEND_EXPORT const struct backend dptrain_backend_v1 = {
	.choices = cpu_pick_choices,
	.settled = cpu_settled,
	.take_failure = cpu_take_failure,
	.choose = cpu_pick_choose,
	.abi = BACKEND_ABI,
	.op_count = OP_COUNT,
	.name = "cpu",
	.version = cpu_version,
	.probe = cpu_probe,
	.takes = cpu_takes,
	.open = cpu_open,
	.close = cpu_close,
	.slow = cpu_slow,
	.alloc = cpu_alloc,
	.release = cpu_release,
	.copy = cpu_copy,
	.kernel = {
#define OP(name) [OP_##name] = &name##_cpu,
#include "trainer/ops/ops.def"
#undef OP
	},
	.emulate_f16 = &cpu_emulate,
};
