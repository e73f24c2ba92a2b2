// SPDX-License-Identifier: GPL-2.0-or-later
//! The options of a head as numbers and data.

use super::head::Head;
use super::out::Bytes;
use crate::bytes::Endian;
use crate::options as id;
use crate::time::TimeShift;

/// The options that do not depend on the version.
pub(super) fn of(head: &Head, endian: Endian) -> Vec<(u16, Vec<u8>)> {
    let mut all: Vec<(u16, Vec<u8>)> = Vec::new();
    let mut text = |id: u16, text: &str| all.push((id, format!("{text}\0").into_bytes()));
    if let Some(clock) = &head.clock {
        text(id::TRACECLOCK, &format!("[{clock}]"));
    }
    if let Some(uname) = &head.uname {
        text(id::UNAME, uname);
    }
    if let Some(version) = &head.tracecmd_version {
        text(id::VERSION, version);
    }
    if head.ts_offset_ns != 0 {
        text(id::OFFSET, &head.ts_offset_ns.to_string());
    }
    for stat in &head.cpustat {
        text(id::CPUSTAT, stat);
    }
    for map in &head.proc_maps {
        text(id::PROCMAPS, map);
    }
    if let Some(trace_id) = head.trace_id {
        let mut data = Bytes::new(endian);
        data.u64(trace_id);
        all.push((id::TRACEID, data.bytes));
    }
    if let Some(shift) = &head.time_shift {
        all.push((id::TIME_SHIFT, time_shift(shift, endian)));
    }
    if let Some(tsc) = head.tsc_to_ns {
        let mut data = Bytes::new(endian);
        data.u32(tsc.mult);
        data.u32(tsc.shift);
        data.u64(tsc.offset);
        all.push((id::TSC2NSEC, data.bytes));
    }
    all.extend(head.more_options.iter().cloned());
    all
}

fn time_shift(shift: &TimeShift, endian: Endian) -> Vec<u8> {
    let mut data = Bytes::new(endian);
    data.u64(shift.peer_trace_id);
    data.u32(shift.flags);
    data.u32(shift.cpus.len() as u32);
    for samples in &shift.cpus {
        data.u32(samples.len() as u32);
        samples.iter().for_each(|s| data.u64(s.time as u64));
        samples.iter().for_each(|s| data.u64(s.offset as u64));
        samples.iter().for_each(|s| data.u64(s.scaling as u64));
    }
    for samples in &shift.cpus {
        samples.iter().for_each(|s| data.u64(s.fraction as u64));
    }
    data.bytes
}
