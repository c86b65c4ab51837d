"""Hardware performance counters of the current thread on Windows, by halprof.dll and ctypes.

    with halprof.Group("instructions", "cycles") as group:
        counts = group.measure(work)
        print(counts["instructions"], counts.quality)

A group can only be used by the thread that opened it.
"""

import ctypes
import os
import sys

ABI_VERSION = 1
USER, KERNEL = 1, 2
VIRTUALIZED, UNDISTURBED, DISTURBED = 1, 2, 3
QUALITIES = {VIRTUALIZED: "virtualized", UNDISTURBED: "undisturbed", DISTURBED: "disturbed"}
VERIFIED = 1
WITHOUT_DLL = "copy halprof.dll of halprof's package beside halprof.py, or set HALPROF_DLL to its path; Python must be 64-bit"


class Result(ctypes.Structure):
    """halprof_result."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("quality", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("events", ctypes.c_uint32),
        ("time_enabled", ctypes.c_uint64),
        ("time_running", ctypes.c_uint64),
    ]


class Error(Exception):
    """What halprof_error_text() says, and the status as `status`; None without halprof.dll."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Counts(dict):
    """Counts by event name. `quality` is a text, `reason` says why it is "disturbed"."""

    def __init__(self, counts, result, reason):
        super().__init__(counts)
        self.quality = QUALITIES[result.quality]
        self.is_exact = result.quality != DISTURBED
        self.is_verified = bool(result.flags & VERIFIED)
        self.reason = reason
        self.nanoseconds = result.time_enabled


def load(path=None):
    """Loads halprof.dll from `path`, from the environment variable HALPROF_DLL, or from beside this file."""
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "halprof.dll")
    path = path or os.environ.get("HALPROF_DLL") or beside
    try:
        library = ctypes.CDLL(path)
    except OSError as cause:
        raise Error(None, f"halprof.dll cannot be loaded ({cause}): {WITHOUT_DLL}") from cause
    group, text, number = ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint32
    pointer = ctypes.POINTER
    for name, result, arguments in [
        ("version", number, []),
        ("open", ctypes.c_int, [number, text, number, pointer(group)]),
        ("availability", ctypes.c_int, [group, pointer(number), pointer(text)]),
        ("calibrate", ctypes.c_int, [group]),
        ("begin", ctypes.c_int, [group]),
        ("end", ctypes.c_int, [group, pointer(Result)]),
        ("count", ctypes.c_int, [group, number, pointer(ctypes.c_uint64)]),
        ("name", text, [group, number]),
        ("reason", text, [group]),
        ("error_text", text, []),
        ("close", ctypes.c_int, [group]),
    ]:
        function = getattr(library, "halprof_" + name)
        function.restype, function.argtypes = result, arguments
    return library


class Group:
    """A group of events of the current thread, in user mode."""

    def __init__(self, *events, library=None):
        self._library = library or load()
        self._handle = ctypes.c_uint64()
        self._events = events
        names = ",".join(events).encode()
        self._check(self._library.halprof_open(ABI_VERSION, names, USER, ctypes.byref(self._handle)))
        self._check(self._library.halprof_calibrate(self._handle))

    def _check(self, status):
        if status != 0:
            raise Error(status, self._library.halprof_error_text().decode())

    def availability(self):
        """Returns the best quality of this group, and why it has no better one."""
        quality, reason = ctypes.c_uint32(), ctypes.c_char_p()
        self._check(self._library.halprof_availability(self._handle, ctypes.byref(quality), ctypes.byref(reason)))
        return QUALITIES[quality.value], reason.value.decode()

    def measure(self, work):
        """Calls `work` and returns its counts. They contain what the interpreter does for the call."""
        begin, end = self._library.halprof_begin, self._library.halprof_end
        result = Result(size=ctypes.sizeof(Result))
        place = ctypes.byref(result)
        self._check(begin(self._handle))
        try:
            work()
        finally:
            status = end(self._handle, place)
        self._check(status)
        counts = {}
        for index, event in enumerate(self._events):
            count = ctypes.c_uint64()
            self._check(self._library.halprof_count(self._handle, index, ctypes.byref(count)))
            counts[event] = count.value
        return Counts(counts, result, self._library.halprof_reason(self._handle).decode())

    def close(self):
        """Closes the group. Its counters are free afterwards."""
        handle, self._handle = self._handle, ctypes.c_uint64()
        self._check(self._library.halprof_close(handle))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def main():
    """Counts a sum."""
    try:
        with Group("instructions", "cycles") as group:
            print("best quality: %s %s" % group.availability())
            for _ in range(5):
                counts = group.measure(lambda: sum(range(100_000)))
                print("%(instructions)d instructions, %(cycles)d cycles" % counts, counts.quality, counts.reason)
    except Error as error:
        print("error:" if error.status is None else f"error {error.status}:", error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
