# SPDX-License-Identifier: Apache-2.0
# The list of optimisers and their options; trainer/ops/update computes their steps.
libtrainer_la_SOURCES += trainer/optimizers/optimizers.h trainer/optimizers/optimizers.def
