// SPDX-License-Identifier: GPL-2.0-or-later
//! The file, from its first byte to its last.

use std::io::{Seek, Write};

use super::head::{Head, Shape};
use super::out::{Bytes, Out, u32};
use super::page::{PageBuilder, Stamp};
use super::{WriteError, options, sections};
use crate::compress::{Compression, pack};
use crate::header::MAGIC;
use crate::options as id;
use crate::v6::FLYRECORD;

/// As many pages as trace-cmd puts into a chunk.
const CHUNK_PAGES: usize = 10;
const STRINGS: u16 = 15;

/// Writes one trace.
pub struct TraceWriter<W> {
    out: Out<W>,
    shape: Shape,
    clock: String,
    cpus: u32,
    /// Names of the buffers, and (version 6) where the offset of each is to be filled in.
    buffers: Vec<(String, Option<u64>)>,
    /// Version 7: where the offset of the next options is to be filled in.
    next_options: u64,
    /// Version 7: BUFFER options so far.
    tables: Vec<Vec<u8>>,
    /// Version 7: descriptions of sections, NUL after each.
    strings: Vec<u8>,
    buffer: Option<BufferState>,
    cpu: Option<CpuState>,
}

/// The buffer that is being written.
struct BufferState {
    name: String,
    /// Where it starts: its mark or its section.
    start: u64,
    /// CPU, offset, size.
    cpus: Vec<(u32, u64, u64)>,
    /// Version 6: where the table is.
    table: u64,
}

/// The CPU that is being written.
struct CpuState {
    cpu: u32,
    start: u64,
    page: PageBuilder,
    /// Pages for the next chunk.
    pending: Vec<u8>,
    chunks: u32,
}

impl<W: Write + Seek> TraceWriter<W> {
    /// Writes everything that comes before the events. `buffers` are the names
    /// of trace instances besides the top buffer.
    ///
    /// # Errors
    /// A shape that does not exist, a text that is too long, or the operating system's.
    pub fn new(out: W, shape: &Shape, head: &Head, buffers: &[&str]) -> Result<TraceWriter<W>, WriteError> {
        shape.check()?;
        let names = std::iter::once("").chain(buffers.iter().copied());
        let mut writer = TraceWriter {
            out: Out::new(out, shape.endian),
            shape: shape.clone(),
            clock: head.clock.clone().unwrap_or_default(),
            cpus: head.cpus,
            buffers: names.map(|name| (name.to_string(), None)).collect(),
            next_options: 0,
            tables: Vec::new(),
            strings: vec![0],
            buffer: None,
            cpu: None,
        };
        let mut first = Bytes::new(shape.endian);
        first.put(MAGIC);
        first.cstr(&shape.version.to_string());
        first.put(&[u8::from(shape.endian == crate::Endian::Big), shape.long_size]);
        first.u32(shape.page_size);
        writer.out.put(&first.bytes)?;
        if shape.version == 6 {
            writer.head_v6(head)?
        } else {
            writer.head_v7(head)?
        }
        Ok(writer)
    }

    fn head_v6(&mut self, head: &Head) -> Result<(), WriteError> {
        let endian = self.shape.endian;
        self.out.put(&sections::header_info(&self.shape.layout()))?;
        self.out.put(&sections::ftrace_formats(head, endian))?;
        self.out.put(&sections::event_formats(head, endian))?;
        self.out.put(&sections::text4(&head.kallsyms, "kallsyms", endian)?)?;
        self.out.put(&sections::text4(&head.printk_formats, "printk formats", endian)?)?;
        self.out.put(&sections::cmdlines(head, endian))?;
        self.out.put(&u32(endian, head.cpus))?;
        self.out.put(b"options  \0")?;
        for (id, data) in options::of(head, endian) {
            self.option(id, &data)?;
        }
        for at in 1..self.buffers.len() {
            let mut data = Bytes::new(endian);
            data.u64(0);
            data.cstr(&self.buffers[at].0);
            // The offset comes when the buffer is written: behind number and size.
            self.buffers[at].1 = Some(self.out.pos() + 6);
            self.option(id::BUFFER, &data.bytes)?;
        }
        let mut done = Bytes::new(endian);
        done.u16(id::DONE);
        self.out.put(&done.bytes)
    }

    fn option(&mut self, id: u16, data: &[u8]) -> Result<(), WriteError> {
        let bytes = option_bytes(id, data, self.shape.endian)?;
        self.out.put(&bytes)
    }

    fn head_v7(&mut self, head: &Head) -> Result<(), WriteError> {
        let endian = self.shape.endian;
        let version = match self.shape.compression {
            Compression::None => "",
            Compression::Zlib => "1.2.13",
            Compression::Zstd => "1.5.4",
        };
        let mut names = Bytes::new(endian);
        names.cstr(self.shape.compression.name());
        names.cstr(version);
        self.out.put(&names.bytes)?;
        let first_options = self.out.pos();
        self.out.put(&[0; 8])?;

        let layout = self.shape.layout();
        let mut targets = vec![
            (id::HEADER_INFO, self.section(id::HEADER_INFO, "headers", &sections::header_info(&layout))?),
            (
                id::FTRACE_EVENTS,
                self.section(id::FTRACE_EVENTS, "ftrace events", &sections::ftrace_formats(head, endian))?,
            ),
            (
                id::EVENT_FORMATS,
                self.section(id::EVENT_FORMATS, "events format", &sections::event_formats(head, endian))?,
            ),
        ];
        let texts = [(id::KALLSYMS, "kallsyms", &head.kallsyms), (id::PRINTK, "printk", &head.printk_formats)];
        for (id, what, text) in texts {
            if !text.is_empty() {
                let bytes = sections::text4(text, what, endian)?;
                targets.push((id, self.section(id, what, &bytes)?));
            }
        }
        targets.push((id::CMDLINES, self.section(id::CMDLINES, "command lines", &sections::cmdlines(head, endian))?));

        let mut all: Vec<(u16, Vec<u8>)> = Vec::new();
        for (id, at) in targets {
            let mut data = Bytes::new(endian);
            data.u64(at);
            all.push((id, data.bytes));
        }
        all.extend(options::of(head, endian));
        all.push((id::CPUCOUNT, u32(endian, head.cpus).to_vec()));
        let at = self.options_section(&all)?;
        self.out.patch_u64(first_options, at)
    }

    /// Writes an options section; gives where it is.
    fn options_section(&mut self, all: &[(u16, Vec<u8>)]) -> Result<u64, WriteError> {
        let mut bytes = Vec::new();
        for (id, data) in all {
            bytes.extend(option_bytes(*id, data, self.shape.endian)?);
        }
        bytes.extend(option_bytes(id::DONE, &[0; 8], self.shape.endian)?);
        let at = self.section_header(id::DONE, "options", false, bytes.len() as u64)?;
        self.out.put(&bytes)?;
        self.next_options = self.out.pos() - 8;
        Ok(at)
    }

    fn section_header(&mut self, id: u16, what: &str, compressed: bool, size: u64) -> Result<u64, WriteError> {
        let at = self.out.pos();
        let mut header = Bytes::new(self.shape.endian);
        header.u16(id);
        header.u16(u16::from(compressed));
        header.u32(self.strings.len() as u32);
        header.u64(size);
        self.strings.extend_from_slice(what.as_bytes());
        self.strings.push(0);
        self.out.put(&header.bytes)?;
        Ok(at)
    }

    /// Writes a section, compressed if the file is; gives where it is.
    fn section(&mut self, id: u16, what: &str, bytes: &[u8]) -> Result<u64, WriteError> {
        let compressed = self.shape.compression != Compression::None;
        if !compressed {
            let at = self.section_header(id, what, false, bytes.len() as u64)?;
            self.out.put(bytes)?;
            return Ok(at);
        }
        let packed = packed(self.shape.compression, bytes, self.shape.endian)?;
        let at = self.section_header(id, what, true, packed.len() as u64)?;
        self.out.put(&packed)?;
        Ok(at)
    }

    /// Starts a buffer; the top one is `""` and comes first in version 6.
    ///
    /// # Errors
    /// [`WriteError::Order`] if the name was not announced or the buffer was written.
    pub fn start_buffer(&mut self, name: &str) -> Result<(), WriteError> {
        self.end_buffer()?;
        let Some(at) = self.buffers.iter().position(|(n, _)| n == name) else {
            return Err(WriteError::Order(format!("buffer {name:?} was not announced, or is written already")));
        };
        let (name, offset_at) = self.buffers.remove(at);
        let start = self.out.pos();
        let mut table = 0;
        if self.shape.version == 6 {
            if !name.is_empty() && self.buffers.iter().any(|(n, _)| n.is_empty()) {
                return Err(WriteError::Order("the top buffer has to be written first in version 6".into()));
            }
            if let Some(offset_at) = offset_at {
                self.out.patch_u64(offset_at, start)?;
            }
            self.out.put(FLYRECORD)?;
            table = self.out.pos();
            self.out.put(&vec![0; 16 * self.cpus as usize])?;
            if !self.clock.is_empty() {
                let mut clock = Bytes::new(self.shape.endian);
                clock.text8(format!("[{}]", self.clock).as_bytes());
                self.out.put(&clock.bytes)?;
            }
        } else {
            let compressed = self.shape.compression != Compression::None;
            self.section_header(id::BUFFER, &format!("buffer flyrecord {name}"), compressed, 0)?;
        }
        self.buffer = Some(BufferState { name, start, cpus: Vec::new(), table });
        Ok(())
    }

    /// Starts a CPU of the buffer.
    ///
    /// # Errors
    /// [`WriteError::Order`] if no buffer was started, the CPU was written, or
    /// (version 6) is beyond the head's number of CPUs.
    pub fn start_cpu(&mut self, cpu: u32) -> Result<(), WriteError> {
        self.end_cpu()?;
        let Some(buffer) = &self.buffer else {
            return Err(WriteError::Order(format!("CPU {cpu} is started before a buffer")));
        };
        if buffer.cpus.iter().any(|(c, _, _)| *c == cpu) {
            return Err(WriteError::Order(format!("CPU {cpu} is written already")));
        }
        if self.shape.version == 6 && cpu >= self.cpus {
            return Err(WriteError::Order(format!("CPU {cpu} is beyond the {} CPUs of the head", self.cpus)));
        }
        self.out.pad(u64::from(self.shape.page_size))?;
        self.cpu = Some(CpuState {
            cpu,
            start: self.out.pos(),
            page: PageBuilder::new(self.shape.layout()),
            pending: Vec::new(),
            chunks: 0,
        });
        Ok(())
    }

    /// Adds an event of the CPU: its raw clock value and its data with common fields.
    ///
    /// # Errors
    /// [`WriteError::EventSize`], [`WriteError::Order`] without a CPU.
    pub fn event(&mut self, ts: u64, data: &[u8]) -> Result<(), WriteError> {
        self.stamped_event(ts, data, Stamp::Delta)
    }

    /// As [`TraceWriter::event`], with a choice how the time is written.
    ///
    /// # Errors
    /// As there.
    pub fn stamped_event(&mut self, ts: u64, data: &[u8], stamp: Stamp) -> Result<(), WriteError> {
        if !self.cpu()?.page.event(ts, data, stamp)? {
            self.end_page()?;
            if !self.cpu()?.page.event(ts, data, stamp)? {
                return Err(WriteError::EventSize { found: data.len(), limit: self.cpu()?.page.event_max() });
            }
        }
        Ok(())
    }

    /// Adds a discarded event of the CPU, which readers pass over. It takes one
    /// nanosecond at least.
    ///
    /// # Errors
    /// [`WriteError::EventSize`], [`WriteError::Order`] without a CPU.
    pub fn discarded(&mut self, ts: u64, bytes: u32) -> Result<(), WriteError> {
        let limit = self.cpu()?.page.event_max();
        if bytes as usize > limit {
            return Err(WriteError::EventSize { found: bytes as usize, limit });
        }
        if !self.cpu()?.page.discarded(ts, bytes) {
            self.end_page()?;
            self.cpu()?.page.discarded(ts, bytes);
        }
        Ok(())
    }

    /// Says that events of the CPU were lost here.
    ///
    /// # Errors
    /// [`WriteError::Order`] without a CPU.
    pub fn lost(&mut self, count: Option<u64>) -> Result<(), WriteError> {
        if !self.cpu()?.page.is_empty() {
            self.end_page()?;
        }
        self.cpu()?.page.lost(count);
        Ok(())
    }

    /// Ends the page of the CPU: the next event begins another.
    ///
    /// # Errors
    /// [`WriteError::Order`] without a CPU.
    pub fn end_page(&mut self) -> Result<(), WriteError> {
        let compression = self.shape.compression;
        let cpu = self.cpu()?;
        if cpu.page.is_empty() {
            return Ok(());
        }
        let page = cpu.page.finish();
        if compression == Compression::None {
            return self.out.put(&page);
        }
        cpu.pending.extend_from_slice(&page);
        if cpu.pending.len() >= CHUNK_PAGES * page.len() {
            self.end_chunk()?;
        }
        Ok(())
    }

    fn cpu(&mut self) -> Result<&mut CpuState, WriteError> {
        self.cpu.as_mut().ok_or_else(|| WriteError::Order("an event is given before a CPU is started".into()))
    }

    fn end_chunk(&mut self) -> Result<(), WriteError> {
        let (compression, endian) = (self.shape.compression, self.shape.endian);
        let cpu = self.cpu()?;
        if cpu.pending.is_empty() {
            return Ok(());
        }
        let bytes = packed(compression, &cpu.pending, endian)?;
        cpu.pending.clear();
        cpu.chunks += 1;
        if cpu.chunks == 1 {
            // The number of chunks, filled in at the end.
            self.out.put(&[0; 4])?;
        }
        self.out.put(&bytes)
    }

    fn end_cpu(&mut self) -> Result<(), WriteError> {
        if self.cpu.is_none() {
            return Ok(());
        }
        self.end_page()?;
        self.end_chunk()?;
        let Some(cpu) = self.cpu.take() else {
            return Ok(());
        };
        let mut size = self.out.pos() - cpu.start;
        if cpu.chunks > 0 {
            self.out.patch(cpu.start, &u32(self.shape.endian, cpu.chunks))?;
            // As trace-cmd does: the number of chunks is not part of the size.
            size -= 4;
        }
        if let Some(buffer) = &mut self.buffer {
            buffer.cpus.push((cpu.cpu, cpu.start, size));
        }
        Ok(())
    }

    fn end_buffer(&mut self) -> Result<(), WriteError> {
        self.end_cpu()?;
        let Some(buffer) = self.buffer.take() else {
            return Ok(());
        };
        if self.shape.version == 6 {
            // A CPU without data has a place, too.
            let here = self.out.pos();
            let empty = (0..self.cpus).filter(|cpu| buffer.cpus.iter().all(|(c, _, _)| c != cpu));
            let all: Vec<_> = buffer.cpus.iter().copied().chain(empty.map(|cpu| (cpu, here, 0))).collect();
            for (cpu, offset, size) in all {
                let at = buffer.table + 16 * u64::from(cpu);
                self.out.patch_u64(at, offset)?;
                self.out.patch_u64(at + 8, size)?;
            }
            return Ok(());
        }
        // Behind number, flags and description of the section.
        let size = self.out.pos() - buffer.start - 16;
        self.out.patch_u64(buffer.start + 8, size)?;
        let mut table = Bytes::new(self.shape.endian);
        table.u64(buffer.start);
        table.cstr(&buffer.name);
        table.cstr(&self.clock);
        table.u32(self.shape.page_size);
        table.u32(buffer.cpus.len() as u32);
        for (cpu, offset, size) in buffer.cpus {
            table.u32(cpu);
            table.u64(offset);
            table.u64(size);
        }
        self.tables.push(table.bytes);
        Ok(())
    }

    /// Ends the file; gives back what it was written to.
    ///
    /// # Errors
    /// The operating system's, [`WriteError::Order`] if an announced buffer is missing.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.end_buffer()?;
        if let Some((name, _)) = self.buffers.first() {
            return Err(WriteError::Order(format!("buffer {name:?} was announced and not written")));
        }
        if self.shape.version == 7 {
            let link = self.next_options;
            let tables: Vec<_> = self.tables.drain(..).map(|table| (id::BUFFER, table)).collect();
            let at = self.options_section(&tables)?;
            self.out.patch_u64(link, at)?;
            let strings = std::mem::take(&mut self.strings);
            self.strings.push(0);
            self.section_header(STRINGS, "", false, strings.len() as u64)?;
            self.out.put(&strings)?;
        }
        self.out.finish()
    }
}

fn option_bytes(id: u16, data: &[u8], endian: crate::Endian) -> Result<Vec<u8>, WriteError> {
    let limit = u64::from(u32::MAX);
    let size =
        u32::try_from(data.len()).map_err(|_| WriteError::Size { what: "option", found: data.len() as u64, limit })?;
    let mut out = Bytes::new(endian);
    out.u16(id);
    out.u32(size);
    out.put(data);
    Ok(out.bytes)
}

/// Sizes, then the compressed bytes.
fn packed(method: Compression, bytes: &[u8], endian: crate::Endian) -> Result<Vec<u8>, WriteError> {
    let packed = pack(method, bytes)?;
    let limit = u64::from(u32::MAX);
    let size =
        |len: usize| u32::try_from(len).map_err(|_| WriteError::Size { what: "section", found: len as u64, limit });
    let mut out = Bytes::new(endian);
    out.u32(size(packed.len())?);
    out.u32(size(bytes.len())?);
    out.put(&packed);
    Ok(out.bytes)
}
