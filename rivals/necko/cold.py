"""Files that are dropped from the system's memory."""

import ctypes
import mmap
import os

PROT_READ, MAP_SHARED = 1, 1
FAILED = ctypes.c_void_p(-1).value


def drop(paths):
    """Writes files to the disk and drops them from memory; returns their bytes, and those that are still resident."""
    total = resident = 0
    for path in paths:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            size = os.fstat(file.fileno()).st_size
            total += size
            resident += min(size, _resident_pages(file.fileno(), size) * mmap.PAGESIZE)
    return total, resident


def _resident_pages(descriptor, size):
    """Returns how many pages of a file are in memory."""
    if size == 0:
        return 0
    system = ctypes.CDLL(None, use_errno=True)
    system.mmap.restype = ctypes.c_void_p
    system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    system.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    system.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    address = system.mmap(None, size, PROT_READ, MAP_SHARED, descriptor, 0)
    if address == FAILED:
        raise OSError(ctypes.get_errno(), "a file of the cache cannot be mapped")
    try:
        pages = ctypes.create_string_buffer((size + mmap.PAGESIZE - 1) // mmap.PAGESIZE)
        if system.mincore(address, size, pages) != 0:
            raise OSError(ctypes.get_errno(), "the system does not tell which pages are in memory")
        # Of each byte only the lowest bit is defined.
        return sum(page & 1 for page in pages.raw)
    finally:
        system.munmap(address, size)
