// SPDX-License-Identifier: GPL-2.0-or-later
//! The reader's outside: open a file, ask what it is, walk its events.

use std::path::{Path, PathBuf};

use crate::compress::Decompressor;
use crate::cursor::{EventCursor, Merge};
use crate::error::Error;
use crate::format::Formats;
use crate::header;
use crate::meta::{Buffer, Meta};
use crate::packed::Growth;
use crate::source::Source;
use crate::stream::{GROWS_FREELY, Shared, Stream};
use crate::time::TimeMap;
use crate::{section, v6, v7};

/// NR_CPUS of any kernel built so far is 8192 at most.
const CPUS_MAX: u32 = 1 << 16;

/// Which events a cursor gives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Select {
    /// The buffer; the top one has an empty name and is the default.
    pub buffer: String,
}

impl Select {
    /// The top buffer.
    pub fn top() -> Select {
        Select::default()
    }

    /// The buffer (trace instance) of that name.
    pub fn buffer(name: impl Into<String>) -> Select {
        Select { buffer: name.into() }
    }
}

/// A reader of trace.dat files.
pub trait TraceReader {
    /// What the trace says about itself.
    fn meta(&self) -> &Meta;

    /// The formats of its events.
    fn formats(&self) -> &Formats;

    /// A walk over the events of one buffer from the start, merged across CPUs.
    ///
    /// # Errors
    /// [`Error::NoBuffer`], or what reading the first page of each CPU gives.
    fn cursor(&self, select: &Select) -> Result<Box<dyn EventCursor + '_>, Error>;
}

/// The native reader.
///
/// It reads by position and keeps no more than one chunk (or eight pages) for
/// each CPU, whatever the length of the file.
#[derive(Debug)]
pub struct TraceFile {
    path: Option<PathBuf>,
    source: Source,
    meta: Meta,
    formats: Formats,
}

impl TraceFile {
    /// Opens a file and reads everything but the events.
    ///
    /// # Errors
    /// [`Error::InFile`] with what is wrong. A file that was cut inside the
    /// events opens; what is missing is told while they are read.
    pub fn open(path: impl AsRef<Path>) -> Result<TraceFile, Error> {
        let path = path.as_ref();
        Source::open(path)
            .and_then(TraceFile::read)
            .map(|trace| TraceFile { path: Some(path.to_path_buf()), ..trace })
            .map_err(|error| in_file(Some(path), error))
    }

    /// Reads an open file; it must be one that can be read by position.
    ///
    /// # Errors
    /// As [`TraceFile::open`], without a file name.
    pub fn from_file(file: std::fs::File) -> Result<TraceFile, Error> {
        TraceFile::read(Source::file(file)?)
    }

    /// Reads a trace from memory.
    ///
    /// # Errors
    /// As [`TraceFile::open`], without a file name.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<TraceFile, Error> {
        TraceFile::read(Source::memory(bytes))
    }

    fn read(source: Source) -> Result<TraceFile, Error> {
        let initial = header::read_initial(&source)?;
        let (meta, formats) =
            if initial.meta.version < 7 { v6::read(&source, initial)? } else { v7::read(&source, initial)? };
        if meta.cpus > CPUS_MAX {
            return Err(Error::Limit {
                what: "number of CPUs",
                offset: 0,
                found: u64::from(meta.cpus),
                limit: u64::from(CPUS_MAX),
            });
        }
        for buffer in &meta.buffers {
            check_overlap(buffer, source.len())?;
        }
        Ok(TraceFile { path: None, source, meta, formats })
    }

    /// The text of /proc/kallsyms as it was stored, `None` if it was not.
    ///
    /// # Errors
    /// What reading or decompressing it gives.
    pub fn kallsyms(&self) -> Result<Option<Vec<u8>>, Error> {
        self.meta
            .kallsyms
            .map(|text| section::read_text(&self.source, &self.meta, text))
            .transpose()
            .map_err(|error| in_file(self.path.as_deref(), error))
    }

    /// The text of tracefs' `printk_formats` as it was stored, `None` if it was not.
    ///
    /// # Errors
    /// What reading or decompressing it gives.
    pub fn printk_formats(&self) -> Result<Option<Vec<u8>>, Error> {
        self.meta
            .printk_formats
            .map(|text| section::read_text(&self.source, &self.meta, text))
            .transpose()
            .map_err(|error| in_file(self.path.as_deref(), error))
    }

    /// A walk over the events of one CPU alone, for writing a trace CPU by CPU
    /// (see [`crate::write`]). A CPU without data has no events.
    ///
    /// # Errors
    /// As [`TraceReader::cursor`].
    pub fn cpu_cursor(&self, select: &Select, cpu: u32) -> Result<Box<dyn EventCursor + '_>, Error> {
        match self.merge(select, Some(cpu)) {
            Ok(merge) => Ok(Box::new(merge)),
            Err(error) => Err(in_file(self.path.as_deref(), error)),
        }
    }

    fn merge(&self, select: &Select, only: Option<u32>) -> Result<Merge<'_>, Error> {
        let buffer = self.meta.buffer(&select.buffer).ok_or_else(|| {
            let name = |name: &str| match name {
                "" => "the top buffer".to_string(),
                name => format!("{name:?}"),
            };
            let have: Vec<String> = self.meta.buffers.iter().map(|b| name(&b.name)).collect();
            Error::NoBuffer {
                wanted: name(&select.buffer),
                have: if have.is_empty() { "none".to_string() } else { have.join(", ") },
            }
        })?;
        let type_at = self.formats.common().map_or(0, |common| common.common_type.offset() as usize);
        let shared = Shared {
            source: &self.source,
            layout: buffer.layout,
            times: TimeMap::new(&self.meta),
            type_at,
            least: self.formats.least(),
            zeroed: self.meta.zeroes_pages(),
            decompressor: Decompressor::new(self.meta.compression),
            packed: Vec::new(),
            growth: Growth::new(GROWS_FREELY),
            block_bytes: 0,
            gaps: Vec::new(),
            more_gaps: 0,
            buffer: buffer.name.clone(),
        };
        let wanted = buffer.cpus.iter().filter(|data| only.is_none_or(|cpu| cpu == data.cpu));
        let streams = wanted.map(|data| Stream::new(data, buffer.compressed)).collect();
        Merge::new(shared, streams, self.meta.gaps.clone())
    }
}

/// The data of two CPUs cannot be at the same place.
fn check_overlap(buffer: &Buffer, file_size: u64) -> Result<(), Error> {
    let mut places: Vec<(u64, u64, u32)> = buffer
        .cpus
        .iter()
        .filter(|data| data.size > 0 && data.offset < file_size)
        .map(|data| (data.offset, data.offset.saturating_add(data.size), data.cpu))
        .collect();
    places.sort_unstable();
    for pair in places.windows(2) {
        let ((_, end, first), (start, _, second)) = (pair[0], pair[1]);
        if start < end {
            return Err(Error::invalid(
                "table of CPU buffers",
                start,
                format!("data of CPU {second} behind those of CPU {first}, which end at {end}"),
                "the same bytes for both",
            ));
        }
    }
    let mut cpus: Vec<u32> = buffer.cpus.iter().map(|data| data.cpu).collect();
    cpus.sort_unstable();
    match cpus.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            let found = format!("CPU {} twice", pair[0]);
            Err(Error::invalid("table of CPU buffers", 0, "each CPU once", found))
        }
    }
}

impl TraceReader for TraceFile {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn formats(&self) -> &Formats {
        &self.formats
    }

    fn cursor(&self, select: &Select) -> Result<Box<dyn EventCursor + '_>, Error> {
        match self.merge(select, None) {
            Ok(merge) => Ok(Box::new(merge)),
            Err(error) => Err(in_file(self.path.as_deref(), error)),
        }
    }
}

fn in_file(path: Option<&Path>, error: Error) -> Error {
    match path {
        None => error,
        Some(path) => Error::InFile { path: path.to_path_buf(), error: Box::new(error) },
    }
}
