# SPDX-License-Identifier: Apache-2.0
# models.def and one file per model.
libtrainer_la_SOURCES += trainer/models/models.h trainer/models/models.def trainer/models/models.c trainer/models/decoder.h trainer/models/decoder.c trainer/models/gpt.c trainer/models/resnet.c
