// SPDX-License-Identifier: GPL-2.0-or-later
//! One walk over a file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use tracecmd_parse::{AnyTrace, Compression, Endian, Error, Item, Meta, Select, TraceReader, open_any};

use crate::info::advice::{self, Facts};
use crate::info::beside::{self, Beside};
use crate::info::tally::{BufferInfo, Tally};
use crate::info::{FormatInfo, Info, Recorded, probes};
use crate::replay::recording::{LIBRARY_NOTE, ReaderKind, library as open_with_library};
use crate::spec::model_of;
use crate::topology::TopologySource;
use crate::trace::cut_mark::cut_mark;
use crate::trace::{Decoder, Lack};

/// Events between two calls of `tick`.
const TICK: u64 = 4096;

/// What is asked of each file.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// The buffer to say most of; `None`: the top one.
    pub buffer: Option<String>,
    /// Who reads a trace.dat.
    pub reader: ReaderKind,
    /// The machine; `None`: what lies beside the file.
    pub topology: Option<TopologySource>,
}

/// Reads `path` (`-`: standard input) once; `tick` hears now and then how many events there were.
///
/// # Errors
/// The reader's: why this is no trace, or cannot be read as one; [`Error::NoBuffer`].
pub fn read(path: &Path, ask: &Ask, tick: &mut dyn FnMut(u64)) -> Result<Info, Error> {
    let (any, library);
    let (reader, form, who): (&dyn TraceReader, Option<&'static str>, &'static str) = match ask.reader {
        ReaderKind::Native => {
            any = open_any(path)?;
            let form = match &any {
                AnyTrace::Text(text) => Some(text.form().name()),
                AnyTrace::Dat(_) | AnyTrace::Library(_) => None,
            };
            // The library steps in for a file that ours does not know.
            let who = if matches!(any, AnyTrace::Library(_)) { "tracecmd" } else { "native" };
            (any.reader(), form, who)
        }
        ReaderKind::TraceCmd => {
            library = open_with_library(path)?;
            (&library, None, "tracecmd")
        }
    };
    let meta = reader.meta();
    let about = ask.buffer.clone().unwrap_or_default();
    if meta.buffer(&about).is_none() {
        // The reader's own words about the buffers that there are.
        reader.cursor(&Select::buffer(&about)).map(drop)?;
    }
    let decoder = Decoder::new(reader.formats());
    let mut walked = Walked { gaps: meta.gaps.iter().map(ToString::to_string).collect(), ..Walked::default() };
    for buffer in &meta.buffers {
        walked.buffer(reader, &decoder, &buffer.name, tick);
    }
    let beside = beside::look(path, ask.topology.as_ref(), meta.kernel_release());
    Ok(assemble(path, who, reader, form, &decoder, walked, beside, about))
}

#[derive(Default)]
struct Walked {
    buffers: Vec<BufferInfo>,
    gaps: Vec<String>,
    events: u64,
}

impl Walked {
    fn buffer(&mut self, reader: &dyn TraceReader, decoder: &Decoder, name: &str, tick: &mut dyn FnMut(u64)) {
        let mut tally = Tally::default();
        let before = self.events;
        let done = walk(reader, decoder, name, &mut tally, &mut |events| tick(before + events));
        self.events += tally.events();
        let mut info = tally.finish(name, reader.formats());
        match done {
            Ok(gaps) => gaps.into_iter().for_each(|gap| {
                if !self.gaps.contains(&gap) {
                    self.gaps.push(gap);
                }
            }),
            Err(error) => info.unread = Some(error.to_string()),
        }
        self.buffers.push(info);
    }
}

/// Gives the gaps.
fn walk(
    reader: &dyn TraceReader,
    decoder: &Decoder,
    name: &str,
    tally: &mut Tally,
    tick: &mut dyn FnMut(u64),
) -> Result<Vec<String>, Error> {
    let mut cursor = reader.cursor(&Select::buffer(name))?;
    while let Some(item) = cursor.next()? {
        match item {
            Item::Event(raw) => {
                tally.event(&raw, &decoder.decode(&raw));
                if tally.events().is_multiple_of(TICK) {
                    tick(tally.events());
                }
            }
            Item::Lost { cpu, count, .. } => tally.lost(cpu, count),
            _ => {}
        }
    }
    let summary = cursor.summary();
    let mut gaps: Vec<String> = summary.gaps.iter().map(ToString::to_string).collect();
    if summary.more_gaps > 0 {
        gaps.push(format!("{} more places", summary.more_gaps));
    }
    Ok(gaps)
}

#[allow(clippy::too_many_arguments, reason = "everything that was found, once")]
fn assemble(
    path: &Path,
    who: &'static str,
    reader: &dyn TraceReader,
    form: Option<&'static str>,
    decoder: &Decoder,
    walked: Walked,
    beside: Beside,
    about: String,
) -> Info {
    let meta = reader.meta();
    let nothing = BufferInfo::default();
    let main = walked.buffers.iter().find(|buffer| buffer.name == about).unwrap_or(&nothing);
    let is_readable = |event: &str| decoder.unreadable().iter().all(|one| one.event != event);
    let mut probes = probes::find(reader.formats(), main);
    probes.retain(|probe| is_readable(&probe.event));
    let told = probes::told(&probes);
    let recorded = recorded(meta, &beside);
    let facts = Facts {
        main,
        buffers: &walked.buffers,
        recorded: &recorded,
        beside: &beside,
        probes: &probes,
        told,
        form,
        unreadable: decoder.unreadable(),
        has_context: !decoder.lacks().contains(&Lack::Context),
        has_micros: meta.notes.iter().any(|note| note.contains("6 decimals")),
        is_cut: !walked.gaps.is_empty(),
        cut: cut_mark(meta.tracecmd_version.as_deref()),
    };
    let unreadable =
        decoder.unreadable().iter().map(|one| (one, main.count(&one.event))).filter(|&(_, count)| count > 0);
    let unreadable = unreadable.map(|(one, count)| one.note(count));
    let library = (who == "tracecmd").then(|| LIBRARY_NOTE.to_owned());
    Info {
        file: path.display().to_string(),
        format: format_info(path, who, reader, form),
        replay: advice::replayable(&facts),
        missing: advice::missing(&facts),
        record: advice::record(&facts),
        probes: probes.clone(),
        traced_inputs: probes::names(told),
        notes: meta.notes.iter().cloned().chain(library).chain(unreadable).collect(),
        gaps: walked.gaps.clone(),
        recorded: recorded.clone(),
        beside: beside.clone(),
        about,
        buffers: walked.buffers,
    }
}

fn recorded(meta: &Meta, beside: &Beside) -> Recorded {
    let snapshot = beside.machine.as_ref();
    let told = meta.kernel_release();
    let kernel = told.or(snapshot.and_then(|machine| machine.kernel.as_deref())).map(str::to_owned);
    // /proc/version tells the stable version that a distribution's release name hides.
    let version = snapshot
        .filter(|machine| machine.kernel == kernel)
        .and_then(|machine| machine.kernel_version.clone())
        .or_else(|| kernel.clone());
    let model = version.as_deref().and_then(model_of);
    Recorded {
        kernel_from: kernel.as_ref().map(|_| if told.is_some() { "file" } else { "topology" }.to_owned()),
        kernel,
        machine: meta.machine().filter(|machine| *machine != "-").map(str::to_owned),
        model: model.as_ref().map(|model| model.spec.to_string()),
        model_is_exact: model.as_ref().is_some_and(|model| model.exact),
        model_why: model.map(|model| model.why),
        cpus: meta.cpus,
        clock: meta.clock.clone(),
        clock_is_ns: meta.clock_is_ns(),
        overrun: overrun(&meta.cpustat),
    }
}

/// Sum of what the ring buffer's statistics say was overwritten or dropped.
///
/// **Source**: kernel/trace/trace.c, tracing_stats_read().
fn overrun(cpustat: &[String]) -> Option<u64> {
    let mut sum = None;
    for line in cpustat.iter().flat_map(|text| text.lines()) {
        let Some((key, value)) = line.split_once(':') else { continue };
        if matches!(key.trim(), "overrun" | "commit overrun" | "dropped events")
            && let Ok(value) = value.trim().parse::<u64>()
        {
            sum = Some(sum.unwrap_or(0_u64).saturating_add(value));
        }
    }
    sum
}

fn format_info(path: &Path, who: &str, reader: &dyn TraceReader, form: Option<&'static str>) -> FormatInfo {
    let meta = reader.meta();
    let of_dat = form.is_none();
    let mut options: Vec<String> = Vec::new();
    for option in &meta.options {
        let name = option.name.map_or_else(|| format!("option {}", option.id), str::to_owned);
        if name != "DONE" && !options.contains(&name) {
            options.push(name);
        }
    }
    let layout = meta.buffers.first().map(|buffer| buffer.layout);
    let file = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
    FormatInfo {
        kind: if of_dat { "trace.dat" } else { "text" }.to_owned(),
        version: of_dat.then_some(meta.version),
        form: form.map(str::to_owned),
        endian: of_dat.then(|| if meta.endian == Endian::Little { "little" } else { "big" }.to_owned()),
        long_bytes: of_dat.then(|| layout.map_or(u32::from(meta.long_size), |layout| layout.commit_size)),
        page_bytes: of_dat.then_some(meta.page_size),
        compression: of_dat.then(|| match meta.compression {
            Compression::None => "none".to_owned(),
            packed => packed.name().to_owned(),
        }),
        packed: packed(path).map(str::to_owned),
        bytes: file.map(|meta| meta.len()),
        reader: who.to_owned(),
        tracecmd: meta.tracecmd_version.clone(),
        options,
        formats: if of_dat { reader.formats().len() as u64 } else { 0 },
        comms: meta.comms.len() as u64,
        has_kallsyms: meta.kallsyms.is_some(),
    }
}

/// What a file is packed with, by its first bytes.
fn packed(path: &Path) -> Option<&'static str> {
    if !std::fs::metadata(path).is_ok_and(|meta| meta.is_file()) {
        return None;
    }
    let mut first = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut first)).ok()?;
    match first {
        [0x1f, 0x8b, ..] => Some("gzip"),
        [0x28, 0xb5, 0x2f, 0xfd] => Some("zstd"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_the_ring_buffer_tell_what_was_overwritten() {
        let of = |text: &str| overrun(&[text.to_owned()]);
        assert_eq!(
            of("CPU: 0\nentries: 9\noverrun: 5\ncommit overrun: 1\ndropped events: 2\nread events: 9\n"),
            Some(8)
        );
        assert_eq!(of("CPU: 0\nentries: 9\noverrun: 0\n"), Some(0));
        assert_eq!(of("CPU: 0\nentries: 9\n"), None);
        assert_eq!(overrun(&[]), None);
    }
}
