#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Unpack the ELF vmlinux out of a compressed bzImage (vmlinuz).

usage: extract-vmlinux.py VMLINUZ OUT

The ELF image boots directly under QEMU (PVH entry point), which spares the
guest the slow decompression stage under emulation, and it carries the .BTF
section that btf-offsets.py reads.  Needs xz, lz4, zstd or gzip in PATH,
according to how the kernel was compressed.
"""
import subprocess
import sys

MAGICS = (
    (b"\xfd7zXZ\0", ["xz", "-dc", "--single-stream"]),
    (b"\x28\xb5\x2f\xfd", ["zstd", "-dc"]),
    (b"\x02\x21\x4c\x18", ["lz4", "-dc"]),
    (b"\x1f\x8b\x08", ["gzip", "-dc"]),
)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    data = open(sys.argv[1], "rb").read()
    for magic, cmd in MAGICS:
        at = data.find(magic)
        while at >= 0:
            try:
                out = subprocess.run(cmd, input=data[at:], stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL).stdout
            except FileNotFoundError:
                print("note: %s is not installed" % cmd[0], file=sys.stderr)
                break
            if out[:4] == b"\x7fELF" and len(out) > 1 << 20:
                open(sys.argv[2], "wb").write(out)
                return
            at = data.find(magic, at + 1)
    sys.exit("no ELF payload found in " + sys.argv[1])


main()
