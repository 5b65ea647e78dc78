/* address.h: addresses as they may be recorded and shown. */
#ifndef DPT_BASE_ADDRESS_H
#define DPT_BASE_ADDRESS_H

/* Takes user and password out of each https://user:password@host in the text, whatever its scheme; in place. */
void address_hide(char *text);

#endif
