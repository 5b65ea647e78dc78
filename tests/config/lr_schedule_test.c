/* SPDX-License-Identifier: Apache-2.0 */
/* lr_schedule_test.c: learning rates compared with PyTorch's schedulers (tests/config/lr_table.def), and the
 * conversion of flags into steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "trainer/config/lr_schedule.h"

static const struct row {
	enum config_lr_scheduler kind;
	int warmup, total;
	double min_lr, every, gamma, power;
	int decay, step;
	double lr;
} rows[] = {
#define LR_ROW(kind, ...) { CONFIG_LR_##kind, __VA_ARGS__ },
#include "tests/config/lr_table.def"
#undef LR_ROW
};

static void equals_torch(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct lr_schedule s = { .kind = r->kind,
					 .lr = 0.4,
					 .min_lr = r->min_lr,
					 .gamma = r->gamma,
					 .power = r->power,
					 .steps_total = r->total,
					 .steps_warmup = r->warmup,
					 .step_every = r->every,
					 .steps_decay = r->decay };
		double lr = lr_schedule_at(&s, r->step);

		/* torch chains its factors step by step: a few hundred roundings at most. */
		if (fabs(lr - r->lr) > 1e-13)
			fail_msg("row %zu: kind %d warm-up %d step %d: %.17g, torch has %.17g", i, r->kind, r->warmup,
				 r->step, lr, r->lr);
	}
}

static void ends_stay(void **state)
{
	struct lr_schedule s = { .kind = CONFIG_LR_COSINE, .lr = 1, .min_lr = 0.25, .steps_total = 10,
				 .steps_warmup = 2 };

	(void)state;
	assert_true(fabs(lr_schedule_at(&s, 11) - 0.25) < 1e-15);
	assert_true(lr_schedule_at(&s, 1000000) == lr_schedule_at(&s, 11));
	s.steps_warmup = 30; /* warm-up longer than the run: the peak is never reached, nothing divides by zero */
	assert_true(fabs(lr_schedule_at(&s, 10) - 10.0 / 31) < 1e-15);
	assert_true(lr_schedule_at(&s, 40) == 1);
	s.steps_warmup = 10;
	assert_true(lr_schedule_at(&s, 11) == 1);
	s = (struct lr_schedule){
		.kind = CONFIG_LR_WSD, .lr = 1, .min_lr = 0.25, .steps_total = 10, .steps_warmup = 8, .steps_decay = 5
	};
	assert_true(lr_schedule_at(&s, 9) == 1 &&
		    lr_schedule_at(&s, 10) == 0.625); /* warm-up and decay overlap: less decay */
	assert_true(lr_schedule_at(&s, 11) == 0.25 && lr_schedule_at(&s, 1000) == 0.25);
	s.steps_decay = 0;
	assert_true(lr_schedule_at(&s, 11) == 1);
}

static struct run_config *parsed(char *const *args, int n)
{
	struct run_config *cfg = NULL;
	struct err err = ERR_INIT;

	assert_int_equal(config_parse(&cfg, n, args, &err), 0);
	assert_int_equal(config_resolve(cfg, &(struct config_world){ .world = 1 }, &err), 0);
	return cfg;
}

#define PARSED(...) parsed((char *[]){ "dptrain", "train", __VA_ARGS__ }, \
			   2 + (int)(sizeof((char *[]){ __VA_ARGS__ }) / sizeof(char *)))

static void totals(void **state)
{
	struct run_config *a = PARSED("--data-path", "x", "--epochs", "3", "--lr-warmup-epochs", "0.25");
	struct run_config *b = PARSED("--data-path", "x", "--max-steps", "100");
	struct run_config *c = PARSED("--data-path", "x", "--max-steps", "100", "--epochs", "2");
	struct run_config *e =
		PARSED("--data-path", "x", "--max-steps", "60", "--lr-scheduler", "wsd", "--decay-fraction", "0.25");
	struct run_config *d = PARSED("--synthetic", "--max-steps", "7", "--lr-warmup-epochs", "1");

	(void)state;
	assert_int_equal(lr_schedule_steps_total(a, 10), 30);
	assert_int_equal(lr_schedule_make(a, 10).steps_warmup, 2); /* 2.5 to even */
	assert_int_equal(lr_schedule_steps_total(b, 10), 100);
	assert_int_equal(b->epochs, 0);
	assert_int_equal(lr_schedule_steps_total(c, 10), 20);
	assert_int_equal(lr_schedule_steps_total(c, 1000), 100);
	assert_int_equal(lr_schedule_steps_total(d, INT64_MAX), 7);
	assert_int_equal(lr_schedule_make(d, INT64_MAX).steps_warmup, 0);
	assert_int_equal(lr_schedule_make(e, 100).steps_decay, 15);
	config_free(e);
	config_free(a);
	config_free(b);
	config_free(c);
	config_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_torch),
		cmocka_unit_test(ends_stay),
		cmocka_unit_test(totals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
