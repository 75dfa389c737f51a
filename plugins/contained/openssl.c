/*
 * Stands before two functions inside of OpenSSL (the linker's --wrap), where it is a part of a library that is unloaded
 * again, on a machine that may have another OpenSSL.
 */
#include "openssl.h"

#include <stddef.h>

/* OpenSSL looks for the library that it is in only to keep it loaded for ever. */
void *__wrap_DSO_dsobyaddr(void *address, int flags)
{
    (void)address, (void)flags;
    return NULL;
}

/* The machine's openssl.cnf is for its own OpenSSL, and may name modules that bring that one along. */
int __wrap_ossl_config_int(const void *settings)
{
    (void)settings;
    return 1;
}
