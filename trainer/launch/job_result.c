/* SPDX-License-Identifier: Apache-2.0 */
/* job_result.c: the culprit, the exit code and the reason. */
#include "trainer/launch/job_result.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "trainer/launch/rank_context.h"

/* What a signal usually means that no person sent. */
static const struct {
	int number;
	const char *hint;
} hints[] = {
	{ SIGKILL, "; unless a person sent it, memory most likely ran out: see dmesg" },
	{ SIGBUS, "; a file of the data set was truncated while it was read, or memory ran out" },
	{ SIGXCPU, "; its limit of processor time is used up (ulimit -t)" },
};

/* A rank that sees another one end as requested, a moment before its own turn, has not failed either. */
bool job_result_failed(const struct job_end *j, int rank)
{
	const struct rank_end *r = &j->rank[rank];
	bool asked = j->stop_signal && (j->killed || WIFEXITED(r->status)) && (!r->words || r->words->code == ERR_PEER);

	return r->status != 0 && !asked;
}

static enum job_result_blame classify_blame(const struct job_end *j, const struct rank_end *r)
{
	bool late_kill = j->killed && WIFSIGNALED(r->status) && WTERMSIG(r->status) == SIGKILL && r->at_s > j->failed_s;

	if (!r->words && late_kill)
		return JOB_RESULT_KILLED;
	return r->words && r->words->code == ERR_PEER ? JOB_RESULT_TOLD : JOB_RESULT_OWN;
}

/* Returns the first in time of the ranks with the most blame; -1: no rank failed. */
static int find_culprit(const struct job_end *j)
{
	int first = -1;

	for (int i = 0; i < j->n; i++) {
		const struct rank_end *r = &j->rank[i], *f = first < 0 ? NULL : &j->rank[first];
		int more = f ? (int)classify_blame(j, r) - (int)classify_blame(j, f) : 1;

		if (job_result_failed(j, i) && (more > 0 || (more == 0 && r->at_s < f->at_s)))
			first = i;
	}
	return first;
}

static bool all_ranks_report(const struct job_end *j, const struct err *e)
{
	for (int i = 0; i < j->n; i++)
		if (!j->rank[i].words || strcmp(j->rank[i].words->text, e->text))
			return false;
	return true;
}

static const char *signal_hint(int number)
{
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
		if (hints[i].number == number)
			return hints[i].hint;
	return "";
}

static void describe_rank_end(const struct job_end *j, int rank, char *text, size_t n)
{
	const struct rank_end *r = &j->rank[rank];
	int number = WIFSIGNALED(r->status) ? WTERMSIG(r->status) : 0;

	if (r->words && all_ranks_report(j, r->words))
		snprintf(text, n, "%s", r->words->text);
	else if (r->words)
		snprintf(text, n, "rank %d: %s", j->first + rank, r->words->text);
	else if (number)
		snprintf(text, n, "rank %d (process %d) was ended by signal %d (%s)%s", j->first + rank, r->pid, number,
			 strsignal(number), signal_hint(number));
	else
		snprintf(text, n, "rank %d (process %d) ended with exit code %d", j->first + rank, r->pid,
			 WEXITSTATUS(r->status));
}

/* The result of a job that ended on request. */
static struct job_result describe_stop(const struct job_end *j)
{
	struct job_result v = { .code = RANK_CONTEXT_PREEMPTED, .culprit = -1 };

	for (int i = 0; i < j->n; i++)
		if (!WIFEXITED(j->rank[i].status) || WEXITSTATUS(j->rank[i].status) != RANK_CONTEXT_PREEMPTED)
			v.code = j->stop_signal == SIGINT ? 130 : 1;
	snprintf(v.reason, sizeof(v.reason), "stopped by signal %d (%s)%s", j->stop_signal, strsignal(j->stop_signal),
		 v.code == RANK_CONTEXT_PREEMPTED ? " after a checkpoint" : "");
	return v;
}

struct job_result job_result_of(const struct job_end *j)
{
	struct job_result v = { .culprit = find_culprit(j) };
	bool all_well = true;

	for (int i = 0; i < j->n; i++)
		all_well = all_well && !j->rank[i].status;
	if (all_well)
		return v;
	if (v.culprit < 0)
		return describe_stop(j);
	v.blame = (int)classify_blame(j, &j->rank[v.culprit]);
	v.code = WIFEXITED(j->rank[v.culprit].status) ? WEXITSTATUS(j->rank[v.culprit].status) : 1;
	v.code = v.code == 2 || v.code == 130 ? v.code : 1;
	describe_rank_end(j, v.culprit, v.reason, sizeof(v.reason));
	return v;
}
