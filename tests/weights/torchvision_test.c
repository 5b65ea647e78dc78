/* SPDX-License-Identifier: Apache-2.0 */
/* torchvision_test.c: the names and shapes in files of our ResNets equal those of torchvision, by a list
 * (tests/train/reference/make_torchvision.py): a file of each network is accepted, one that differs is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/buf.h"
#include "trainer/models/models.h"
#include "trainer/weights/weights.h"

static char path[] = "/tmp/dptrain-torchvision-XXXXXX";

struct entry {
	char net[32], name[100], shape[40]; /* shape: "64,3,7,7", "-" for a number */
};

/* Calls visit for each line of the list for this network; returns their number. */
static int each(const char *net, void (*visit)(void *user, const struct entry *e), void *user)
{
	const char *top = getenv("srcdir");
	char file[4096];
	struct entry e;
	FILE *f;
	int n = 0;

	snprintf(file, sizeof(file), "%s/tests/train/reference/torchvision_resnets.txt", top ? top : ".");
	f = fopen(file, "re");
	if (!f)
		fail_msg("cannot read %s", file);
	while (fscanf(f, "%31s %99s %39s", e.net, e.name, e.shape) == 3)
		if (!strcmp(e.net, net)) {
			visit(user, &e);
			n++;
		}
	fclose(f);
	return n;
}

struct head {
	struct buf text;
	long long at;
	const char *leave_out, *wrong; /* tensors; may be NULL */
};

static void add(void *user, const struct entry *e)
{
	struct head *h = user;
	bool number = e->shape[0] == '-';
	const char *shape = number ? "" : e->shape;
	long long bytes = number ? 8 : 4;

	if (h->leave_out && !strcmp(e->name, h->leave_out))
		return;
	if (h->wrong && !strcmp(e->name, h->wrong))
		shape = "7,3,2";
	for (const char *p = shape; *p; p += strcspn(p, ",") + (p[strcspn(p, ",")] == ','))
		bytes *= strtoll(p, NULL, 10);
	buf_addf(&h->text, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%lld,%lld]}", h->at ? "," : "{",
		 e->name, number ? "I64" : "F32", shape, h->at, h->at + bytes);
	h->at += bytes;
}

/* A sparse file without data. */
static void write_file(const char *net, struct head *h)
{
	FILE *f = fopen(path, "we");
	uint64_t n;

	assert_non_null(f);
	buf_init(&h->text, 1 << 20);
	h->at = 0;
	assert_true(each(net, add, h) > 100);
	buf_addc(&h->text, '}');
	assert_false(buf_failed(&h->text));
	n = h->text.len;
	assert_int_equal(fwrite(&n, sizeof(n), 1, f), 1);
	assert_int_equal(fwrite(h->text.data, h->text.len, 1, f), 1);
	assert_int_equal(ftruncate(fileno(f), (off_t)(8 + n) + h->at) + fclose(f), 0);
	buf_done(&h->text);
}

static int check(const char *net, struct head h, struct err *err)
{
	const struct model *m = model_find(net);
	struct graph *g = graph_new(true);
	struct model_config c;
	int rc;

	assert_non_null(m);
	c = m->defaults;
	c.image_h = c.image_w = 64;
	if (model_build(m, g, &c, 1, err))
		fail_msg("%s", err->text);
	write_file(net, &h);
	rc = weights_check(g, &(struct weights_load_opts){ .path = path, .head = m->head }, err);
	graph_free(g);
	return rc;
}

static void same_names_and_shapes(void **state)
{
	static const char *const nets[] = { "resnet18", "resnet34", "resnet50", "resnet101", "resnet152" };

	(void)state;
	for (size_t i = 0; i < sizeof(nets) / sizeof(nets[0]); i++) {
		struct err err = ERR_INIT;

		if (check(nets[i], (struct head){ .at = 0 }, &err))
			fail_msg("%s: %s", nets[i], err.text);
	}
}

static void differences_are_reported(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(check("resnet50", (struct head){ .leave_out = "layer3.5.bn3.running_var" }, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "1 missing ('layer3.5.bn3.running_var')"));
	assert_int_equal(check("resnet50", (struct head){ .wrong = "layer1.0.downsample.0.weight" }, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "file [7,3,2], model [256,64,1,1]"));
	assert_int_equal(check("resnet18", (struct head){ .wrong = "fc.bias" }, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "--reset-head"));
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_names_and_shapes),
		cmocka_unit_test(differences_are_reported),
	};
	int fd = mkstemp(path);

	if (fd < 0 || close(fd))
		return 1;
	return cmocka_run_group_tests(tests, NULL, remove_file);
}
