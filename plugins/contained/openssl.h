/* openssl.h: what the linker puts in the place of OpenSSL's own functions, in a library that has all of it inside. */
#ifndef WF_CONTAINED_OPENSSL_H
#define WF_CONTAINED_OPENSSL_H

void *__wrap_DSO_dsobyaddr(void *address, int flags);
int __wrap_ossl_config_int(const void *settings);

#endif
