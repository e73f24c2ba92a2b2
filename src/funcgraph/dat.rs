// SPDX-License-Identifier: GPL-2.0-or-later
//! funcgraph_entry and funcgraph_exit of a trace.dat → records.

use std::collections::BTreeMap;

use tracecmd_parse::{Error, EventFormat, FieldRef, Formats, Item, RawEvent, Select, TraceFile, TraceReader};

use crate::funcgraph::stacks::{Edge, Spot, Task, Timing};
use crate::funcgraph::symbols::Symbols;

/// What a trace.dat gives, one after the other.
#[derive(Debug)]
pub enum Record<'a> {
    /// A record of the tracer.
    Graph {
        /// Where.
        spot: Spot,
        /// The task's name, if the file knows it.
        comm: Option<&'a str>,
        /// What.
        edge: Edge<'a>,
    },
    /// Another event.
    Event,
    /// Events of a CPU are missing here.
    Lost,
    /// A record that is shorter than its format says, or ends before it starts.
    Bad(&'static str),
}

/// Where the fields of both events are.
struct Layout {
    common_pid: FieldRef,
    entry: Fields,
    exit: Fields,
}

struct Fields {
    id: u16,
    func: FieldRef,
    depth: FieldRef,
    /// Kernels differ in where they keep the times; without them the events' own have to do.
    times: Option<(FieldRef, FieldRef)>,
}

impl Fields {
    fn of(format: &EventFormat) -> Result<Fields, Error> {
        let times = format.field_ref("calltime").ok().zip(format.field_ref("rettime").ok());
        Ok(Fields { id: format.id, func: format.field_ref("func")?, depth: format.field_ref("depth")?, times })
    }
}

impl Layout {
    fn of(formats: &Formats) -> Result<Option<Layout>, Error> {
        let named = |name: &str| formats.named(name).next().map(Fields::of).transpose();
        let (Some(entry), Some(exit), Some(common)) =
            (named("funcgraph_entry")?, named("funcgraph_exit")?, formats.common())
        else {
            return Ok(None);
        };
        Ok(Some(Layout { common_pid: common.common_pid, entry, exit }))
    }
}

/// Names of functions, each looked up once.
struct Namer {
    symbols: Symbols,
    known: BTreeMap<u64, String>,
}

impl Namer {
    fn name(&mut self, address: u64) -> &str {
        let symbols = &self.symbols;
        self.known.entry(address).or_insert_with(|| symbols.name(address))
    }
}

/// Gives every event of `buffer` to `each`. `false`: the trace knows no funcgraph events.
///
/// # Errors
/// The reader's.
pub fn walk(trace: &TraceFile, buffer: &str, mut each: impl FnMut(Record<'_>)) -> Result<bool, Error> {
    let Some(layout) = Layout::of(trace.formats())? else { return Ok(false) };
    let symbols = trace.kallsyms()?.map(|text| Symbols::parse(&text)).unwrap_or_default();
    let mut namer = Namer { symbols, known: BTreeMap::new() };
    let comms = &trace.meta().comms;
    let mut cursor = trace.cursor(&Select::buffer(buffer))?;
    while let Some(item) = cursor.next()? {
        match item {
            Item::Event(event) => each(record(&event, &layout, &mut namer, comms)),
            Item::Lost { .. } => each(Record::Lost),
            _ => {}
        }
    }
    Ok(true)
}

fn record<'a>(
    event: &RawEvent<'_>,
    layout: &Layout,
    namer: &'a mut Namer,
    comms: &'a BTreeMap<i32, String>,
) -> Record<'a> {
    let (fields, is_entry) = match event.id {
        id if id == layout.entry.id => (&layout.entry, true),
        id if id == layout.exit.id => (&layout.exit, false),
        _ => return Record::Event,
    };
    let read = || Some((layout.common_pid.i64(event)?, fields.func.u64(event)?, fields.depth.i64(event)?));
    let Some((pid, func, depth)) = read() else { return Record::Bad("shorter than its format") };
    let Ok(pid) = i32::try_from(pid) else { return Record::Bad("no pid") };
    let spot = Spot {
        task: Task::new(pid, event.cpu),
        cpu: event.cpu,
        ts_ns: Some(event.ts_ns),
        depth: u32::try_from(depth).ok(),
    };
    let timing = match fields.times.map(|(call, ret)| call.u64(event).zip(ret.u64(event))) {
        None => None,
        Some(None) => return Record::Bad("shorter than its format"),
        Some(Some((call, ret))) => match ret.checked_sub(call) {
            Some(duration_ns) => Some(Timing { duration_ns, calltime_ns: Some(call) }),
            None => return Record::Bad("it returned before it was called"),
        },
    };
    let function = namer.name(func);
    let edge = if is_entry { Edge::Enter { function } } else { Edge::Exit { function: Some(function), timing } };
    Record::Graph { spot, comm: comms.get(&pid).map(String::as_str), edge }
}
