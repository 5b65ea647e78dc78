/* logged_image.h: images that MLflow's log_image(key=, step=) stores as artifacts of a run,
 * images/KEY+step+N+timestamp+MS+UUID.png, also become media of the run: added with the file and removed with it.
 * Writer's thread; accesses no file. */
#ifndef DPT_STORE_LOGGED_IMAGE_H
#define DPT_STORE_LOGGED_IMAGE_H

#include "web/store/files/artifacts.h"
#include "web/store/write/change.h"

/* The run of the image; false: not the path of an image. */
bool logged_image_run(const char *path, char ret[33]);

/* In the transaction that records the file: replaces the image of this path. Does nothing if path or content is not
 * an image, or the run is gone. */
int logged_image_put(struct state *st, const struct artifact_digest *d, struct err *err);

/* Removes the images of the file at path, or below it. Call it before the rows of the files are deleted. */
int logged_image_remove(struct state *st, const char *path, struct err *err);

#endif
