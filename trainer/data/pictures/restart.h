/* restart.h: a JPEG file written anew with restart markers every few MCUs, from the same coefficients, so that a
 * decoder can read a part of the picture without what lies before it (ITU-T T.81, E.1.4). Progressive files become
 * baseline. */
#ifndef DPT_DATA_RESTART_H
#define DPT_DATA_RESTART_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"

/* 1: *ret_bytes (*ret_n of them; the caller frees) show the same picture: same coefficients, EXIF and colour profile; a
 * baseline file has grown by 2 % at most. 0: the file stays as it is, as it is no JPEG of one or three components, is
 * damaged, or would grow more. ERR_USAGE where this program was built without libjpeg. */
int restart_write(const uint8_t *file, size_t n, uint8_t **ret_bytes, size_t *ret_n, struct err *err);

#endif
