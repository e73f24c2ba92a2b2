// SPDX-License-Identifier: GPL-2.0-or-later
//! The child: the only process that the C library runs in.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::Error;

use super::Libraries;
use super::ffi::Api;
use super::handle::{Handle, Record};
use super::wire::{self, In, Opened, Out, Sent};

/// Bytes of a batch before it is sent.
const BATCH_BYTES: usize = 128 << 10;
/// What the library may take beside what the process has: so many times the file, and this beyond, bytes.
const MEMORY_TIMES: u64 = 4;
const MEMORY_ALWAYS: u64 = 64 << 20;

/// Serves the one who started this process, over its standard input (a socket).
pub(super) fn serve() -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut bytes = Vec::new();
    if wire::receive(&socket, &mut bytes)? != Some(wire::OPEN) {
        return Ok(());
    }
    let Some((libraries, path)) = read_request(&bytes) else {
        return failed(&socket, "did not understand what to open");
    };
    bound_memory(path);
    let api = match Api::load(&libraries) {
        Ok(api) => Box::leak(Box::new(api)),
        Err(Error::Library { name, why }) => {
            let mut out = Out::default();
            out.bytes(name.as_bytes());
            out.bytes(why.as_bytes());
            return wire::send(&socket, wire::NO_LIBRARY, &out.0);
        }
        Err(other) => return failed(&socket, &other.to_string()),
    };
    let Some(handle) = Handle::open(api, path) else {
        return failed(&socket, "refused the file");
    };
    wire::send(&socket, wire::OPENED, &opened(&handle).write())?;
    match wire::receive(&socket, &mut bytes)? {
        Some(wire::EVENTS) => {}
        _ => return Ok(()),
    }
    // An empty name is the top buffer, which is the handle itself.
    let instance = match handle.instances().iter().position(|name| *name == bytes) {
        _ if bytes.is_empty() => None,
        None => return failed(&socket, "has no buffer of that name"),
        Some(at) => match handle.instance(at) {
            None => return failed(&socket, "refused the buffer"),
            instance => instance,
        },
    };
    send_events(&socket, instance.as_ref().unwrap_or(&handle))?;
    wire::send(&socket, wire::END, b"")
}

/// The library makes room for what a file declares, CPUs by the million for one: bounded as the native reader's memory is.
/// Where the system tells too little or refuses, there is no bound.
fn bound_memory(path: &Path) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmData:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let (Some(kib), Ok(file)) = (kib, path.metadata()) else { return };
    let most = (kib << 10).saturating_add(file.len().saturating_mul(MEMORY_TIMES)).saturating_add(MEMORY_ALWAYS);
    let limit = Rlimit { current: Some(most), maximum: getrlimit(Resource::Data).maximum };
    let _ = setrlimit(Resource::Data, limit);
}

/// What the parent writes: both libraries and the file.
pub(super) fn write_request(libraries: &Libraries, path: &Path) -> Vec<u8> {
    let mut out = Out::default();
    out.bytes(libraries.tracecmd.as_bytes());
    out.bytes(libraries.traceevent.as_bytes());
    out.bytes(path.as_os_str().as_bytes());
    out.0
}

fn read_request(bytes: &[u8]) -> Option<(Libraries, &Path)> {
    let mut from = In(bytes);
    let libraries = Libraries { tracecmd: from.text()?, traceevent: from.text()? };
    Some((libraries, Path::new(std::ffi::OsStr::from_bytes(from.bytes()?))))
}

fn failed(socket: &UnixStream, what: &str) -> io::Result<()> {
    wire::send(socket, wire::FAILED, what.as_bytes())
}

fn opened(handle: &Handle) -> Opened {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let [page_size, long_size, commit_size] = handle.sizes();
    Opened {
        endian: handle.endian(),
        page_size,
        long_size,
        commit_size,
        cpus: u32::try_from(handle.cpus()).unwrap_or(u32::MAX),
        uname: handle.uname().map(text),
        clock: handle.clock().map(text),
        instances: handle.instances().into_iter().map(text).collect(),
        formats: handle.formats(),
    }
}

/// All events, merged by time, then CPU, then position.
///
/// Not tracecmd_iterate_events(): it knows the top buffer only, and looks at every CPU for each event.
fn send_events(socket: &UnixStream, handle: &Handle) -> io::Result<()> {
    let mut heads: Vec<Option<Record<'_>>> = (0..handle.cpus()).map(|at| handle.read(at)).collect();
    let mut heap: BinaryHeap<_> = heads.iter().enumerate().filter_map(key).collect();
    let mut out = Out(Vec::with_capacity(BATCH_BYTES * 2));
    while let Some(Reverse((_, _, at))) = heap.pop() {
        let Some(record) = heads[at].take() else {
            continue;
        };
        // An event too short to have a type is damage; so is a type beyond 16 bits, which it is stored in.
        let Some(id) = record.id() else {
            return failed(socket, "found an event without a type");
        };
        let (ts, cpu, missed) = (record.ts(), record.cpu(), record.missed());
        Sent { ts, cpu, id, missed, data: record.data() }.write(&mut out);
        // Given back before the next is read, as the library expects.
        drop(record);
        heads[at] = handle.read(at);
        heap.extend(key((at, &heads[at])));
        if out.0.len() >= BATCH_BYTES {
            wire::send(socket, wire::BATCH, &out.0)?;
            out.0.clear();
        }
    }
    wire::send(socket, wire::BATCH, &out.0)
}

/// Time, CPU, place in `heads`; the smallest first.
fn key((at, head): (usize, &Option<Record<'_>>)) -> Option<Reverse<(u64, u32, usize)>> {
    head.as_ref().map(|record| Reverse((record.ts(), record.cpu(), at)))
}
