// SPDX-License-Identifier: GPL-2.0-or-later
//! The reader of trace.dat on any bytes: an error or events to the end, never a panic or a loop.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracecmd_parse::{Error, Item, Select, TraceFile, TraceReader};

fuzz_target!(|bytes: &[u8]| {
    let _ = read(bytes);
});

fn read(bytes: &[u8]) -> Result<(), Error> {
    let trace = TraceFile::from_bytes(bytes.to_vec())?;
    for buffer in &trace.meta().buffers {
        let mut cursor = trace.cursor(&Select::buffer(&buffer.name))?;
        while let Some(item) = cursor.next()? {
            if let Item::Event(event) = item
                && let Some(format) = trace.formats().of(&event)
            {
                let fields = format.fields.iter().filter_map(|field| format.field_ref(&field.name).ok());
                fields.for_each(|field| drop((field.text(&event), field.i64(&event))));
            }
        }
    }
    Ok(())
}
