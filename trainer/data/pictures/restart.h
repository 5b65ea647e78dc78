/* restart.h: rewrites a JPEG file with restart markers every few MCUs and the same coefficients. A decoder can then
 * read a part of the picture without the data before it (ITU-T T.81, E.1.4). Progressive files become baseline. */
#ifndef DPT_DATA_RESTART_H
#define DPT_DATA_RESTART_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

/* Returns 1 with *ret_n bytes in *ret_bytes, which the caller frees: the same coefficients, EXIF and colour profile.
 * A baseline file grows by at most 2 %. Returns 0 if the file should stay unchanged: not a JPEG of one or three
 * components, damaged, or it would grow more. ERR_USAGE: built without libjpeg. */
int restart_write(const uint8_t *file, size_t n, uint8_t **ret_bytes, size_t *ret_n, struct err *err);

#endif
