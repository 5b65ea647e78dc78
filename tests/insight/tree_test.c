/* SPDX-License-Identifier: Apache-2.0 */
/* tree_test.c: a clear case of each leaf, and healthy runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tracker/insight/bottleneck_tree.h"
#include "tracker/insight/run_diagnosis.h"

enum { STEPS = 100 };

struct stage {
	struct step_time_step steps[STEPS];
	struct bottleneck_rank ranks[5];
	struct bottleneck_run run;
};

/* Makes steps of 100 ms on 8 cores, plus `seconds` in a phase. */
static void make(struct stage *s, int phase, double seconds)
{
	*s = (struct stage){ .run = bottleneck_unknown() };
	for (int i = 0; i < STEPS; i++) {
		struct step_time_step *p = &s->steps[i];

		*p = (struct step_time_step){ .step = i + 1, .samples = 8 };
		p->phase[STEP_TIME_forward] = 0.03;
		p->phase[STEP_TIME_backward] = 0.06 + 0.001 * (i * 7 % 11);
		p->phase[STEP_TIME_optimizer] = 0.01;
		p->phase[phase] += seconds * (1 + 0.1 * (i * 3 % 5 - 2));
		for (int k = 0; k < STEP_TIME_PHASES; k++)
			p->seconds += p->phase[k];
	}
	s->run.steps = s->steps;
	s->run.n = STEPS;
	s->run.cores = 8;
	s->run.threads = 4;
	s->run.local_world = 1;
	s->run.batch_size = 8;
	s->run.workers = 2;
	s->run.parameters = 1e7;
	s->run.bucket_cap_mb = 25;
}

/* Two or more equal ranks. */
static void make_ranks(struct stage *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		s->ranks[i] = (struct bottleneck_rank){ .rank = (int)i, .seconds = s->steps[0].seconds };
		memcpy(s->ranks[i].phase, s->steps[0].phase, sizeof(s->ranks[i].phase));
	}
	s->run.ranks = s->ranks;
	s->run.n_ranks = n;
	s->run.local_world = (double)n;
	s->run.threads = 2;
}

/* Returns false where threads wait for each other, or another job causes the wait. */
static bool promises(const struct bottleneck_run *run, const char *leaf)
{
	const bool cores = !strcmp(leaf, "threads") || !strcmp(leaf, "cpu_taken") || !strcmp(leaf, "crowding") ||
		!strcmp(leaf, "cpu_quota");

	return strcmp(leaf, "small_batch") && !(cores && run->threads > 1);
}

static void judge(const struct stage *s, const char *verdict, double share)
{
	struct bottleneck_report r;
	struct err err = ERR_INIT;

	assert_int_equal(bottleneck_judge(&s->run, &r, &err), 0);
	if (strcmp(r.verdict, verdict))
		fail_msg("verdict %s, want %s: %s", r.verdict, verdict, r.n ? r.findings[0].evidence : r.bound);
	if (!share)
		return;
	if (!(fabs(r.findings[0].share - share) < 0.03))
		fail_msg("%s: share %.3f, want %.3f", verdict, r.findings[0].share, share);
	if (promises(&s->run, verdict))
		assert_true(fabs(r.findings[0].gain - 1 / (1 - r.findings[0].share)) < 1e-9);
	else
		assert_true(isnan(r.findings[0].gain));
	if (isnan(s->run.eval_steps)) /* evaluation after each epoch: no value of the flag makes it rarer */
		assert_null(strstr(r.findings[0].action, "--eval-steps"));
	assert_true(r.findings[0].evidence[0] && r.findings[0].action[0] && r.findings[0].usual[0]);
	for (size_t i = 1; i < r.n; i++)
		assert_true(r.findings[i].share <= r.findings[i - 1].share);
}

static void loader(void **state)
{
	struct stage s;

	(void)state;
	make(&s, STEP_TIME_data_wait, 0.1);
	judge(&s, "loader", 0.49); /* no series distinguishes the two */
	s.run.load = 0.2;
	s.run.load_cpu = 0.01;
	judge(&s, "disk", 0.49);
	s.run.load_cpu = 0.19;
	judge(&s, "decode", 0.49);
	s.run.load_cpu = 0.08; /* off the cores, because they are busy: no disk is slow */
	s.run.run_wait = 0.45;
	s.run.taken = 0.4;
	judge(&s, "decode", 0.49);
	s.run.run_wait = NAN;
	s.run.load_cpu = 0.01;
	s.run.memory_wait = 0.1; /* evicted pages are read again */
	s.run.major_faults = 8;
	judge(&s, "memory", 0.49);
	s.run.load_cpu = 0.11; /* reading them back uses a core as well */
	judge(&s, "memory", 0.49);
	s.run.load_cpu = 0.18;
	judge(&s, "decode", 0.49);
	s.run.load_cpu = 0.01;
	s.run.memory_wait = 0; /* a file is read for the first time */
	judge(&s, "disk", 0.49);
	make(&s, STEP_TIME_h2d, 0.05);
	judge(&s, "copy", 0.33);
}

static double gain_of(const struct stage *s, const char *verdict)
{
	struct bottleneck_report r;
	struct err err = ERR_INIT;

	assert_int_equal(bottleneck_judge(&s->run, &r, &err), 0);
	assert_string_equal(r.verdict, verdict);
	return r.findings[0].gain;
}

/* Steps without waits show the indirect cost of waits; the promised gain includes it. */
static void cooling(void **state)
{
	struct bottleneck_report r;
	struct err err = ERR_INIT;
	double seconds = 0, apart;
	struct stage s;

	(void)state;
	make(&s, STEP_TIME_data_wait, 0.1);
	s.run.load = 0.2;
	s.run.load_cpu = 0.01;
	for (int i = 0; i < STEPS; i++)
		seconds += s.steps[i].seconds / STEPS;
	apart = gain_of(&s, "disk");
	s.run.cached = 0.095; /* out of 105 ms */
	assert_true(fabs(gain_of(&s, "disk") - seconds / 0.095) < 0.01);
	assert_int_equal(bottleneck_judge(&s.run, &r, &err), 0);
	assert_non_null(strstr(r.findings[0].evidence, "caches"));
	s.run.run_wait = 0.04; /* waiting for a core is not an effect of caches */
	assert_true(fabs(gain_of(&s, "disk") - seconds / (0.095 + 0.04 * (seconds - 0.1))) < 0.01);
	s.run.run_wait = NAN;
	s.run.cached = 0.04; /* at most half of the waits */
	assert_true(fabs(gain_of(&s, "disk") - seconds / (seconds - 0.15)) < 0.02);
	s.run.cached = 0.12; /* a machine that became slower proves nothing */
	assert_true(fabs(gain_of(&s, "disk") - apart) < 1e-9);
	for (int i = 0; i < STEPS; i++) /* each of two pauses gets its part */
		s.steps[i].phase[STEP_TIME_h2d] = 0.05;
	for (int i = 0; i < STEPS; i++)
		s.steps[i].seconds += 0.05;
	s.run.cached = 0.09;
	seconds += 0.05;
	assert_true(fabs(gain_of(&s, "disk") - seconds / (seconds - 0.1 - 0.015 * 2 / 3)) < 0.02);
}

/* If the last core decodes, computing would also be faster without that, by an unknown amount. */
static void decoding(void **state)
{
	struct bottleneck_report r;
	struct err err = ERR_INIT;
	struct stage s;

	(void)state;
	make(&s, STEP_TIME_data_wait, 0.1);
	s.run.load = 0.2;
	s.run.load_cpu = 0.19;
	judge(&s, "decode", 0.49);
	s.run.threads = 7; /* and 0.95 that load, of 8 cores */
	assert_int_equal(bottleneck_judge(&s.run, &r, &err), 0);
	assert_string_equal(r.verdict, "decode");
	assert_true(isnan(r.findings[0].gain));
	assert_non_null(strstr(r.sentence, "--try measures"));
	s.run.workers = NAN; /* -j auto */
	assert_int_equal(bottleneck_judge(&s.run, &r, &err), 0);
	assert_true(isnan(r.findings[0].gain));
	s.run.workers = 0; /* sequential */
	assert_int_equal(bottleneck_judge(&s.run, &r, &err), 0);
	assert_true(fabs(r.findings[0].gain - 1 / (1 - r.findings[0].share)) < 1e-9);
}

static void communication(void **state)
{
	struct bottleneck_report r;
	struct err err = ERR_INIT;
	struct stage s;

	(void)state;
	make(&s, STEP_TIME_comm_exposed, 0.1);
	judge(&s, "healthy", 0); /* a single rank does not wait */
	make_ranks(&s, 2);
	judge(&s, "communication", 0.49);
	s.run.comm_total = 0.12; /* 40 MB in 120 ms */
	judge(&s, "link", 0.49);
	s.run.comm_total = 0.02;
	judge(&s, "small_batch", 0.54); /* including the update */
	s.run.bucket_cap_mb = 1000;
	s.run.comm_total = 0.1;
	judge(&s, "bucket", 0.32); /* the length of the backward pass, 65 ms of 200 */
	s.run.comm_total = 0.06;
	judge(&s, "bucket", 0.26); /* all but the last bucket */
	s.run.comm_total = 0.11;
	judge(&s, "bucket", 0.27); /* 10 ms of it are hidden by now */
	s.run.comm_total = 0.13;
	judge(&s, "link", 0.49); /* 30 ms: little is left to overlap with */
	s.run.comm_total = 0.1;
	assert_int_equal(bottleneck_judge(&s.run, &r, &err), 0);
	assert_string_equal(r.findings[0].flags, "--bucket-cap-mb 4.8"); /* an eighth of the total */
	s.run.parameters = 1e9;
	assert_int_equal(bottleneck_judge(&s.run, &r, &err), 0);
	assert_string_equal(r.findings[0].leaf, "small_batch"); /* now there are several buckets */
	s.run.bucket_cap_mb = 5000;
	assert_int_equal(bottleneck_judge(&s.run, &r, &err), 0);
	assert_string_equal(r.findings[0].flags, "--bucket-cap-mb 25");
}

/* Steps of 105 ms that are mostly fixed costs: operator calls, the update. */
static void fixed(void **state)
{
	struct stage s;

	(void)state;
	make(&s, STEP_TIME_other, 0);
	s.run.nodes = 3000; /* 4 ms, and 10 of the update */
	judge(&s, "healthy", 0);
	s.run.nodes = 40000; /* 52 ms, and 10 of the update */
	judge(&s, "small_batch", 0.59);
	make(&s, STEP_TIME_optimizer, 0.1);
	judge(&s, "small_batch", 0.54);
	make(&s, STEP_TIME_comm_exposed, 0.1);
	make_ranks(&s, 2);
	s.run.comm_total = 0.02;
	s.run.nodes = 40000;
	judge(&s, "small_batch", 0.80);
	s.run.comm_total = 0.12; /* a slow link is slow whatever the batch */
	judge(&s, "link", 0.49);
}

static void ranks(void **state)
{
	struct stage s;
	struct bottleneck_report r;

	(void)state;
	make(&s, STEP_TIME_forward, 0.05);
	make_ranks(&s, 4);
	for (int i = 0; i < 4; i++) {
		if (i == 2)
			continue;
		s.ranks[i].phase[STEP_TIME_forward] -= 0.05;
		s.ranks[i].phase[STEP_TIME_comm_exposed] += 0.05;
	}
	judge(&s, "straggler", 0.32);
	assert_int_equal(bottleneck_judge(&s.run, &r, NULL), 0);
	assert_non_null(strstr(r.findings[0].evidence, "rank 2 "));
	assert_non_null(strstr(r.findings[0].evidence, "in forward"));
}

/* The largest of five own times is compared with the third, as on the page (tests/web/pure_test.mjs). */
static void usual_rank(void **state)
{
	static const double more[] = { 0, 0, 0.03, 0.06, 0.07 };
	struct bottleneck_report r;
	struct stage s;

	(void)state;
	make(&s, STEP_TIME_forward, 0.05);
	make_ranks(&s, 5);
	for (int i = 0; i < 5; i++) {
		const double own = s.ranks[i].seconds - s.ranks[i].phase[STEP_TIME_comm_exposed];

		s.ranks[i].phase[STEP_TIME_comm_exposed] = s.ranks[i].seconds - own * (1 + more[i]) / 2;
	}
	assert_int_equal(bottleneck_judge(&s.run, &r, NULL), 0);
	for (size_t i = 0; i < r.n; i++)
		assert_string_not_equal(r.findings[i].leaf, "straggler");
}

/* Findings about other users of cores: none on a hypervisor that takes none, and never fewer than one thread. */
static void others(void **state)
{
	struct bottleneck_report r;
	struct err err = ERR_INIT;
	struct stage s;

	(void)state;
	make(&s, STEP_TIME_other, 0);
	s.run.run_wait = 0.3;
	s.run.taken = 0.25;
	s.run.steal = 0;
	assert_int_equal(bottleneck_judge(&s.run, &r, &err), 0);
	assert_null(strstr(r.findings[0].evidence, "hypervisor"));
	assert_non_null(strstr(r.findings[0].action, "--threads 3"));
	s.run.steal = 0.1;
	s.run.threads = 1;
	assert_int_equal(bottleneck_judge(&s.run, &r, &err), 0);
	assert_non_null(strstr(r.findings[0].evidence, ", the hypervisor 10 %"));
	assert_null(strstr(r.findings[0].action, "--threads"));
}

static void cpu(void **state)
{
	struct stage s;

	(void)state;
	make(&s, STEP_TIME_other, 0);
	s.run.run_wait = 0.3;
	s.run.taken = s.run.steal = s.run.throttled = 0;
	s.run.ready = 4;
	judge(&s, "crowding", 0.3);
	s.run.taken = 0.25;
	judge(&s, "cpu_taken", 0.3);
	s.run.taken = 0.05; /* 0.4 cores, while 1.2 are waited for */
	judge(&s, "crowding", 0.3);
	s.run.threads = 1;
	s.run.taken = 0.25;
	judge(&s, "cpu_taken", 0.3);
	s.run.threads = 16;
	judge(&s, "threads", 0.3);
	s.run.throttled = 0.4;
	judge(&s, "cpu_quota", 0.4);
	s.run.threads = 1;
	judge(&s, "cpu_quota", 0.4);
	s.run.threads = 4;
	s.run.throttled = 0.05; /* a little, while others use the cores */
	judge(&s, "cpu_taken", 0.3);
	make(&s, STEP_TIME_other, 0);
	s.run.clock = 1.5;
	judge(&s, "clock", 1 / 3.0);
	make(&s, STEP_TIME_other, 0);
	s.run.memory_wait = 0.5;
	judge(&s, "memory", 0.5);
}

static void between(void **state)
{
	struct stage s;

	(void)state;
	make(&s, STEP_TIME_between, 0.1);
	judge(&s, "between", 0.49);
	s.run.evaluation = 0.1;
	judge(&s, "evaluation", 0.49);
	make(&s, STEP_TIME_other, 0.1);
	s.run.checkpoint = 0.1;
	s.run.saving_cpu = 0.05; /* on a separate core */
	judge(&s, "checkpoint", 0.49);
	s.run.threads = 8;
	judge(&s, "checkpoint", 0.73);
	s.run.threads = 7;
	s.run.load = s.run.load_cpu = 0.18; /* all three want 8.12 cores */
	judge(&s, "checkpoint", 0.61);
}

/* Little of everything, and flags that cost nothing here. */
static void healthy(void **state)
{
	struct stage s;
	struct bottleneck_report r;
	struct err err = ERR_INIT;

	(void)state;
	make(&s, STEP_TIME_data_wait, 0.004);
	make_ranks(&s, 2);
	s.run.load = 0.2;
	s.run.load_cpu = 0.01;
	s.run.comm_total = 0.05;
	s.run.bucket_cap_mb = 1000;
	s.run.evaluation = s.run.checkpoint = 0.003;
	s.run.run_wait = s.run.taken = s.run.throttled = 0.01;
	s.run.clock = 1.06;
	judge(&s, "healthy", 0);
	s.run.threads = 16; /* no series shows that they wait */
	s.run.run_wait = NAN;
	judge(&s, "healthy", 0);
	s.run.n = 0;
	assert_int_equal(bottleneck_judge(&s.run, &r, &err), ERR_USAGE);
}

/* The slowdown that the diagnosis derives from samples of the loop, in us. */
static double slowdown_of(const double *us, int n)
{
	struct bottleneck_run run = bottleneck_unknown();
	struct err err = ERR_INIT;
	struct system_stats *v;

	assert_int_equal(system_stats_new(&v, 1, &err), 0);
	for (int i = 0; i < n; i++)
		assert_int_equal(system_stats_add(v,
						  &(struct system_stats_point){ system_stats_series("system/loop_us"),
										0, i, i, us[i] },
						  &err),
				 0);
	system_stats_fill(v, 0, 1, &run);
	system_stats_free(v);
	return run.clock;
}

static void clock_of_samples(void **state)
{
	double us[21];

	(void)state;
	/* half of the time at a third of the clock: a third of the time is lost */
	for (int i = 0; i < 21; i++)
		us[i] = i > 10 ? 90 : 30;
	assert_true(fabs(slowdown_of(us, 21) - 1.5) < 0.05);
	assert_true(fabs(slowdown_of(us, 3) - 1) < 1e-9);
	/* a boost of two samples is not a sustainable clock */
	for (int i = 0; i < 21; i++)
		us[i] = i < 2 ? 13.3 : 14;
	assert_true(fabs(slowdown_of(us, 21) - 1) < 0.01);
}

/* The action and the flags of the first finding. */
static void advises(const struct stage *s, const char *action, const char *flags)
{
	struct bottleneck_report r;
	struct err err = ERR_INIT;

	assert_int_equal(bottleneck_judge(&s->run, &r, &err), 0);
	if (strncmp(r.findings[0].action, action, strlen(action)) || strcmp(r.findings[0].flags, flags))
		fail_msg("%s: %s [%s], want %s [%s]", r.verdict, r.findings[0].action, r.findings[0].flags, action,
			 flags);
}

/* The run does not follow an action already. */
static void own_settings(void **state)
{
	struct stage s;

	(void)state;
	make(&s, STEP_TIME_data_wait, 0.1);
	s.run.load = 0.2;
	s.run.load_cpu = 0.01;
	advises(&s, "-j auto; put the data on a local disk", "-j auto");
	s.run.workers = NAN;
	s.run.workers_auto = true;
	advises(&s, "put the data on a local disk", "");
	make(&s, STEP_TIME_other, 0);
	s.run.run_wait = 0.3;
	s.run.taken = s.run.steal = 0;
	s.run.ready = 4;
	s.run.workers = NAN;
	s.run.workers_auto = true;
	advises(&s, "fewer loader threads", "");
	make(&s, STEP_TIME_h2d, 0.05); /* inputs are copied in f32 whatever the precision */
	advises(&s, "fewer bytes a sample: a smaller --image-size", "");
	make(&s, STEP_TIME_comm_exposed, 0.1);
	make_ranks(&s, 2);
	s.run.comm_total = 0.12;
	s.run.grad_accum_steps = 4;
	advises(&s, "a faster link between the ranks; --grad-accum-steps 16 ", "--grad-accum-steps 16");
	make(&s, STEP_TIME_optimizer, 0.1); /* one rank sends nothing */
	advises(&s, "-b 32: the update", "-b 32");
	make(&s, STEP_TIME_other, 0);
	s.run.memory_wait = 0.5;
	advises(&s, "--activation-checkpointing full", "");
	s.run.recomputes_all = true;
	advises(&s, "a smaller -b", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loader), cmocka_unit_test(cooling), cmocka_unit_test(communication),
		cmocka_unit_test(ranks),
		cmocka_unit_test(usual_rank),
		cmocka_unit_test(cpu),	  cmocka_unit_test(others),	   cmocka_unit_test(between),
		cmocka_unit_test(healthy), cmocka_unit_test(fixed),	   cmocka_unit_test(decoding),
		cmocka_unit_test(clock_of_samples), cmocka_unit_test(own_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
