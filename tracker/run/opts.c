/* opts.c: checks options. Names are text without control characters; numbers are in the range of a journal. */
#include "tracker/run/opts.h"

#include <string.h>

#include "tracker/base/utf8.h"
#include "tracker/event/limits.h"
#include "tracker/run/run_names.h"

static int check_display_name(const char *what, const char *name, struct err *err)
{
	size_t chars;

	if (!name)
		return 0;
	if (!utf8_valid(name, strlen(name)))
		return err_set(err, ERR_USAGE, "%s is not valid UTF-8", what);
	for (const char *p = name; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return err_set(err, ERR_USAGE, "%s contains a control character", what);
	chars = utf8_chars(name);
	if (!chars || chars > LIMIT_name_chars)
		return err_set(err, ERR_USAGE, "%s has %zu characters; 1 to %d are allowed", what, chars,
			       LIMIT_name_chars);
	return 0;
}

int opts_check(const struct dptrack_run_opts *o, struct err *err)
{
	int rc = check_display_name("the experiment's name", o->experiment, err);

	if (!rc)
		rc = check_display_name("the run's name", o->run_name, err);
	if (rc)
		return rc;
	if (o->run_id && !names_is_id(o->run_id))
		return err_set(err, ERR_USAGE, "run id \"%.64s\" is not 32 lower-case hex digits", o->run_id);
	if (o->reopen && !o->run_id)
		return err_set(err, ERR_USAGE, "run_id is required to reopen a run");
	if (o->rank < 0 || o->rank > LIMIT_rank || o->world_size < 0 || o->world_size > LIMIT_rank + 1)
		return err_set(err, ERR_USAGE, "rank %d of %d is out of range", o->rank, o->world_size);
	if (o->segment < 0 || o->segment > LIMIT_segment)
		return err_set(err, ERR_USAGE, "segment %d is out of range", o->segment);
	return 0;
}

const char *opts_runs_dir(const struct dptrack_run_opts *o)
{
	return o->runs_dir ? o->runs_dir : "runs";
}

const char *opts_experiment(const struct dptrack_run_opts *o)
{
	return o->experiment ? o->experiment : "default";
}
