# Data sets, sampler, loader threads.
