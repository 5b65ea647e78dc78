# safetensors in and out.
libtrainer_la_SOURCES += trainer/weights/safetensors.h trainer/weights/weights.h trainer/weights/batch.h
