/* folder_remote.h: a folder of images by class in a store that lists its objects (s3://), or whose files an index names
 * (http://…/NAME.txt). Each picture is an object. Order, classes and split are those that folder_scan (folder.h) finds
 * in the same files on disk.
 *
 * A line of an index is a file's size in bytes and its path relative to the index: `find . -type f -printf '%s
 * %P\n'`. */
#ifndef DPT_DATA_FOLDER_REMOTE_H
#define DPT_DATA_FOLDER_REMOTE_H

#include "trainer/data/container/samples.h"
#include "trainer/data/store/data_objects.h"

struct folder_remote {
	struct samples samples; /* training samples first; sample i is object i */
	int n_train;
	char **classes; /* n_classes of them, by label */
	int n_classes;
};

struct folder_remote_opts {
	const char *address;
	struct objects_opts store; /* for the listing */
	double val_share;	   /* if there is no validation folder */
};

/* Returns true if the address is that of an index of files. */
bool folder_remote_is_index(const char *address);

/* Lists the folder and adds its pictures to the store. ERR_USAGE: no pictures in class folders. */
int folder_remote_find(struct folder_remote *ret, struct objects *store, const struct folder_remote_opts *o,
		       struct err *err);
void folder_remote_done(struct folder_remote *f); /* a zeroed one is fine */

#endif
