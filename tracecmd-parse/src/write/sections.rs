// SPDX-License-Identifier: GPL-2.0-or-later
//! The parts of a head as bytes, the same in both versions.

use super::head::Head;
use super::out::Bytes;
use super::{WriteError, text};
use crate::bytes::Endian;
use crate::page::PageLayout;

pub(super) fn header_info(layout: &PageLayout) -> Vec<u8> {
    let mut out = Bytes::new(layout.endian);
    out.cstr("header_page");
    out.text8(text::header_page(layout).as_bytes());
    out.cstr("header_event");
    out.text8(text::header_event().as_bytes());
    out.bytes
}

pub(super) fn ftrace_formats(head: &Head, endian: Endian) -> Vec<u8> {
    let mut out = Bytes::new(endian);
    let formats: Vec<_> = head.formats.iter().filter(|f| f.system == "ftrace").collect();
    out.u32(formats.len() as u32);
    formats.iter().for_each(|f| out.text8(f.text.as_bytes()));
    out.bytes
}

pub(super) fn event_formats(head: &Head, endian: Endian) -> Vec<u8> {
    let mut out = Bytes::new(endian);
    let formats: Vec<_> = head.formats.iter().filter(|f| f.system != "ftrace").collect();
    let systems: Vec<_> = formats.chunk_by(|a, b| a.system == b.system).collect();
    out.u32(systems.len() as u32);
    for formats in systems {
        out.cstr(&formats[0].system);
        out.u32(formats.len() as u32);
        formats.iter().for_each(|f| out.text8(f.text.as_bytes()));
    }
    out.bytes
}

/// A text behind its 4-byte length: symbols and printk formats.
pub(super) fn text4(text: &[u8], what: &'static str, endian: Endian) -> Result<Vec<u8>, WriteError> {
    let mut out = Bytes::new(endian);
    let limit = u64::from(u32::MAX);
    let len = u32::try_from(text.len()).map_err(|_| WriteError::Size { what, found: text.len() as u64, limit })?;
    out.u32(len);
    out.put(text);
    Ok(out.bytes)
}

pub(super) fn cmdlines(head: &Head, endian: Endian) -> Vec<u8> {
    let lines: String = head.comms.iter().map(|(pid, comm)| format!("{pid} {comm}\n")).collect();
    let mut out = Bytes::new(endian);
    out.text8(lines.as_bytes());
    out.bytes
}
