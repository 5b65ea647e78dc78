/* dptrack.h: the public header of the tracking library. */
