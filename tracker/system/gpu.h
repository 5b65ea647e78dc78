/* gpu.h: statistics of one NVIDIA GPU from its driver's library NVML, for the whole device and all its users. The
 * library is loaded at run time; without it or the device, all values are NaN. */
#ifndef DPT_SYSTEM_GPU_H
#define DPT_SYSTEM_GPU_H

#include <stddef.h>

/* NaN if the driver does not report it. */
struct gpu_stats {
	double util_percent; /* share of NVML's last sample (up to a second) in which a kernel ran */
	double memory_bytes; /* in use, by all processes */
	double power_watts, temperature_c, sm_mhz;
	double throttled_s; /* since the driver was loaded: time that power or heat limited the clocks */
};

struct gpu;

/* uuid: "GPU-…", as nvidia-smi -L prints it. Returns NULL without the device, the driver, or memory. */
struct gpu *gpu_open(const char *uuid);
void gpu_read(struct gpu *g, struct gpu_stats *ret); /* g NULL: all NaN */
void gpu_close(struct gpu *g);			      /* NULL is fine */

#endif
