# SPDX-License-Identifier: Apache-2.0
# The list of optimisers, which are in the folders of their ops.
libtrainer_la_SOURCES += trainer/optimizers/optimizers.h trainer/optimizers/optimizers.def
