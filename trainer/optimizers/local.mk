# SPDX-License-Identifier: Apache-2.0
# optimizers.def and its table; the optimisers are in the folders of their ops.
libtrainer_la_SOURCES += trainer/optimizers/optimizers.h trainer/optimizers/optimizers.def trainer/optimizers/optimizers.c
