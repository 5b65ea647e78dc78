/* folder_remote.h: a folder of images by class in a store that lists its objects (s3://), or whose files an index names
 * (http://…/NAME.txt): each picture is an object, and the set is the one that folder_scan (folder.h) finds in the same
 * files on a disk: order, classes and split.
 *
 * A line of an index is a file's bytes and its path beside the index, as `find . -type f -printf '%s %P\n'` says it. */
#ifndef DPT_DATA_FOLDER_REMOTE_H
#define DPT_DATA_FOLDER_REMOTE_H

#include "trainer/data/container/samples.h"
#include "trainer/data/store/data_objects.h"

struct folder_remote {
	struct samples samples; /* those of training first; objects are numbered as they are */
	int n_train;
	char **classes; /* n_classes of them, by label */
	int n_classes;
};

struct folder_remote_opts {
	const char *address;
	struct objects_opts store; /* for the listing */
	double val_share;	   /* where no folder is of validation */
};

/* Whether an address is that of an index of files. */
bool folder_remote_is_index(const char *address);

/* Lists the folder and adds its pictures to the store. ERR_USAGE where there are none by class. */
int folder_remote_find(struct folder_remote *ret, struct objects *store, const struct folder_remote_opts *o,
		       struct err *err);
void folder_remote_done(struct folder_remote *f); /* a zeroed one is fine */

#endif
