// SPDX-License-Identifier: GPL-2.0-or-later
//! Texts of traces: walked twice and out of a pipe, they give the same.

use std::io::Cursor;

use tracecmd_parse::text::{TextItem, TextTrace};
use tracecmd_parse::{Error, Item, Select, TraceReader};

/// Reads any bytes as a text; panics if two walks disagree.
pub fn check(bytes: &[u8]) {
    let Ok(trace) = TextTrace::from_bytes(bytes.to_vec()) else { return };
    let first = walk(&trace, "", bytes.len());
    assert_eq!(first.is_ok(), walk(&trace, "", bytes.len()).is_ok());
    if let Ok(pipe) = TextTrace::from_stream(Box::new(Cursor::new(bytes.to_vec()))) {
        let piped = walk(&pipe, "", bytes.len());
        assert_eq!(first.as_ref().ok(), piped.as_ref().ok(), "from memory, from a pipe");
    }
    for buffer in &trace.meta().buffers {
        let _ = raw(&trace, &buffer.name, bytes.len());
        let _ = walk(&trace, &buffer.name, bytes.len());
    }
}

/// The events by format, as a trace.dat gives them.
fn walk(trace: &TextTrace, buffer: &str, len: usize) -> Result<Vec<(u64, u32, u16, Vec<u8>)>, Error> {
    let mut cursor = trace.cursor(&Select::buffer(buffer))?;
    let mut events = Vec::new();
    let mut items = 0;
    while let Some(item) = cursor.next()? {
        items += 1;
        assert!(items <= 2 * len + 2, "the cursor does not come to an end");
        let Item::Event(event) = item else { continue };
        let format = trace.formats().of(&event).expect("an event has a format");
        for field in &format.fields {
            let field = format.field_ref(&field.name).expect("it is one of its fields");
            let _ = (field.text(&event), field.i64(&event));
        }
        events.push((event.ts_ns, event.cpu, event.id, event.data.to_vec()));
    }
    let _ = cursor.summary();
    Ok(events)
}

/// The events as lines tell them.
fn raw(trace: &TextTrace, buffer: &str, len: usize) -> Result<(), Error> {
    let mut events = trace.events(&Select::buffer(buffer))?;
    let mut items = 0;
    while let Some(item) = events.next_item()? {
        items += 1;
        assert!(items <= 2 * len + 2, "the cursor does not come to an end");
        if let TextItem::Event(event) = item {
            let _ = (event.ts_ns, event.cpu, event.irq);
        }
    }
    Ok(())
}
