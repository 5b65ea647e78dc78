/* SPDX-License-Identifier: Apache-2.0 */
/* override.h: functions of libraries that the server replaces by defining them. The dynamic linker prefers a program's
 * to a shared library's. In archives they are weak, with a second name library_NAME
 * (web/deploy/release/static_libraries.py). */
#ifndef DPT_SERVER_OVERRIDE_H
#define DPT_SERVER_OVERRIDE_H

#include <dlfcn.h>

/* Declares what OVERRIDDEN needs. */
#define OVERRIDES(name) extern __typeof__(name) library_##name __attribute__((weak))

/* The library's function. */
#define OVERRIDDEN(name) (library_##name ? library_##name : (__typeof__(name) *)dlsym(RTLD_NEXT, #name))

#endif
