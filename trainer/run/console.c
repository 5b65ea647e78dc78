/* SPDX-License-Identifier: Apache-2.0 */
/* console.c: progress for people. */
#include "tracker/mem/mem.h"
#include "trainer/run/observers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/log.h"
#include "tracker/base/terminal.h"
#include "trainer/program/memory.h"

#define REDRAW_S 0.1
#define BAR_CELLS 24
#define BAR_LEAST_CELLS 8

struct console {
	const struct engine *e;
	bool tty;
	double drawn_s;		       /* when the bar was last drawn */
	int64_t steps;		       /* steps of this process */
	double mean_step_s, mean_rate; /* running means; samples per second */
	struct buf line;	       /* reused, so that a step allocates nothing */
	struct epoch_summary *rows;
	size_t n_rows, cap_rows;
};

struct console *console_new(const struct engine *e)
{
	struct console *c = mem_zalloc(sizeof(*c));

	c->e = e;
	c->tty = isatty(STDOUT_FILENO);
	buf_init(&c->line, 4096);
	return c;
}

void console_free(struct console *c)
{
	if (!c)
		return;
	buf_done(&c->line);
	free(c->rows);
	free(c);
}

static void print_plan(const struct engine *e)
{
	const struct plan *p = &e->prepared.plan;

	printf("memory of a rank: %.1f MiB planned:", (double)memory_planned(p) / 1048576);
	for (int i = 0, n = 0; i < PLAN_CATEGORY_COUNT; i++)
		if (p->category_bytes[i])
			printf("%s %s %.1f", n++ ? "," : "", plan_category_name((enum plan_category)i),
			       (double)p->category_bytes[i] / 1048576);
	printf("\n");
}

/* Removes the progress line from a terminal. */
static void clear_progress(const struct console *c)
{
	if (c->tty)
		printf("\r\033[K");
}

void console_memory(struct console *c)
{
	int64_t planned = memory_planned(&c->e->prepared.plan);
	int64_t used = memory_used(c->e->resident_before);

	clear_progress(c);
	if (used)
		printf("memory of rank 0: %.1f MiB planned, %.1f MiB used\n", (double)planned / 1048576,
		       (double)used / 1048576);
	fflush(stdout);
}

void console_data(const struct console *c)
{
	const struct dataset *d = c->e->workload.data;
	struct buf line;

	buf_init(&line, 4096);
	dataset_say_used(d, &line);
	if (line.len && data_account_used(&d->account))
		printf("data: %s\n", line.data);
	buf_done(&line);
}

void console_heading(struct console *c, const char *run_dir)
{
	const struct run_config *cfg = c->e->rank.cfg;
	const struct dataset *d = c->e->workload.data;
	char version[160] = "";
	const char *slow;

	if (c->e->rank.backend->version)
		c->e->rank.backend->version(version, sizeof(version));
	printf("%s on %s: %lld training and %lld evaluation ", cfg->model, d->path,
	       (long long)d->n_samples[SPLIT_TRAIN], (long long)(d->endless ? 0 : d->n_samples[SPLIT_VAL]));
	if (d->kind == SAMPLE_TOKENS)
		printf("samples of %lld tokens, vocabulary of %lld\n", (long long)d->seq_len, (long long)d->vocab);
	else
		printf("images of %dx%dx%d, %d classes\n", d->height, d->width, d->channels, d->classes);
	console_data(c);
	if (c->e->rank.why[0])
		printf("--backend auto: %s, because %s\n", c->e->rank.backend->name, c->e->rank.why);
	printf("backend %s%s%s%s, %s, %d rank%s of %d thread%s, global batch %lld\n", c->e->rank.backend->name,
	       version[0] ? " (" : "", version, version[0] ? ")" : "", dtype_name(c->e->prepared.opts.precision.low),
	       c->e->rank.context->world, c->e->rank.context->world > 1 ? "s" : "", rank_threads(&c->e->rank),
	       rank_threads(&c->e->rank) > 1 ? "s" : "", (long long)cfg->global_batch_size);
	slow = c->e->rank.backend->slow ? c->e->rank.backend->slow(c->e->rank.module, &c->e->prepared.opts.precision)
					: NULL;
	if (slow)
		printf("%s\n", slow);
	if (run_dir)
		printf("recorded in %s\n", run_dir);
	if (run_dir && !c->e->train_schedule.saves && cfg->command == COMMAND_TRAIN && !cfg->save_weights)
		printf("no checkpoint and no weights are kept (--save-total-limit 0)\n");
	print_plan(c->e);
	fflush(stdout);
}

static void add_duration(struct buf *line, double seconds)
{
	long s = (long)(seconds + 0.5);

	if (s >= 3600)
		buf_addf(line, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
	else
		buf_addf(line, "%ld:%02ld", s / 60, s % 60);
}

static void add_bar(struct buf *line, double share, int cells)
{
	int full = (int)(share * cells);

	buf_adds(line, " [");
	for (int i = 0; i < cells; i++)
		buf_addc(line, i < full ? '=' : i == full ? '>' : ' ');
	buf_addc(line, ']');
}

/* Returns the share of the training that is done, of the epoch where the training has no end, or -1. */
static double progress_share(const struct console *c, const struct step_result *r)
{
	int64_t per_epoch = c->e->train_schedule.steps_per_epoch, total = c->e->train_schedule.steps_total;

	if (total != INT64_MAX)
		return (double)r->step / (double)total;
	return per_epoch != INT64_MAX ? (double)r->in_epoch / (double)per_epoch : -1;
}

static void add_step(const struct console *c, const struct step_result *r, struct buf *line)
{
	int64_t per_epoch = c->e->train_schedule.steps_per_epoch, total = c->e->train_schedule.steps_total;

	if (per_epoch != INT64_MAX)
		buf_addf(line, "  step %lld/%lld", (long long)r->in_epoch, (long long)per_epoch);
	else if (total != INT64_MAX)
		buf_addf(line, "  step %lld/%lld", (long long)r->step, (long long)total);
	else
		buf_addf(line, "  step %lld", (long long)r->step);
}

/* What a progress line holds besides epoch, loss, speed and time left. */
struct line_form {
	bool details; /* step and learning rate */
	bool percent;
	int bar_cells; /* 0: no bar */
};

/* Appends one progress line: position, loss, speed and time left, with the details that form asks for. */
static void add_progress(const struct console *c, const struct step_result *r, struct line_form form, struct buf *line)
{
	int64_t per_epoch = c->e->train_schedule.steps_per_epoch, total = c->e->train_schedule.steps_total;
	double share = progress_share(c, r);

	buf_addf(line, "epoch %lld", (long long)r->epoch);
	if (c->e->rank.cfg->epochs && per_epoch != INT64_MAX && total == c->e->rank.cfg->epochs * per_epoch)
		buf_addf(line, "/%lld", (long long)c->e->rank.cfg->epochs);
	if (form.bar_cells && share >= 0)
		add_bar(line, share, form.bar_cells);
	if (form.percent && share >= 0)
		buf_addf(line, " %3d %%", (int)(100 * share));
	if (form.details)
		add_step(c, r, line);
	buf_addf(line, "  loss %.4f", r->loss);
	if (form.details)
		buf_addf(line, "  lr %.4g", r->lr);
	buf_addf(line, "  %.0f %s/s", c->mean_rate, sample_kind_name(c->e->workload.data->kind));
	if (c->e->prepared.opts.precision.low == DTYPE_F16)
		buf_addf(line, "  scale %g", r->loss_scale);
	if (r->skipped)
		buf_addf(line, "  %lld skipped", (long long)r->skipped);
	if (total != INT64_MAX) {
		buf_adds(line, "  ETA ");
		add_duration(line, (double)(total - r->step) * c->mean_step_s);
	}
}

static int progress_columns(void)
{
	const int columns = terminal_columns(STDOUT_FILENO, 80);

	return columns > 20 ? columns : 80;
}

/* Fills c->line with the form; true if it leaves room for a bar in width, whose cells are then in *ret_cells. */
static bool fits_with_bar(struct console *c, const struct step_result *r, struct line_form form, int width,
			  int *ret_cells)
{
	int room;

	buf_reset(&c->line);
	add_progress(c, r, form, &c->line);
	room = width - (int)c->line.len - (int)strlen(" []");
	*ret_cells = room < BAR_CELLS ? room : BAR_CELLS;
	return room >= BAR_LEAST_CELLS;
}

/* Draws the most detailed form that fits with a bar: a line that is wider than the terminal could not be redrawn. */
static void draw_progress(struct console *c, const struct step_result *r)
{
	struct line_form form = { .details = true, .percent = true };
	int width = progress_columns() - 1, cells;

	if (!fits_with_bar(c, r, form, width, &cells))
		form.details = false;
	if (form.details || fits_with_bar(c, r, form, width, &cells)) {
		form.bar_cells = cells;
		buf_reset(&c->line);
		add_progress(c, r, form, &c->line);
	}
	if (!buf_failed(&c->line))
		printf("\r\033[K%.*s", width, c->line.data);
}

/* Prints the result of --workers auto; no threads, as with sets in memory, are worth a line only where that costs
 * time. */
static void print_workers(struct console *c)
{
	const struct workers *s = &c->e->loading[SPLIT_TRAIN];

	if (s->n || s->wait_share > 0.05)
		printf("%s--workers auto: %d loader thread%s work%s ahead; %.0f %% of a step goes by waiting for "
		       "data\n",
		       c->tty ? "\r\033[K" : "", s->n, s->n == 1 ? "" : "s", s->n == 1 ? "s" : "", 100 * s->wait_share);
}

void console_step(struct console *c, const struct step_result *r)
{
	double now = clock_mono_s(), wall = fmax(r->seconds[TIME_STEP], 1e-9);

	if (r->workers_found)
		print_workers(c);
	/* The first step warms up the caches; it would distort the means for long. */
	if (++c->steps <= 2) {
		c->mean_step_s = wall;
		c->mean_rate = (double)r->count / wall;
	}
	c->mean_step_s += 0.05 * (wall - c->mean_step_s);
	c->mean_rate += 0.05 * ((double)r->count / wall - c->mean_rate);
	if (c->tty && (now - c->drawn_s >= REDRAW_S || r->epoch_ends)) {
		draw_progress(c, r);
		fflush(stdout);
		c->drawn_s = now;
	} else if (!c->tty && (r->in_epoch % c->e->rank.cfg->print_freq == 0 || r->epoch_ends || r->step == 1 ||
			       r->step == c->e->train_schedule.steps_end)) {
		buf_reset(&c->line);
		add_progress(c, r, (struct line_form){ .details = true }, &c->line);
		if (!buf_failed(&c->line))
			printf("%s\n", c->line.data);
		fflush(stdout);
	}
}

static bool console_shows_tokens(const struct console *c)
{
	return c->e->workload.data->kind == SAMPLE_TOKENS;
}

static void print_accuracy(const struct evaluation *v)
{
	printf(", top-1 %.2f %%", v->top1);
	if (!isnan(v->top5))
		printf(", top-5 %.2f %%", v->top5);
}

static void print_summary(const struct console *c, const struct epoch_summary *s)
{
	printf("epoch %lld: train loss %.4f", (long long)s->epoch, s->train_loss);
	if (s->evaluated && console_shows_tokens(c))
		printf(", val loss %.4f, perplexity %.2f", s->val.loss, exp(s->val.loss));
	else if (s->evaluated) {
		printf(", val loss %.4f", s->val.loss);
		print_accuracy(&s->val);
	}
	printf(", %.1f s", s->seconds);
	if (s->evaluated)
		printf(" + %.1f s evaluation", s->val.seconds);
	printf(", %.0f %s/s\n", s->samples_per_s, sample_kind_name(c->e->workload.data->kind));
}

static void warn_of_nonfinite_loss(const struct evaluation *v)
{
	if (!isfinite(v->loss))
		log_warn("the evaluation loss is %s: the weights, statistics or outputs are not finite numbers, so the "
			 "evaluation says nothing of the model", isnan(v->loss) ? "nan" : "infinite");
}

void console_epoch(struct console *c, const struct epoch_summary *s)
{
	mem_push(&c->rows, &c->n_rows, &c->cap_rows, *s);
	clear_progress(c);
	print_summary(c, s);
	fflush(stdout);
	warn_of_nonfinite_loss(&s->val);
}

void console_validation(struct console *c, int64_t step, const struct evaluation *v)
{
	printf("%sstep %lld: val loss %.4f, ", c->tty ? "\r\033[K" : "", (long long)step, v->loss);
	if (console_shows_tokens(c))
		printf("perplexity %.4f", exp(v->loss));
	else
		printf("top-1 %.2f %%", v->top1);
	printf(", %.1f s\n", v->seconds);
	fflush(stdout);
	warn_of_nonfinite_loss(v);
}

static void print_image_evaluation(const struct dataset *d, const struct evaluation *v)
{
	const int64_t unreadable = d->n_samples[SPLIT_VAL] - v->count;
	char of[80] = "";

	if (unreadable)
		snprintf(of, sizeof(of), " of %lld", (long long)d->n_samples[SPLIT_VAL]);
	printf("evaluation of %lld%s samples", (long long)v->count, of);
	if (unreadable)
		printf(" (%lld cannot be read)", (long long)unreadable);
	printf(": loss %.6f", v->loss);
	print_accuracy(v);
	printf(", %.1f s\n", v->seconds);
}

void console_evaluation(struct console *c, const struct evaluation *v)
{
	if (console_shows_tokens(c))
		printf("evaluation of %lld tokens: loss %.6f, perplexity %.4f, %.1f s\n", (long long)v->count, v->loss,
		       exp(v->loss), v->seconds);
	else
		print_image_evaluation(c->e->workload.data, v);
	fflush(stdout);
}

static void print_token_table(const struct console *c)
{
	printf("\n%6s %12s %10s %12s %10s %10s %10s\n", "epoch", "train loss", "val loss", "perplexity", "train s",
	       "eval s", "tokens/s");
	for (size_t i = 0; i < c->n_rows; i++) {
		const struct epoch_summary *s = &c->rows[i];

		printf("%6lld %12.4f ", (long long)s->epoch, s->train_loss);
		if (s->evaluated)
			printf("%10.4f %12.2f %10.1f %10.1f", s->val.loss, exp(s->val.loss), s->seconds,
			       s->val.seconds);
		else
			printf("%10s %12s %10.1f %10s", "-", "-", s->seconds, "-");
		printf(" %10.0f\n", s->samples_per_s);
	}
	fflush(stdout);
}

void console_table(struct console *c)
{
	if (!c->n_rows)
		return;
	if (console_shows_tokens(c)) {
		print_token_table(c);
		return;
	}
	printf("\n%6s %12s %10s %8s %8s %10s %10s %10s\n", "epoch", "train loss", "val loss", "top-1", "top-5",
	       "train s", "eval s", "images/s");
	for (size_t i = 0; i < c->n_rows; i++) {
		const struct epoch_summary *s = &c->rows[i];
		char top5[32] = "-";

		printf("%6lld %12.4f ", (long long)s->epoch, s->train_loss);
		if (!isnan(s->val.top5))
			snprintf(top5, sizeof(top5), "%.2f", s->val.top5);
		if (s->evaluated)
			printf("%10.4f %8.2f %8s %10.1f %10.1f", s->val.loss, s->val.top1, top5, s->seconds,
			       s->val.seconds);
		else
			printf("%10s %8s %8s %10.1f %10s", "-", "-", "-", s->seconds, "-");
		printf(" %10.0f\n", s->samples_per_s);
	}
	fflush(stdout);
}
