/* logged_image.h: what MLflow's log_image(key=, step=) keeps as files of a run, images/KEY+step+N+timestamp+MS+UUID.png, is
 * the run's media too: there when the file comes, gone with it. Writer's thread; knows no file. */
#ifndef DPT_STORE_LOGGED_IMAGE_H
#define DPT_STORE_LOGGED_IMAGE_H

#include "web/store/files/artifacts.h"
#include "web/store/write/change.h"

/* Whose picture it is; false: no picture's path. */
bool logged_image_run(const char *path, char ret[33]);

/* In the transaction that notes the file: its picture in place of the one that was there under this path. Nothing where
 * the path or the content is no picture's, or the run is gone. */
int logged_image_put(struct state *st, const struct artifact_digest *d, struct err *err);

/* Those of the file at path, or below it. Before the rows of the files go. */
int logged_image_remove(struct state *st, const char *path, struct err *err);

#endif
