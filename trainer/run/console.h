/* console.h: what a person sees of a run on stdout: a bar on a terminal, else plain lines; a table at the end. On rank
 * 0 only. It prints, so it is no part of a library. */
#ifndef DPT_RUN_CONSOLE_H
#define DPT_RUN_CONSOLE_H

#include "trainer/run/eval_metrics.h"
#include "trainer/run/step.h"

struct console;

struct console *console_new(const struct engine *e); /* NULL when out of memory */
void console_free(struct console *c);		     /* NULL is fine */

void console_heading(struct console *c, const char *run_dir); /* run_dir: NULL when nothing is recorded */
void console_step(struct console *c, const struct step_result *r);

void console_validation(struct console *c, int64_t step, const struct evaluation *v); /* --eval-steps */

void console_epoch(struct console *c, const struct epoch_summary *s);
void console_evaluation(struct console *c, const struct evaluation *v); /* --test-only */
void console_memory(struct console *c); /* memory planned and used, at the end */
void console_table(struct console *c);

#endif
