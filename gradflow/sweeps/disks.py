"""Is a folder on a disk that other machines share?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

# As the kernel names them in /proc/mounts. "fuse." is a program of a user: sshfs, s3fs, rclone.
_NETWORK = {
    "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "cvmfs", "davfs", "glusterfs", "gpfs", "lustre",
    "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "smb3", "smbfs", "virtiofs", "wekafs",
}  # fmt: skip
_MOUNTS = Path("/proc/mounts")


def is_network_disk(folder: Path) -> bool:
    """Return whether `folder` is on a network disk; False where the system does not tell."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
        place = folder.resolve()
    except OSError:  # no Linux
        return False
    return _is_network(disk_type(place, lines))


def disk_type(place: Path, mounts: Iterable[str]) -> str:
    """Return the file system that holds `place`, of the lines of /proc/mounts; "" for none.

    >>> disk_type(Path("/home/ada/runs"), ["/dev/sda1 / ext4 rw 0 0", "srv:/h /home nfs4 rw 0 0"])
    'nfs4'
    """
    found, depth = "", -1
    for line in mounts:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(fields[1].replace("\\040", " "))
        if place.is_relative_to(point) and len(point.parts) >= depth:  # the last one lies on top
            found, depth = fields[2], len(point.parts)
    return found


def _is_network(kind: str) -> bool:
    return kind in _NETWORK or kind.startswith("fuse.")
