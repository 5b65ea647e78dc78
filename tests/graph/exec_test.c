/* exec_test.c: what every executor gets from exec.c: schedules that it cannot keep apart in memory are refused, calls
 * reach the executor that was asked for, whatever it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/run/exec.h"

/* An executor that runs nothing and counts. */
struct fake {
	struct exec exec;
	int runs, profiles;
	bool closed;
	double seconds;
};

static struct fake fake;
static const struct exec_ops fake_ops;

static int fake_open(struct exec **ret, const struct prepared *p, struct err *err)
{
	(void)p, (void)err;
	fake = (struct fake){ .exec.ops = &fake_ops, .seconds = 3 };
	*ret = &fake.exec;
	return 0;
}

static void fake_close(struct exec *e)
{
	((struct fake *)e)->closed = true;
}

static int fake_run(struct exec *e, const struct program *p, const struct step_page *page, struct exec_times *ret,
		    struct err *err)
{
	(void)p;
	((struct fake *)e)->runs++;
	ret->comm_total = (double)page->step;
	return page->step == 13 ? err_set(err, ERR_PEER, "step 13") : 0;
}

static int fake_profile(struct exec *e, struct err *err)
{
	(void)err;
	((struct fake *)e)->profiles++;
	return 0;
}

static const double *fake_node_seconds(const struct exec *e, const struct program *p)
{
	(void)p;
	return &((const struct fake *)e)->seconds;
}

static const struct exec_ops fake_ops = {
	.name = "fake",
	.slots = 2,
	.open = fake_open,
	.close = fake_close,
	.run = fake_run,
	.profile = fake_profile,
	.node_seconds = fake_node_seconds,
};

/* A run whose one program has an empty schedule of that many slots. */
struct run {
	struct prepared prepared;
	struct program program;
};

static void run_init(struct run *r, int slots)
{
	*r = (struct run){ .program = { .name = "train-4", .schedule = { .slots = slots } } };
	r->prepared.opts.backend = &backend_ref;
	r->prepared.program[0] = &r->program;
	r->prepared.n_programs = 1;
}

static void slots_are_kept_apart_or_refused(void **state)
{
	struct err err = ERR_INIT;
	struct exec *e = NULL;
	struct run r;

	(void)state;
	run_init(&r, 2);
	assert_int_equal(exec_new(&e, &r.prepared, &err), ERR_UNSUPPORTED);
	assert_null(e);
	assert_non_null(strstr(err.text, "train-4"));
	assert_non_null(strstr(err.text, "2 micro-batch slots"));
	assert_int_equal(exec_open(&e, &fake_ops, &r.prepared, &err), 0);
	exec_free(e);
	run_init(&r, 3);
	assert_int_equal(exec_open(&e, &fake_ops, &r.prepared, &err), ERR_UNSUPPORTED);
	run_init(&r, 1);
	assert_int_equal(exec_new(&e, &r.prepared, &err), 0);
	exec_free(e);
}

static void calls_reach_the_executor(void **state)
{
	struct exec_times times = { .comm_total = 0 };
	struct step_page page = { .step = 12 };
	struct err err = ERR_INIT;
	struct exec *e;
	struct run r;

	(void)state;
	run_init(&r, 1);
	assert_int_equal(exec_open(&e, &fake_ops, &r.prepared, &err), 0);
	assert_int_equal(exec_run(e, &r.program, &page, &times, &err), 0);
	assert_true(times.comm_total == 12);
	page.step = 13;
	assert_int_equal(exec_run(e, &r.program, &page, &times, &err), ERR_PEER);
	assert_int_equal(fake.runs, 2);
	assert_int_equal(exec_profile(e, &err), 0);
	assert_int_equal(fake.profiles, 1);
	assert_true(*exec_node_seconds(e, &r.program) == 3);
	exec_free(e);
	assert_true(fake.closed);
	exec_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_are_kept_apart_or_refused),
		cmocka_unit_test(calls_reach_the_executor),
	};

	return cmocka_run_group_tests_name("exec", tests, NULL, NULL);
}
