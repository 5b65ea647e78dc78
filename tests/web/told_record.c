/* SPDX-License-Identifier: Apache-2.0 */
/* told_record.c: records two runs with more than numbers through libdptrack: pictures, histograms, texts, a table, a
 * sound, console output, code, an alert. They differ in one param, one line of code and one package. A third one fails
 * in another experiment; its console has the reason.
 * Usage: told_record RUNS-DIR. */
#include <stdio.h>
#include <string.h>

#include "tracker/dptrack.h"

enum { STEPS = 40, EVERY = 10, LINES = 1500, LARGE_WIDTH = 240, LARGE_HEIGHT = 160 };

/* A GIF of one pixel. */
static const unsigned char pixel[] = { 'G', 'I', 'F', '8', '9', 'a', 1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff,
				       0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3b };

/* Logs the pixel on a larger screen, with a caption. */
static int log_large_image(struct dptrack_run *run, int step)
{
	unsigned char large[sizeof(pixel)];
	char caption[32];

	snprintf(caption, sizeof(caption), "large at %d", step);
	memcpy(large, pixel, sizeof(pixel));
	large[6] = LARGE_WIDTH;
	large[8] = LARGE_HEIGHT;
	return dptrack_image(run, step, "seen/large", &(struct dptrack_bytes){ large, sizeof(large) }, LARGE_WIDTH,
			     LARGE_HEIGHT) | dptrack_text(run, step, "seen/large/caption", caption);
}

/* Logs the first bytes of a WebM file, an HTML document with a script, and a figure as Plotly writes it. */
static int log_documents(struct dptrack_run *run, int step)
{
	const struct dptrack_bytes film = { "\x1a\x45\xdf\xa3", 4 };
	char html[256], figure[256];

	snprintf(html, sizeof(html),
		 "<!doctype html><p id=p>page</p><script>"
		 "document.getElementById('p').textContent = 'script of step %d';</script>",
		 step);
	snprintf(figure, sizeof(figure),
		 "{\"data\":[{\"type\":\"scatter\",\"name\":\"roc\",\"x\":[0,1,2],\"y\":[%d,1,4]},{\"type\":\"pie\"}],"
		 "\"layout\":{\"title\":{\"text\":\"a curve\"}}}",
		 step);
	return dptrack_audio(run, step, "doc/film", &film, "video/webm") | dptrack_text(run, step, "doc/html", html) |
	       dptrack_text(run, step, "doc/figure", figure);
}

static int log_media(struct dptrack_run *run, int step)
{
	const double edges[] = { -1, 0, 1, 2 + (double) step / 10 }, counts[] = { 1, step, 3 };
	const char *cells[] = { "label", "p", "cat", step ? "0.9" : "0.1" };
	const struct dptrack_bytes file = { pixel, sizeof(pixel) }, sound = { "RIFF", 4 };
	char text[64];

	snprintf(text, sizeof(text), "the **quick** <b> fox of step %d", step);
	return dptrack_image(run, step, "seen/picture", &file, 1, 1) | log_large_image(run, step) |
	       log_documents(run, step) |
	       dptrack_histogram(run, step, "seen/weights", edges, counts, 3) |
	       dptrack_text(run, step, "seen/words", text) | dptrack_table(run, step, "seen/cells", cells, 2, 2) |
	       dptrack_audio(run, step, "seen/tone", &sound, "audio/wav");
}

static int record_run(struct dptrack_run *run, int which)
{
	char text[256];
	int rc, i;

	snprintf(text, sizeof(text), "diff --git a/train.py b/train.py\n--- a/train.py\n+++ b/train.py\n import torch\n"
				     "-rate = 1\n+rate = 0.%d\n model = net()\n", which);
	rc = dptrack_code(run, "commit", "a1b2c3d4") | dptrack_code(run, "diff", text);
	snprintf(text, sizeof(text), "numpy==2.%d.0\nrequests==2.32.0\n", which);
	rc |= dptrack_code(run, "packages", text) | dptrack_param_f64(run, "lr", 0.1 * which) |
	      dptrack_param(run, "model", "cnn");
	for (i = 0; i < LINES; i++) {
		snprintf(text, sizeof(text), i == 700 ? "\033[31mneedle\033[0m %d\n" : "line %d\n", i);
		rc |= dptrack_console(run, 1, text, strlen(text));
	}
	return rc | dptrack_alert(run, DPTRACK_WARNING, 20, "loss is odd", "three times the usual");
}

/* Records a run that ends with an error on stderr. */
static int record_failure(const char *runs_dir)
{
	static const char reason[] = "Traceback (most recent call last):\n  File \"train.py\", line 12\n"
				     "torch.OutOfMemoryError: CUDA out of memory.\nstopping workers\n";
	struct dptrack_error error;
	struct dptrack_run *run;
	char text[32];
	int rc, i;

	rc = dptrack_run_open(&run, &(struct dptrack_run_opts){ .runs_dir = runs_dir, .experiment = "failed",
		.run_name = "big", .url = "" }, &error);
	for (i = 0; !rc && i < 60; i++) {
		snprintf(text, sizeof(text), "step %d\n", i);
		rc = dptrack_log_at(run, -1, i, "train/loss", 1.0, 1.7e9 + i) |
		     dptrack_console(run, 1, text, strlen(text));
	}
	return rc ? rc : dptrack_console(run, 2, reason, strlen(reason)) | dptrack_run_close(run, DPTRACK_FAILED);
}

/* Records a run that says why it ends. */
static int record_reason(const char *runs_dir)
{
	struct dptrack_error error;
	struct dptrack_run *run;
	int rc = dptrack_run_open(&run, &(struct dptrack_run_opts){ .runs_dir = runs_dir, .experiment = "reason",
		.run_name = "small", .url = "" }, &error);

	if (!rc)
		rc = dptrack_log_at(run, -1, 1, "train/loss", 1.0, 1.7e9) |
		     dptrack_set_status(run, DPTRACK_FAILED, "the quota of the store is exceeded");
	return rc ? rc : dptrack_run_close(run, DPTRACK_FAILED);
}

int main(int argc, char **argv)
{
	struct dptrack_error error;
	struct dptrack_run *run;
	int rc = argc == 2 ? 0 : -1, which, step;

	for (which = 1; !rc && which <= 2; which++) {
		rc = dptrack_run_open(&run, &(struct dptrack_run_opts){ .runs_dir = argv[1], .experiment = "told",
			.run_name = which == 1 ? "one" : "two", .url = "" }, &error);
		if (rc)
			break;
		rc = record_run(run, which);
		for (step = 0; step < STEPS; step++) {
			rc |= dptrack_log_at(run, -1, step, "train/loss", 1.0 / (step + which), 1.7e9 + step);
			if (step % EVERY == 0)
				rc |= log_media(run, step);
		}
		rc |= dptrack_run_close(run, DPTRACK_FINISHED);
	}
	return rc || record_failure(argv[1]) || record_reason(argv[1]) ? 1 : 0;
}
