/* double.h: prints a finite double other than 0 so that it reads back bit for bit. Pure; any thread. */
#ifndef DPT_API_DOUBLE_H
#define DPT_API_DOUBLE_H

#include <stddef.h>

#define DOUBLE_TEXT_MAX 32

/* Writes v (finite, not 0) as a JSON number with a terminating NUL; returns its length. */
size_t double_print(char *text, double v);

#endif
