/* table.h: rows of text for people: columns aligned, numbers to the right, one blank between words of a cell kept.
 * One thread. */
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

/* Prints titles and rows; as CSV when csv is set. On a terminal what would not fit into a line is cut, which is said.
 */
void table_print(struct table *t, FILE *out, bool csv);

/* n bytes of anybody's text onto a terminal: a blank for each character that would move its cursor, start a line or
 * turn the direction of what follows. */
void table_text(FILE *out, const char *text, size_t n);

/* Text for people, into storage of at least 32 bytes. */
const char *table_number(char *text, double v);            /* 5 digits that matter */
const char *table_exact(char *text, double v);             /* as few as read back the same */
const char *table_time(char *text, int64_t ms);            /* local date and time */
const char *table_duration(char *text, double seconds);    /* 1 h 02 min */

#endif
