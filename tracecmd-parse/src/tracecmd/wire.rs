// SPDX-License-Identifier: GPL-2.0-or-later
//! What parent and child say to each other: frames of a kind, a length and bytes, numbers little-endian.
//!
//! Both ends are the same program, so the protocol has no version. The parent checks what it reads all the same:
//! the child shares its memory with a library that may have damaged it.

use std::io::{self, Read, Write};

use crate::bytes::Endian;
use crate::format::{EventFormat, Field, FieldKind};

/// Parent to child: open this file with these libraries.
pub(super) const OPEN: u8 = b'o';
/// Parent to child: send the events of this buffer.
pub(super) const EVENTS: u8 = b'e';
/// Child to parent: what the file is.
pub(super) const OPENED: u8 = b'O';
/// Child to parent: some events.
pub(super) const BATCH: u8 = b'B';
/// Child to parent: no more events.
pub(super) const END: u8 = b'Z';
/// Child to parent: a library is missing.
pub(super) const NO_LIBRARY: u8 = b'L';
/// Child to parent: it does not work, with a sentence.
pub(super) const FAILED: u8 = b'X';

/// No frame is longer: the formats of a kernel with every event come to 5 MB.
const FRAME_MAX: u32 = 256 << 20;

pub(super) fn send(mut to: impl Write, kind: u8, bytes: &[u8]) -> io::Result<()> {
    let len = u32::try_from(bytes.len()).map_err(|_| io::Error::other("frame too long"))?;
    let mut head = [kind, 0, 0, 0, 0];
    head[1..].copy_from_slice(&len.to_le_bytes());
    to.write_all(&head)?;
    to.write_all(bytes)
}

/// Reads a frame into `bytes` and gives its kind; `None` if the other end is gone.
pub(super) fn receive(mut from: impl Read, bytes: &mut Vec<u8>) -> io::Result<Option<u8>> {
    bytes.clear();
    let mut head = [0; 5];
    match from.read_exact(&mut head) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let len = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
    if len > FRAME_MAX {
        return Err(io::Error::other(format!("a frame of {len} bytes")));
    }
    match from.take(u64::from(len)).read_to_end(bytes) {
        Ok(n) if n == len as usize => Ok(Some(head[0])),
        Ok(_) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes values one after the other.
#[derive(Debug, Default)]
pub(super) struct Out(pub(super) Vec<u8>);

impl Out {
    pub(super) fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Bytes after their length.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        // A frame that long is refused when it is sent.
        self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.0.extend_from_slice(bytes);
    }

    fn format(&mut self, format: &EventFormat) {
        self.u16(format.id);
        self.bytes(format.system.as_bytes());
        self.bytes(format.name.as_bytes());
        self.bytes(format.print_fmt.as_bytes());
        self.u32(format.fields.len() as u32);
        for field in &format.fields {
            self.bytes(field.name.as_bytes());
            self.bytes(field.type_text.as_bytes());
            self.u32(field.offset);
            self.u32(field.size);
            let (kind, len) = match field.kind {
                FieldKind::Scalar => (0, 0),
                FieldKind::Array { len } => (1, len),
                FieldKind::DataLoc => (2, 0),
                FieldKind::RelLoc => (3, 0),
            };
            self.u16(kind);
            self.u32(len);
            self.u16(u16::from(field.signed));
        }
    }
}

/// Reads values one after the other; `None` where they end too early.
#[derive(Debug, Clone, Copy)]
pub(super) struct In<'a>(pub(super) &'a [u8]);

impl<'a> In<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        Endian::Little.u16(self.take(2)?, 0)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        Endian::Little.u32(self.take(4)?, 0)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        Endian::Little.u64(self.take(8)?, 0)
    }

    /// Bytes after their length.
    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.take(len as usize)
    }

    /// The same as text.
    pub(super) fn text(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    fn format(&mut self, endian: Endian) -> Option<EventFormat> {
        let (id, system, name, print_fmt) = (self.u16()?, self.text()?, self.text()?, self.text()?);
        let mut fields = Vec::new();
        for _ in 0..self.u32()? {
            let (name, type_text) = (self.text()?, self.text()?);
            let (offset, size) = (self.u32()?, self.u32()?);
            let (kind, len) = (self.u16()?, self.u32()?);
            let kind = match kind {
                0 => FieldKind::Scalar,
                1 => FieldKind::Array { len },
                2 => FieldKind::DataLoc,
                3 => FieldKind::RelLoc,
                _ => return None,
            };
            // As the native reader demands of a format text.
            offset.checked_add(size)?;
            fields.push(Field { name, type_text, offset, size, signed: self.u16()? != 0, kind });
        }
        Some(EventFormat { id, system, name, fields, print_fmt, endian })
    }
}

/// What the library says of a file.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) endian: Endian,
    pub(super) page_size: u32,
    pub(super) long_size: u32,
    pub(super) commit_size: u32,
    pub(super) cpus: u32,
    pub(super) uname: Option<String>,
    pub(super) clock: Option<String>,
    /// Names of the instances.
    pub(super) instances: Vec<String>,
    pub(super) formats: Vec<EventFormat>,
}

impl Opened {
    pub(super) fn write(&self) -> Vec<u8> {
        let mut out = Out::default();
        out.u16(u16::from(self.endian == Endian::Big));
        for number in [self.page_size, self.long_size, self.commit_size, self.cpus] {
            out.u32(number);
        }
        for text in [&self.uname, &self.clock] {
            out.u16(u16::from(text.is_some()));
            out.bytes(text.as_deref().unwrap_or("").as_bytes());
        }
        out.u32(self.instances.len() as u32);
        for name in &self.instances {
            out.bytes(name.as_bytes());
        }
        out.u32(self.formats.len() as u32);
        for format in &self.formats {
            out.format(format);
        }
        out.0
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Opened> {
        let mut from = In(bytes);
        let endian = if from.u16()? == 0 { Endian::Little } else { Endian::Big };
        let (page_size, long_size, commit_size, cpus) = (from.u32()?, from.u32()?, from.u32()?, from.u32()?);
        let mut optional = || -> Option<Option<String>> {
            let there = from.u16()? != 0;
            let text = from.text()?;
            Some(there.then_some(text))
        };
        let (uname, clock) = (optional()?, optional()?);
        let mut instances = Vec::new();
        for _ in 0..from.u32()? {
            instances.push(from.text()?);
        }
        let mut formats = Vec::new();
        for _ in 0..from.u32()? {
            formats.push(from.format(endian)?);
        }
        Some(Opened { endian, page_size, long_size, commit_size, cpus, uname, clock, instances, formats })
    }
}

/// One event in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent<'a> {
    pub(super) ts: u64,
    pub(super) cpu: u32,
    pub(super) id: u16,
    /// Events lost just before: 0 none, negative an unknown number.
    pub(super) missed: i64,
    pub(super) data: &'a [u8],
}

impl<'a> Sent<'a> {
    pub(super) fn write(&self, out: &mut Out) {
        out.u64(self.ts);
        out.u32(self.cpu);
        out.u16(self.id);
        out.u64(self.missed as u64);
        out.bytes(self.data);
    }

    pub(super) fn read(from: &mut In<'a>) -> Option<Sent<'a>> {
        Some(Sent {
            ts: from.u64()?,
            cpu: from.u32()?,
            id: from.u16()?,
            missed: from.u64()? as i64,
            data: from.bytes()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened() -> Opened {
        let field = |name: &str, kind| Field {
            name: name.into(),
            type_text: "int".into(),
            offset: 8,
            size: 4,
            signed: true,
            kind,
        };
        Opened {
            endian: Endian::Big,
            page_size: 4096,
            long_size: 8,
            commit_size: 8,
            cpus: 3,
            uname: Some("Linux".into()),
            clock: None,
            instances: vec!["wide".into()],
            formats: vec![EventFormat {
                id: 317,
                system: "sched".into(),
                name: "sched_switch".into(),
                fields: vec![
                    field("a", FieldKind::Scalar),
                    field("b", FieldKind::Array { len: 4 }),
                    field("c", FieldKind::DataLoc),
                    field("d", FieldKind::RelLoc),
                ],
                print_fmt: "\"%d\", REC->a".into(),
                endian: Endian::Big,
            }],
        }
    }

    #[test]
    fn opened_comes_back() {
        let bytes = opened().write();
        let back = Opened::read(&bytes).unwrap();
        assert_eq!(format!("{:?}", opened()), format!("{back:?}"));
    }

    #[test]
    fn every_cut_is_refused() {
        let bytes = opened().write();
        for end in 0..bytes.len() {
            assert!(Opened::read(&bytes[..end]).is_none(), "{end}");
        }
    }

    #[test]
    fn frames_come_back() {
        let mut pipe = Vec::new();
        let event = Sent { ts: 5, cpu: 2, id: 9, missed: -1, data: b"abc" };
        let mut out = Out::default();
        event.write(&mut out);
        send(&mut pipe, BATCH, &out.0).unwrap();
        let mut bytes = Vec::new();
        assert_eq!(receive(pipe.as_slice(), &mut bytes).unwrap(), Some(BATCH));
        assert_eq!(Sent::read(&mut In(&bytes)), Some(event));
        assert_eq!(receive(&pipe[..pipe.len() - 1], &mut bytes).unwrap(), None);
        assert!(receive([BATCH, 255, 255, 255, 255].as_slice(), &mut bytes).is_err());
    }
}
