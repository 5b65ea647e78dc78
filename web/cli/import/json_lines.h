/* json_lines.h: imports runs that a program writes as lines of JSON, one object with one member each. `python -m
 * dptrack.importers` writes those of Aim, Neptune and W&B; a script can do the same for any other tracker. The first
 *line is {"dptrack_runs": 1}. Times are seconds since 1970; numbers may be the words "NaN", "Infinity" and "-Infinity".
 *
 *	{"run": {"id": 32 hex digits, "experiment": E, "name": N, "start": T}}	begins a run
 *	{"param": [KEY, VALUE]}, {"tag": [KEY, TEXT]}, {"environment": [KEY, TEXT]}
 *	{"code": [NAME, TEXT]}, {"note": TEXT}
 *	{"points": [[KEY, STEP, T, NUMBER], …]}
 *	{"final": [KEY, STEP, T, NUMBER]}	a final value, not a point of a series
 *	{"image": [KEY, STEP, T, {"file": PATH, "width": W, "height": H}]}
 *	{"audio": [KEY, STEP, T, {"file": PATH, "type": "audio/wav"}]}
 *	{"text": [KEY, STEP, T, {"text": MARKDOWN}]}
 *	{"histogram": [KEY, STEP, T, {"values": COUNTS, "bins": EDGES}]}
 *	{"table": [KEY, STEP, T, {"columns": TITLES, "data": ROWS}]}
 *	{"console": [STREAM, T, LINE]}
 *	{"file": [PATH, FROM]}	an artifact: PATH in the run, FROM a file or folder here
 *	{"left_out": TEXT}	an item that cannot be imported
 *	{"deleted": true}
 *	{"end": [STATUS, T]}	"running" if it continues; the run is imported when it ends
 *
 * Points and media are in the order of time, so that a repeated import adds nothing, or only what is new. */
#ifndef DPT_CLI_BRING_JSON_LINES_H
#define DPT_CLI_BRING_JSON_LINES_H

#include <stdio.h>

#include "web/cli/import/importer.h"

bool json_lines_is(const char *path); /* returns true if the file has the first line */

int json_lines_read(struct importer *b, const char *path, struct err *err); /* "-": standard input */
int json_lines_take(struct importer *b, FILE *f, struct err *err);

#endif
