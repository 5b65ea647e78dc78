/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.h: what every kernel of the cpu module shares: the opened module, the instruction sets that loops are compiled
 * for, the thread team, and checks of a node's types. It is independent of any single op. */
#ifndef DPT_BACKENDS_CPU_H
#define DPT_BACKENDS_CPU_H

#include "tracker/base/round.h"
#include "trainer/graph/kernel.h"

/* Loops are compiled once per set (each.h). Preparing a kernel selects the best set that the machine has.
 * $DPTRAIN_CPU_ISA=base|avx2|avx512|avx512_bf16 limits the choice, for tests and comparisons. */
enum cpu_isa { CPU_BASE, CPU_AVX2, CPU_AVX512, CPU_AVX512_BF16, CPU_ISA_COUNT };

/* Products in tile registers: never, emulated by plain loops, or by the processor. */
enum cpu_tiles { CPU_TILES_NONE, CPU_TILES_EMULATED, CPU_TILES_AMX };

struct dnn;
struct cpu_convs;
struct cpu_matmul;
struct cpu_picks;

struct cpu_module { /* what backend->open returns */
	enum cpu_isa isa;
	enum cpu_tiles tiles;
	bool plain_dots; /* plain C emulates bf16 dot products that the processor lacks */
	int threads;
	bool deterministic, dry, direct, split; /* as in struct backend_opts */
	bool widens; /* bf16 products are computed in f32 (widen.h), because the library has none for the processor */
	struct dnn *dnn;
	struct cpu_convs *convs;    /* all convolutions prepared so far, shared by nodes of the same shape */
	struct cpu_matmul *matmuls; /* likewise */
	struct cpu_picks *picks;    /* the implementations chosen so far; NULL: out of memory */
};

enum cpu_isa cpu_isa_detect(void);
const char *cpu_isa_name(enum cpu_isa isa);

/* The bits of results depend only on the number of parts: a team with fewer threads runs several parts per thread. */
typedef void cpu_part_fn(void *arg, int part, int parts);
void cpu_parallel(int parts, cpu_part_fn *fn, void *arg);

/* Returns a useful number of parts for a loop over that many elements, at most env->threads. Depends on nothing
 * else. */
int cpu_parts(const struct kernel_env *env, int64_t elements);

/* Returns the range of `part` when n items are divided in runs of `grain`. */
struct cpu_range {
	int64_t begin, end;
};

static inline struct cpu_range cpu_split(int64_t n, int64_t grain, int part, int parts)
{
	int64_t runs = divide_up(n, grain);
	int64_t begin = runs * part / parts * grain, end = runs * (part + 1) / parts * grain;

	return (struct cpu_range){ begin < n ? begin : n, end < n ? end : n };
}

/* Returns 0 if the given operands exist and have one type, f32 or bf16 (absent ones, NULL, are ignored); else the error
 * names the node. */
struct cpu_operands {
	int n_in, n_out; /* the first n_in inputs and n_out outputs are checked */
};

int cpu_one_type(const struct node *n, struct cpu_operands o, bool *ret_bf16, struct err *err);
int cpu_want(const struct node *n, const struct tensor *t, enum dtype type, struct err *err);

void cpu_state_release(void *state); /* frees a kernel's state that is one piece of memory */

/* State, prepare and run of ops that work element by element on one or two inputs of one type. */
struct cpu_elems {
	cpu_part_fn *loop; /* is handed this struct */
	int64_t count;
	int parts;
	bool bf16;
	float factor;	   /* of the op scale */
	const void *a, *b; /* b: NULL with one input */
	void *y;
};

int cpu_elems_new(const struct kernel_env *env, const struct node *n, cpu_part_fn *loop, void **ret_state,
		  struct err *err);
void cpu_elems_run(void *state, const struct kernel_args *args);

/* The versions of one loop, for users of each.h: CPU_PICK(env, add) is add as compiled for the machine. */
#if defined(__x86_64__)
#define CPU_TABLE(f)                                                                                                   \
	{                                                                                                              \
		f##_base, f##_avx2, f##_avx512, f##_bf16                                                               \
	}
#else
#define CPU_TABLE(f)                                                                                                   \
	{                                                                                                              \
		f##_base, f##_base, f##_base, f##_base                                                                 \
	}
#endif
#define CPU_PICK(env, f) ((cpu_part_fn *const[])CPU_TABLE(f))[((const struct cpu_module *)(env)->module)->isa]

extern const struct kernel cpu_emulate;

#endif
