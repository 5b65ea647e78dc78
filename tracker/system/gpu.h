/* gpu.h: one NVIDIA GPU as its driver's library NVML sees it: the whole device, whoever uses it. The library is opened
 * when the program runs; where it or the device is not there, nothing is known. */
#ifndef DPT_SYSTEM_GPU_H
#define DPT_SYSTEM_GPU_H

#include <stddef.h>

/* NaN where the driver does not say. */
struct gpu_vitals {
	double util_percent; /* of the time of NVML's last sample (up to a second), in which a kernel ran */
	double memory_bytes; /* in use, by all processes */
	double power_watts, temperature_c, sm_mhz;
	double held_s; /* since the driver was loaded: how long power or heat held its clocks down */
};

struct gpu;

/* uuid: "GPU-…", as nvidia-smi -L prints it. NULL: there is no such device, no driver, or no memory. */
struct gpu *gpu_open(const char *uuid);
void gpu_read(struct gpu *g, struct gpu_vitals *ret); /* g NULL: nothing is known */
void gpu_close(struct gpu *g);			      /* NULL is fine */

#endif
