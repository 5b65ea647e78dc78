/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_test.c: how jobs end, and the verdict of each. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/launch/job_result.h"

#define EXITS(code) ((code) << 8) /* the status of waitpid */
#define DIES(number) (number)
#define RANKS 3

static const struct err peer = { .code = ERR_PEER, .text = "rank 1 died" },
	bad = { .code = ERR_USAGE, .text = "no such model" },
			full = { .code = ERR_NOSPC, .text = "disk full" };

static const struct {
	const char *name;
	struct rank_end rank[RANKS];
	int stop_signal;
	bool killed;
	int code, culprit;
	const char *reason; /* part of it */
} cases[] = {
	{ "all is well", { { 10, 0, 1, NULL }, { 11, 0, 2, NULL }, { 12, 0, 3, NULL } }, 0, false, 0, -1, "" },
	{ "asked to end, but all had finished", { { 10, 0, 1, NULL }, { 11, 0, 2, NULL }, { 12, 0, 3, NULL } }, SIGTERM,
	  false, 0, -1, "" },
	{ "all report the same error",
	  { { 10, EXITS(2), 2, &bad }, { 11, EXITS(2), 1, &bad }, { 12, EXITS(2), 3, &bad } }, 0, false, 2, 1,
	  "no such model" },
	{ "one fails, the others notice",
	  { { 10, EXITS(1), 1, &peer }, { 11, EXITS(1), 3, &full }, { 12, EXITS(1), 2, &peer } }, 0, false, 1, 1,
	  "rank 1: disk full" },
	{ "one dies, the others notice first",
	  { { 10, EXITS(1), 1, &peer }, { 11, DIES(SIGSEGV), 2, NULL }, { 12, EXITS(1), 1, &peer } }, 0, false, 1, 1,
	  "signal 11" },
	{ "one dies, the launcher kills the rest",
	  { { 10, DIES(SIGKILL), 9, NULL }, { 11, EXITS(7), 5, NULL }, { 12, DIES(SIGKILL), 9, NULL } }, 0, true, 1, 1,
	  "exit code 7" },
	{ "killed from outside", { { 10, DIES(SIGKILL), 5, NULL }, { 11, 0, 1, NULL }, { 12, EXITS(1), 6, &peer } }, 0,
	  false, 1, 0, "dmesg" },
	{ "a file is cut", { { 10, 0, 1, NULL }, { 11, DIES(SIGBUS), 5, NULL }, { 12, EXITS(1), 6, &peer } }, 0, false,
	  1, 1, "was truncated" },
	{ "preempted", { { 10, EXITS(75), 1, NULL }, { 11, EXITS(75), 1, NULL }, { 12, EXITS(75), 1, NULL } }, SIGUSR1,
	  false, 75, -1, "after a checkpoint" },
	{ "one rank without a checkpoint",
	  { { 10, EXITS(75), 1, NULL }, { 11, EXITS(1), 1, NULL }, { 12, EXITS(75), 1, NULL } }, SIGTERM, false, 1, -1,
	  "signal 15" },
	{ "interrupted", { { 10, EXITS(130), 1, NULL }, { 11, EXITS(130), 1, NULL }, { 12, EXITS(130), 1, NULL } },
	  SIGINT, false, 130, -1, "signal 2" },
	{ "insisted on",
	  { { 10, DIES(SIGKILL), 2, NULL }, { 11, EXITS(130), 1, NULL }, { 12, DIES(SIGKILL), 2, NULL } }, SIGINT, true,
	  130, -1, "signal 2" },
	{ "asked to end, one noticed that another ended",
	  { { 10, EXITS(130), 1, NULL }, { 11, EXITS(1), 1, &peer }, { 12, EXITS(130), 1, NULL } }, SIGINT, false, 130,
	  -1, "signal 2" },
	{ "asked to end, but one had failed",
	  { { 10, EXITS(1), 2, &peer }, { 11, EXITS(1), 1, &full }, { 12, EXITS(1), 2, &peer } }, SIGTERM, false, 1, 1,
	  "rank 1: disk full" },
	{ "asked to end, but one crashed",
	  { { 10, EXITS(1), 2, &peer }, { 11, DIES(SIGSEGV), 1, NULL }, { 12, EXITS(1), 2, &peer } }, SIGTERM, false, 1,
	  1, "signal 11" },
};

static void endings(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct job_end j = { cases[i].rank, 0, RANKS, cases[i].stop_signal, cases[i].killed, 0 };
		struct job_result v;

		for (int r = 0; r < RANKS; r++) /* as the launcher records it */
			if (job_result_failed(&j, r) && (!j.failed_s || j.rank[r].at_s < j.failed_s))
				j.failed_s = j.rank[r].at_s;
		v = job_result_of(&j);
		if (v.code != cases[i].code || v.culprit != cases[i].culprit || !strstr(v.reason, cases[i].reason))
			fail_msg("%s: code %d, rank %d: %s", cases[i].name, v.code, v.culprit, v.reason);
		assert_int_equal(!v.reason[0], !cases[i].reason[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(endings) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
