/* SPDX-License-Identifier: Apache-2.0 */
/* matmul.c: the rate of oneDNN's own matrix product, in GFLOP/s: the machine's current limit, with which
 * tests/bench/train compares.
 *   matmul [f32|bf16] [SIZE] [SECONDS]; OMP_NUM_THREADS sets the threads */
#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(dnnl_status_t status, const char *what)
{
	if (status == dnnl_success)
		return;
	fprintf(stderr, "matmul: %s: oneDNN status %d\n", what, (int)status);
	exit(1);
}

#if DNNL_VERSION_MAJOR >= 3
static dnnl_primitive_t make(dnnl_engine_t engine, const dnnl_dims_t dims, dnnl_data_type_t type, dnnl_memory_t m[3])
{
	dnnl_memory_desc_t d[3];
	dnnl_primitive_desc_t pd;
	dnnl_primitive_t p;

	for (int i = 0; i < 3; i++) {
		must(dnnl_memory_desc_create_with_tag(&d[i], 2, dims, i == 2 ? dnnl_f32 : type, dnnl_ab), "descriptor");
		must(dnnl_memory_create(&m[i], d[i], engine, DNNL_MEMORY_ALLOCATE), "memory");
	}
	must(dnnl_matmul_primitive_desc_create(&pd, engine, d[0], d[1], NULL, d[2], NULL), "matmul");
	must(dnnl_primitive_create(&p, pd), "primitive");
	return p;
}
#else
static dnnl_primitive_t make(dnnl_engine_t engine, const dnnl_dims_t dims, dnnl_data_type_t type, dnnl_memory_t m[3])
{
	dnnl_memory_desc_t d[3];
	dnnl_matmul_desc_t desc;
	dnnl_primitive_desc_t pd;
	dnnl_primitive_t p;

	for (int i = 0; i < 3; i++) {
		must(dnnl_memory_desc_init_by_tag(&d[i], 2, dims, i == 2 ? dnnl_f32 : type, dnnl_ab), "descriptor");
		must(dnnl_memory_create(&m[i], &d[i], engine, DNNL_MEMORY_ALLOCATE), "memory");
	}
	must(dnnl_matmul_desc_init(&desc, &d[0], &d[1], NULL, &d[2]), "matmul");
	must(dnnl_primitive_desc_create(&pd, &desc, NULL, engine, NULL), "matmul");
	must(dnnl_primitive_create(&p, pd), "primitive");
	return p;
}
#endif

/* Fills with ones: no denormals or other values that change the processor's speed. */
static void fill(dnnl_memory_t m, size_t count, dnnl_data_type_t type)
{
	void *data;

	must(dnnl_memory_get_data_handle(m, &data), "data");
	for (size_t i = 0; i < count; i++) {
		if (type == dnnl_bf16)
			((unsigned short *)data)[i] = 0x3f80;
		else
			((float *)data)[i] = 1;
	}
}

int main(int argc, char *argv[])
{
	dnnl_data_type_t type = argc > 1 && !strcmp(argv[1], "bf16") ? dnnl_bf16 : dnnl_f32;
	long n = argc > 2 ? strtol(argv[2], NULL, 10) : 1024;
	double limit_s = argc > 3 ? strtod(argv[3], NULL) : 0.5, best_s = 1e9, start;
	dnnl_dims_t dims = { n, n };
	dnnl_memory_t m[3];
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	dnnl_primitive_t p;
	dnnl_exec_arg_t args[3];

	must(dnnl_engine_create(&engine, dnnl_cpu, 0), "engine");
	must(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "stream");
	p = make(engine, dims, type, m);
	for (int i = 0; i < 3; i++)
		fill(m[i], (size_t)n * (size_t)n, i == 2 ? dnnl_f32 : type);
	args[0] = (dnnl_exec_arg_t){ DNNL_ARG_SRC, m[0] };
	args[1] = (dnnl_exec_arg_t){ DNNL_ARG_WEIGHTS, m[1] };
	args[2] = (dnnl_exec_arg_t){ DNNL_ARG_DST, m[2] };
	start = now_s();
	while (now_s() - start < limit_s) {
		double begin = now_s(), took;

		must(dnnl_primitive_execute(p, stream, 3, args), "execute");
		must(dnnl_stream_wait(stream), "wait");
		took = now_s() - begin;
		best_s = took < best_s ? took : best_s;
	}
	printf("%.1f\n", 2e-9 * (double)n * (double)n * (double)n / best_s);
	return 0;
}
