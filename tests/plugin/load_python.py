"""load_python.py PLUGIN ssl_first|plugin_first: shakes hands by Python's ssl before, while and after the plugin is
loaded and in use, and says which OpenSSL that was."""

import _ctypes
import ctypes
import os
import sys


def shake_hands():
    """A whole TLS session between two contexts in memory; without certificates, so that nothing is needed for it."""
    import ssl

    def context(protocol):
        made = ssl.SSLContext(protocol)
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
        made.maximum_version = ssl.TLSVersion.TLSv1_2
        made.set_ciphers("AECDH-AES256-SHA:@SECLEVEL=0")
        return made

    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(to_client, to_server)
    server = context(ssl.PROTOCOL_TLS_SERVER).wrap_bio(to_server, to_client, server_side=True)
    open_sides = {client, server}
    while open_sides:
        for side in list(open_sides):
            try:
                side.do_handshake()
                open_sides.remove(side)
            except ssl.SSLWantReadError:
                pass
    client.write(b"hello")
    assert server.read() == b"hello"
    return ssl.OPENSSL_VERSION


class Table(ctypes.Structure):
    """The beginning of ncclNet_v11_t, and its end."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("init", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint64, ctypes.c_void_p,
                                  ctypes.c_void_p, ctypes.c_void_p)),
        ("between", ctypes.c_void_p * 18),
        ("finalize", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)),
    ]


def is_mapped(path):
    with open("/proc/self/maps", encoding="ascii") as maps:
        return os.path.basename(path) in maps.read()


def use_plugin(path, meanwhile):
    library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    table = Table.in_dll(library, "ncclNetPlugin_v11")
    user = ctypes.c_void_p()
    assert table.init(ctypes.byref(user), 1, None, None, None) == 0, "init"
    meanwhile()
    assert table.finalize(user) == 0, "finalize"
    del table
    _ctypes.dlclose(library._handle)
    assert not is_mapped(path), "the plugin is still mapped"


def main(path, order):
    if order == "ssl_first":
        shake_hands()
    for _ in range(3):
        use_plugin(path, shake_hands)
        version = shake_hands()
    assert len(os.listdir("/proc/self/task")) == 1, "threads are left"
    print(version)


main(*sys.argv[1:])
