/* SPDX-License-Identifier: Apache-2.0 */
/* judge_test.c: the real cuDNN, without a device, judges every convolution of the ResNets and the attention of the
 * GPTs as the real module requests them on an H200 (h200.json): in 16 bits an engine on tensor cores with a workspace
 * below 64 MiB, in fp32 one without TF32; also engines under --deterministic and --tf32. Attention kernels are
 * compiled, by NVRTC and with a stub of the driver (libcuda.c). A plan's text gives the same plan. Nothing runs. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/graph/net.h"
#include "trainer/advise/hardware.h"
#include "trainer/backends/cuda/conv_plan.h"
#include "trainer/backends/cuda/cudnn_plan.h"
#include "trainer/backends/cuda/plan_cache.h"
#include "trainer/ops/conv/conv.h"

#define SHAPES_MAX 1024

static struct cuda_module without_device;
static const struct backend *cuda;

/* Layers that were already judged: networks repeat them. */
static char seen[SHAPES_MAX][160];
static int n_seen;

static int open_h200(struct err *err)
{
	struct hardware h = { .nodes = NULL };
	char path[512];
	int rc;

	snprintf(path, sizeof(path), "%s/tests/gpu/h200.json", getenv("srcdir") ? getenv("srcdir") : ".");
	rc = hardware_open(&h, path, err);
	if (!rc)
		rc = dnn_open_for(&without_device, h.device, err);
	hardware_done(&h);
	return rc;
}

static bool is_new(const struct node *n)
{
	const struct conv_attr *a = n->attr;
	const struct tensor *t[] = { n->in[0], n->in[1], n->out[0] };
	char key[160];
	int used = snprintf(key, sizeof(key), "%s %d %d", n->op->name, a->stride, a->pad);

	for (int i = 0; i < 3; i++) {
		used += snprintf(key + used, sizeof(key) - (size_t)used, " %s", dtype_name(t[i]->dtype));
		for (int k = 0; k < t[i]->shape.ndim; k++)
			used += snprintf(key + used, sizeof(key) - (size_t)used, ",%lld",
					 (long long)t[i]->shape.dim[k]);
	}
	for (int i = 0; i < n_seen; i++)
		if (!strcmp(seen[i], key))
			return false;
	assert_in_range(n_seen, 0, SHAPES_MAX - 1);
	memcpy(seen[n_seen++], key, sizeof(key));
	return true;
}

/* impl NULL: any engine of the library. key: of the shape, for messages. */
static void expect(struct node *n, const char *key, const struct kernel_env *env, const char *impl)
{
	const struct kernel *k = cuda->kernel[n->op->id];
	struct err err = ERR_INIT;
	void *state = NULL;

	if (k->prepare(env, n, &state, &err))
		fail_msg("%s: %s", n->name, err.text);
	if (impl ? strcmp(k->impl(state), impl) : !strcmp(k->impl(state), "tiles"))
		fail_msg("%s (%s): %s instead of %s", n->name, key, k->impl(state), impl ? impl : "an engine");
	k->release(state);
}

static void judge(struct node *n, enum dtype low)
{
	const struct kernel_env env = { .module = &without_device };
	const struct kernel_env by_table = { .module = &without_device, .deterministic = true };
	const char *key = seen[n_seen - 1];

	expect(n, key, &env, low == DTYPE_F32 ? "cuDNN" : "cuDNN on tensor cores");
	expect(n, key, &by_table, low == DTYPE_F32 ? "cuDNN" : NULL);
	if (low != DTYPE_F32)
		return;
	without_device.tf32 = true; /* allowed; the stem's gradient has no such engine */
	expect(n, key, &env, NULL);
	without_device.tf32 = false;
}

static int judge_net(const char *model, int64_t batch, enum dtype low)
{
	const struct net_opts o = {
		.model = model, .batch = batch, .training = true, .precision = { low, DTYPE_F32, NULL }
	};
	struct net net;
	int judged = 0;

	net_make(&net, &o);
	for (int i = 0; i < net.g->n_nodes; i++) {
		struct node *n = net.g->nodes[i];
		const bool conv = n->op->id == OP_conv || n->op->id == OP_conv_dgrad || n->op->id == OP_conv_wgrad;

		if (conv && is_new(n)) {
			judge(n, low);
			judged++;
		}
	}
	net_free(&net);
	return judged;
}

static void has_engines_for_every_convolution(void **state)
{
	static const char *const models[] = { "resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnet20",
					      "resnet56" };
	static const enum dtype types[] = { DTYPE_BF16, DTYPE_F16, DTYPE_F32 };
	int judged = 0;

	(void)state;
	if (!cuda || !without_device.dnn_device)
		skip();
	for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++)
		for (int t = 0; t < 3; t++)
			judged += judge_net(models[m], 32, types[t]) + judge_net(models[m], 256, types[t]);
	print_message("%d convolutions\n", judged);
}

/* One block, because all have the same sizes. */
static int judge_attention(const char *model, enum dtype low)
{
	const struct net_opts o = {
		.model = model, .batch = 4, .training = true, .precision = { low, DTYPE_F32, NULL }
	};
	const struct kernel_env env = { .module = &without_device };
	const struct kernel_env by_table = { .module = &without_device, .deterministic = true };
	bool judged[OP_COUNT] = { false };
	struct net net;

	net_make(&net, &o);
	for (int i = 0; i < net.g->n_nodes; i++) {
		struct node *n = net.g->nodes[i];

		if ((n->op->id != OP_attention && n->op->id != OP_attention_grad) || judged[n->op->id])
			continue;
		judged[n->op->id] = true;
		expect(n, model, &env, "cuDNN on tensor cores");
		expect(n, model, &by_table, "tiles on tensor cores");
	}
	net_free(&net);
	return judged[OP_attention] + judged[OP_attention_grad];
}

static void has_engines_for_attention(void **state)
{
	static const char *const models[] = { "gpt2-124m", "gpt2-350m", "gpt2-774m", "gpt2-1558m" };

	(void)state;
	if (!cuda || !without_device.dnn_device)
		skip();
	for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++)
		assert_int_equal(judge_attention(models[m], DTYPE_BF16) + judge_attention(models[m], DTYPE_F16), 4);
}

/* Layers of equal sizes share a compiled plan, and the last one frees it. */
static void layers_share_plans(void **state)
{
	const struct net_opts o = {
		.model = "gpt2-124m", .batch = 4, .training = true, .precision = { DTYPE_BF16, DTYPE_F32, NULL }
	};
	const struct kernel_env env = { .module = &without_device };
	const struct kernel *k = cuda ? cuda->kernel[OP_attention] : NULL;
	void *states[64] = { NULL };
	const struct dnn_engine *first = NULL;
	struct err err = ERR_INIT;
	struct net net;
	int n = 0;

	(void)state;
	if (!cuda || !without_device.dnn_device)
		skip();
	assert_null(without_device.dnn_engines);
	net_make(&net, &o);
	for (int i = 0; i < net.g->n_nodes; i++) {
		if (net.g->nodes[i]->op->id != OP_attention)
			continue;
		assert_int_equal(k->prepare(&env, net.g->nodes[i], &states[n++], &err), 0);
		first = first ? first : without_device.dnn_engines;
		assert_ptr_equal(without_device.dnn_engines, first); /* a new one would be first */
	}
	assert_int_equal(n, 12);
	assert_non_null(first);
	while (n > 1)
		k->release(states[--n]);
	assert_non_null(without_device.dnn_engines);
	k->release(states[0]);
	assert_null(without_device.dnn_engines);
	net_free(&net);
}

/* The cache stores the library's text of a plan, which gives the same plan again without a search. */
static void plans_are_read_again(void **state)
{
	const struct conv_spec spec = { .pass = CONV_BY_WEIGHTS, .type = DTYPE_BF16, .n = 32, .h = 56, .w = 56, .c = 64,
					.k = 64, .p = 56, .q = 56, .kernel = 3, .stride = 1, .pad = 1 };
	const struct kernel_env env = { .module = &without_device };
	struct err err = ERR_INIT;
	size_t workspace[2];

	(void)state;
	if (!without_device.dnn_device)
		skip();
	without_device.kept = plan_cache_open(NULL, &err);
	for (int again = 0; again < 2; again++) {
		struct dnn_plan *plan = NULL;

		if (conv_plan_new(&plan, &env, &spec, &err))
			fail_msg("%s", err.text);
		assert_int_equal(dnn_plan_recalled(plan), again);
		assert_true(conv_plan_uses_tensor_cores(plan));
		workspace[again] = conv_plan_workspace(plan);
		conv_plan_free(plan);
	}
	assert_int_equal(workspace[0], workspace[1]);
	plan_cache_close(without_device.kept);
	without_device.kept = NULL;
}

/* The library has no engines for an unknown device: the error is the library's, not ours. */
static void an_unknown_device_is_refused(void **state)
{
	struct cuda_module other = { 0 };
	struct err err = ERR_INIT;

	(void)state;
	if (!without_device.dnn_device)
		skip();
	assert_int_equal(dnn_open_for(&other, "{\"maxGridSize\": 1}", &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "cuda: a device's description: cuDNN: "));
}

static void open_all(void)
{
	const char *build = getenv("builddir") ? getenv("builddir") : ".";
	struct err err = ERR_INIT;
	char path[512];
	void *module;

	snprintf(path, sizeof(path), "%s/.libs/dptrain_cuda.so", build);
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!module) {
		print_message("no module: %s\n", dlerror());
		return;
	}
	cuda = dlsym(module, BACKEND_SYMBOL);
	snprintf(path, sizeof(path), "%s/tests/gpu/.libs/libcuda.so.1", build);
	dlopen(path, RTLD_NOW | RTLD_LOCAL); /* cuDNN loads it by name */
	cuda_calls_open(&without_device.calls, CUDA_NVRTC, NULL);
	if (open_h200(&err))
		print_message("no cuDNN: %s\n", err.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_engines_for_every_convolution),
		cmocka_unit_test(has_engines_for_attention),
		cmocka_unit_test(layers_share_plans),
		cmocka_unit_test(plans_are_read_again),
		cmocka_unit_test(an_unknown_device_is_refused),
	};
	int failed;

	open_all();
	failed = cmocka_run_group_tests_name("gpu/judge", tests, NULL, NULL);
	if (failed || (cuda && without_device.dnn_device))
		return failed;
	print_message("not judged: the cuda module or the real cuDNN is missing\n");
	return 77;
}
