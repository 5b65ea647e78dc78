/* SPDX-License-Identifier: Apache-2.0 */
/* record.c: drives libdptrack by a script on stdin, so that tests in other languages can record runs. Command-line
 * options are those of struct dptrack_run_opts (key=value). Prints "run <id> <folder> <segment>" once it is open, each
 * warning as "warn <text>", and at the end "closed <code> <dropped before closing>".
 *
 *	log STEP KEY VALUE            rank RANK STEP KEY VALUE       at RANK STEP KEY VALUE TIME
 *	many STEP KEY VALUE KEY VALUE
 *	burst N KEY FIRST_STEP        param|tag|env|segparam KEY VALUE     f64|i64|bool KEY VALUE
 *	file NAME PATH
 *	note TEXT                     status CODE REASON             sleep S    flush S    close CODE    abort
 * fork */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/dptrack.h"

static void say(void *user, const char *text)
{
	(void)user;
	printf("warn %s\n", text);
	fflush(stdout);
}

static void set_option(struct dptrack_run_opts *o, const char *name, const char *value)
{
	const struct {
		const char *name;
		const char **text;
	} texts[] = {
		{ "runs_dir", &o->runs_dir }, { "experiment", &o->experiment }, { "run_name", &o->run_name },
		{ "run_id", &o->run_id },     { "url", &o->url },               { "token", &o->token },
	};
	long number = strtol(value, NULL, 10);

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!strcmp(name, texts[i].name))
			*texts[i].text = value;
	if (!strcmp(name, "rank"))
		o->rank = (int)number;
	else if (!strcmp(name, "world_size"))
		o->world_size = (int)number;
	else if (!strcmp(name, "launcher"))
		o->role = DPTRACK_LAUNCHER;
	else if (!strcmp(name, "reopen"))
		o->reopen = number != 0;
	else if (!strcmp(name, "segment"))
		o->segment = (int)number;
	else if (!strcmp(name, "first_step"))
		o->first_step = number;
	else if (!strcmp(name, "first_epoch"))
		o->first_epoch = number;
	else if (!strcmp(name, "close_wait_s"))
		o->close_wait_s = strtod(value, NULL);
}

static void burst(struct dptrack_run *run, long n, const char *key, long first)
{
	for (long i = 0; i < n; i++)
		dptrack_log(run, first + i, key, (double)(first + i) * 0.1);
}

/* A command with up to five words; the last word keeps its blanks. */
static void do_points(struct dptrack_run *run, const char *verb, char *rest)
{
	char *word[5] = { "", "", "", "", "" };

	for (int i = 0; i < 5 && rest; i++)
		word[i] = strsep(&rest, " ");
	if (!strcmp(verb, "log"))
		dptrack_log(run, strtoll(word[0], NULL, 10), word[1], strtod(word[2], NULL));
	else if (!strcmp(verb, "rank"))
		dptrack_log_rank(run, (int)strtol(word[0], NULL, 10), strtoll(word[1], NULL, 10), word[2],
				 strtod(word[3], NULL));
	else if (!strcmp(verb, "at"))
		dptrack_log_at(run, (int)strtol(word[0], NULL, 10), strtoll(word[1], NULL, 10), word[2],
			       strtod(word[3], NULL), strtod(word[4], NULL));
	else if (!strcmp(verb, "many"))
		dptrack_log_many(run, strtoll(word[0], NULL, 10), 2, (const char *[]){ word[1], word[3] },
				 (double[]){ strtod(word[2], NULL), strtod(word[4], NULL) });
	else if (!strcmp(verb, "burst"))
		burst(run, strtol(word[0], NULL, 10), word[1], strtol(word[2], NULL, 10));
}

static void do_records(struct dptrack_run *run, const char *verb, char *rest)
{
	char *value = rest, *key = strsep(&value, " ");

	if (!value)
		value = "";
	if (!strcmp(verb, "param"))
		dptrack_param(run, key, value);
	else if (!strcmp(verb, "segparam"))
		dptrack_segment_param(run, key, value);
	else if (!strcmp(verb, "f64"))
		dptrack_param_f64(run, key, strtod(value, NULL));
	else if (!strcmp(verb, "i64"))
		dptrack_param_i64(run, key, strtoll(value, NULL, 10));
	else if (!strcmp(verb, "bool"))
		dptrack_param_bool(run, key, value[0] == '1');
	else if (!strcmp(verb, "tag"))
		dptrack_tag(run, key, value);
	else if (!strcmp(verb, "file"))
		printf("file %d\n", dptrack_file(run, key, value));
	else if (!strcmp(verb, "env"))
		dptrack_environment(run, key, value);
	else if (!strcmp(verb, "status"))
		dptrack_set_status(run, (enum dptrack_status)strtol(key, NULL, 10), value);
}

/* A child process that uses the run anyway; every call must be refused. */
static void do_fork(struct dptrack_run *run)
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit(dptrack_log(run, 1, "child", 1) == DPTRACK_FORKED && dptrack_flush(run, 1) == DPTRACK_FORKED &&
				      dptrack_param(run, "child", "x") == DPTRACK_FORKED &&
				      dptrack_run_close(run, DPTRACK_FAILED) == DPTRACK_FORKED
			      ? 0
			      : 1);
	waitpid(child, &status, 0);
	printf("forked %d\n", status);
}

/* Returns false at the end; *ret_status is then the status to close with, or -1 to leave the run open. */
static bool do_line(struct dptrack_run *run, char *line, int *ret_status)
{
	char *rest = line, *verb = strsep(&rest, " ");

	if (!rest)
		rest = line + strlen(line);
	if (!strcmp(verb, "close") || !strcmp(verb, "abort")) {
		*ret_status = verb[0] == 'a' ? -1 : (int)strtol(rest, NULL, 10);
		return false;
	}
	if (!strcmp(verb, "sleep"))
		clock_sleep_s(strtod(rest, NULL));
	else if (!strcmp(verb, "flush"))
		printf("flushed %d\n", dptrack_flush(run, strtod(rest, NULL)));
	else if (!strcmp(verb, "fork"))
		do_fork(run);
	else if (!strcmp(verb, "note"))
		dptrack_note(run, rest);
	else if (strstr("log rank at many burst", verb))
		do_points(run, verb, rest);
	else
		do_records(run, verb, rest);
	fflush(stdout);
	return true;
}

int main(int argc, char **argv)
{
	struct dptrack_run_opts opts = { .warn = say };
	struct dptrack_error error;
	struct dptrack_run *run;
	char line[65536];
	unsigned long long dropped;
	int status = DPTRACK_RUNNING, rc;

	for (int i = 1; i < argc; i++) {
		char *value = argv[i], *name = strsep(&value, "=");

		set_option(&opts, name, value ? value : "");
	}
	rc = dptrack_run_open(&run, &opts, &error);
	if (rc) {
		printf("error %d %s\n", rc, error.text);
		return 1;
	}
	printf("run %s %s %d\n", dptrack_run_id(run), dptrack_run_dir(run), dptrack_run_segment(run));
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (!do_line(run, line, &status))
			break;
	}
	if (status < 0)
		_exit(9);
	dropped = dptrack_dropped(run);
	rc = dptrack_run_close(run, (enum dptrack_status)status);
	printf("closed %d %llu\n", rc, dropped);
	return 0;
}
