/* json_lines.h: runs that a program tells as lines of JSON, one object with one member each. `python -m dptrack.importers`
 * tells Aim's, Neptune's and W&B's so, a script of yours any other tracker's. The first line is {"dptrack_runs": 1}.
 * Times are seconds since 1970; numbers may be the words "NaN", "Infinity" and "-Infinity".
 *
 *	{"run": {"id": 32 hex digits, "experiment": E, "name": N, "start": T}}	begins a run
 *	{"param": [KEY, VALUE]}, {"tag": [KEY, TEXT]}, {"environment": [KEY, TEXT]}
 *	{"code": [NAME, TEXT]}, {"note": TEXT}
 *	{"points": [[KEY, STEP, T, NUMBER], …]}
 *	{"final": [KEY, STEP, T, NUMBER]}	what a run tells once, when it has ended
 *	{"image": [KEY, STEP, T, {"file": PATH, "width": W, "height": H}]}
 *	{"audio": [KEY, STEP, T, {"file": PATH, "type": "audio/wav"}]}
 *	{"text": [KEY, STEP, T, {"text": MARKDOWN}]}
 *	{"histogram": [KEY, STEP, T, {"values": COUNTS, "bins": EDGES}]}
 *	{"table": [KEY, STEP, T, {"columns": TITLES, "data": ROWS}]}
 *	{"console": [STREAM, T, LINE]}
 *	{"file": [PATH, FROM]}	an artifact: PATH in the run, FROM here, a file or a folder
 *	{"left_out": TEXT}	what cannot be told
 *	{"deleted": true}
 *	{"end": [STATUS, T]}	"running" where it goes on; nothing is taken before it
 *
 * Points and media come in the order of time: a repeat then adds nothing, and a run that went on what is new. */
#ifndef DPT_CLI_BRING_JSON_LINES_H
#define DPT_CLI_BRING_JSON_LINES_H

#include <stdio.h>

#include "web/cli/import/importer.h"

bool json_lines_is(const char *path); /* whether the file begins as above */

int json_lines_read(struct importer *b, const char *path, struct err *err); /* "-": standard input */
int json_lines_take(struct importer *b, FILE *f, struct err *err);

#endif
