/* SPDX-License-Identifier: Apache-2.0 */
/* table.h: tables of text for people: aligned columns, numbers to the right. One thread. */
#ifndef DPT_CLI_TABLE_H
#define DPT_CLI_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct table;

struct table *table_new(void); /* NULL: out of memory */
void table_free(struct table *t); /* NULL is fine */

void table_column(struct table *t, const char *title, bool right); /* before the first cell */
void table_cell(struct table *t, const char *text);                /* row by row; NULL: a dash */
void table_cellf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Prints titles and rows; as CSV when csv is set. On a terminal cells and columns that do not fit into a line are cut
 * or hidden, with a note. */
void table_print(struct table *t, FILE *out, bool csv);

/* Writes n bytes of untrusted text to a terminal. Characters that move the cursor, start a line or change the direction
 * of text become blanks. */
void table_text(FILE *out, const char *text, size_t n);

/* Formats a value for people into a buffer of at least 32 bytes. */
const char *table_number(char *text, double v);            /* 5 significant digits */
const char *table_exact(char *text, double v);             /* the fewest digits that read back the same */
const char *table_time(char *text, int64_t ms);            /* local date and time */
const char *table_duration(char *text, double seconds);    /* 1 h 02 min */

#endif
