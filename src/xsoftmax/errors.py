"""Exceptions that the command line explains in a line, and what is to be done where the system refuses something."""

import errno


class InputError(ValueError):
    """Say what was wrong, the value, and what to do; the command line prints it and exits with status 1."""


class StoppedError(Exception):
    """Someone asked a program to stop, which it did in good order; the command line exits with status 143."""


# What to do about errors of the system that a user can do something about; nothing that was there is lost by any.
REMEDIES = {
    errno.ENOSPC: "make room on the disk and run it again",
    errno.EDQUOT: "make room within your quota and run it again",
    errno.EFBIG: "the file would be larger than the file system or `ulimit -f` allows",
    errno.EROFS: "write somewhere else, or have it mounted to be written to",
    errno.EACCES: "ask for the right to it, or name another place",
    errno.EPERM: "ask for the right to it, or name another place",
    errno.EISDIR: "name a file, or remove this folder",
    errno.ENOTDIR: "name a folder, or remove this file",
    errno.EIO: "the disk or the network's file system has failed; look at it, then run it again",
    errno.ESTALE: "the network's file system has failed; look at it, then run it again",
    errno.EMFILE: "allow more open files: `ulimit -n 4096`",
}
# Those of the place that is written to, wherever what is written comes from: another source is no remedy.
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
