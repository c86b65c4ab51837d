"""Prints event select and unit mask, and a second word if there is one, of events as libpfm4 4.13.0 encodes them.

The library is that of Debian 12, unpacked in a temporary folder, whatever the machine has.
"""
import ctypes
import glob
import os
import subprocess
import sys
import tempfile

os.environ["LIBPFM_ENCODE_INACTIVE"] = "1"
with tempfile.TemporaryDirectory() as folder:
    download = ["apt-get", "download", "--quiet", "-o", "APT::Sandbox::User=root", "libpfm4=4.13.0-1"]
    subprocess.run(download, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["dpkg", "-x", "libpfm4_4.13.0-1_amd64.deb", "."], cwd=folder, check=True)
    library = ctypes.CDLL(glob.glob(folder + "/usr/lib/*/libpfm.so.4")[0])
assert library.pfm_initialize() == 0


class Raw(ctypes.Structure):
    """pfm_pmu_encode_arg_t."""

    _fields_ = [("codes", ctypes.POINTER(ctypes.c_uint64)), ("text", ctypes.c_void_p), ("size", ctypes.c_size_t),
                ("count", ctypes.c_int), ("index", ctypes.c_int)]


def encoding(name):
    raw = Raw(size=ctypes.sizeof(Raw))
    # Level 3 (PFM_PLM0 | PFM_PLM3), and no system: the words of the processor.
    assert library.pfm_get_os_event_encoding(name.encode(), 3, 0, ctypes.byref(raw)) == 0, name
    select = "%02x/%02x" % (raw.codes[0] & 0xFF, raw.codes[0] >> 8 & 0xFF)
    return " ".join([select] + ["%x" % raw.codes[index] for index in range(1, raw.count)])


for name in sys.argv[1:]:
    print(name, encoding(name))
