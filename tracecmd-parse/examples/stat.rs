// SPDX-License-Identifier: GPL-2.0-or-later
//! Prints what is in each trace (trace.dat or text, `-` for the standard input): events by type and by CPU.

use std::collections::BTreeMap;
use std::process::ExitCode;

use tracecmd_parse::{Error, Item, Select, open_any};

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for path in std::env::args().skip(1) {
        if let Err(error) = stat(&path) {
            eprintln!("stat: {error}");
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn stat(path: &str) -> Result<(), Error> {
    let trace = open_any(path)?;
    let trace = trace.reader();
    let meta = trace.meta();
    let version = if meta.version == 0 { "text".to_string() } else { format!("version {}", meta.version) };
    println!(
        "{path}: {version}, {} CPUs, clock {}, {}",
        meta.cpus,
        meta.clock.as_deref().unwrap_or("not named"),
        meta.uname.as_deref().unwrap_or("no uname"),
    );
    for note in &meta.notes {
        println!("note: {note}");
    }
    for buffer in &meta.buffers {
        let mut by_id: BTreeMap<u16, u64> = BTreeMap::new();
        let mut by_cpu: BTreeMap<u32, u64> = BTreeMap::new();
        let mut cursor = trace.cursor(&Select::buffer(&buffer.name))?;
        while let Some(item) = cursor.next()? {
            if let Item::Event(event) = item {
                *by_id.entry(event.id).or_default() += 1;
                *by_cpu.entry(event.cpu).or_default() += 1;
            }
        }
        for (id, count) in by_id {
            let name = trace.formats().by_id(id).map_or("?", |f| &f.name);
            println!("{count:>10} {name}");
        }
        for (cpu, count) in by_cpu {
            println!("{count:>10} on CPU {cpu}");
        }
        let summary = cursor.summary();
        println!("{:>10} events, {} losses, {} out of order", summary.events, summary.losses, summary.out_of_order);
        for gap in &summary.gaps {
            println!("gap: {gap}");
        }
    }
    Ok(())
}
