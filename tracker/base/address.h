/* address.h: makes URLs safe to record and show. */
#ifndef DPT_BASE_ADDRESS_H
#define DPT_BASE_ADDRESS_H

/* Removes user and password from each https://user:password@host in the text, for any scheme, in place. */
void address_hide(char *text);

#endif
