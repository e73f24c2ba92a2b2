#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Print byte offsets of struct members, read from the .BTF section of a vmlinux.

usage: btf-offsets.py VMLINUX struct.member[.member...] ...

Prints one line per path:  NAME OFFSET SIZE
  NAME    the path as given
  OFFSET  byte offset from the start of the struct ("-" if there is no such member)
  SIZE    byte size of the member
With "()" after the path of a function pointer, OFFSET is the number of its
parameters instead.
A path step through an anonymous struct or union is found by itself; a step
through an array takes element 0.
"""
import struct
import sys

INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, \
    FUNC, FUNC_PROTO, VAR, DATASEC, FLOAT, DECL_TAG, TYPE_TAG, ENUM64 = range(1, 20)


def btf_section(path):
    d = open(path, "rb").read()
    if d[:4] != b"\x7fELF":
        return d
    shoff, = struct.unpack_from("<Q", d, 0x28)
    shentsize, shnum, shstrndx = struct.unpack_from("<HHH", d, 0x3a)
    secs = [struct.unpack_from("<IIQQQQ", d, shoff + i * shentsize) for i in range(shnum)]
    names = secs[shstrndx][4]
    for name, _t, _f, _a, off, size in secs:
        s = d[names + name:d.index(b"\0", names + name)]
        if s == b".BTF":
            return d[off:off + size]
    sys.exit("no .BTF section in " + path)


class Btf:
    def __init__(self, d):
        magic, _v, _f, hlen, toff, tlen, soff, slen = struct.unpack_from("<HBBIIIII", d, 0)
        assert magic == 0xeb9f, "not BTF"
        self.strs = d[hlen + soff:hlen + soff + slen]
        self.types = [None]
        self.structs = {}
        at, end = hlen + toff, hlen + toff + tlen
        while at < end:
            name, info, size = struct.unpack_from("<III", d, at)
            at += 12
            kind, vlen, kflag = (info >> 24) & 0x1f, info & 0xffff, info >> 31
            extra = None
            if kind == ARRAY:
                extra = struct.unpack_from("<III", d, at)
                at += 12
            elif kind in (STRUCT, UNION):
                extra = [struct.unpack_from("<III", d, at + 12 * i) for i in range(vlen)]
                at += 12 * vlen
            elif kind in (INT, VAR, DECL_TAG):
                at += 4
            elif kind == FUNC_PROTO:
                extra = [struct.unpack_from("<II", d, at + 8 * i) for i in range(vlen)]
                at += 8 * vlen
            elif kind == ENUM:
                at += 8 * vlen
            elif kind in (DATASEC, ENUM64):
                at += 12 * vlen
            self.types.append((kind, name, size, extra, kflag))
            if kind == STRUCT and name:
                self.structs.setdefault(self.str(name), len(self.types) - 1)

    def str(self, off):
        return self.strs[off:self.strs.index(b"\0", off)].decode()

    def strip(self, tid):
        while self.types[tid][0] in (TYPEDEF, VOLATILE, CONST, RESTRICT, TYPE_TAG):
            tid = self.types[tid][2]
        return tid

    def size(self, tid):
        tid = self.strip(tid)
        kind, _n, size, extra, _k = self.types[tid]
        if kind == PTR:
            return 8
        if kind == ARRAY:
            return extra[2] * self.size(extra[0])
        return size

    def member(self, tid, want):
        """(offset, type) of a member, looking through anonymous members."""
        tid = self.strip(tid)
        while self.types[tid][0] == ARRAY:
            tid = self.strip(self.types[tid][3][0])
        kind, _n, _s, members, kflag = self.types[tid]
        if kind not in (STRUCT, UNION):
            return None
        for name, mtype, off in members:
            bits = off & 0xffffff if kflag else off
            if name and self.str(name) == want:
                return bits // 8, mtype
            if not name:
                r = self.member(mtype, want)
                if r:
                    return bits // 8 + r[0], r[1]
        return None

    def params(self, p):
        """number of parameters of a function pointer member"""
        r = self.walk(p)
        if r is None:
            return None
        ptr = self.types[self.strip(r[1])]
        proto = self.types[self.strip(ptr[2])] if ptr[0] == PTR else (None,)
        if proto[0] != FUNC_PROTO:
            return None
        return len(proto[3]), "-"

    def path(self, p):
        if p.endswith("()"):
            return self.params(p[:-2])
        r = self.walk(p)
        return r and (r[0], self.size(r[1]))

    def walk(self, p):
        """(offset, type) of what a path leads to"""
        head, *rest = p.split(".")
        tid = self.structs.get(head)
        if tid is None:
            return None
        total = 0
        for step in rest:
            r = self.member(tid, step)
            if r is None:
                return None
            total += r[0]
            tid = r[1]
        return total, tid


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    btf = Btf(btf_section(sys.argv[1]))
    for p in sys.argv[2:]:
        r = btf.path(p)
        print(p, *(r if r else ("-", "-")))


main()
