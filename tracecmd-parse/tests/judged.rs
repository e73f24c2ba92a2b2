// SPDX-License-Identifier: GPL-2.0-or-later
//! What is written, judged by `trace-cmd report`: events of every buffer in
//! order with time, CPU, pid and values, and the marks of lost events.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use common::model;
use common::random::Random;
use tracecmd_parse::write::Shape;
use tracecmd_parse::{Compression, Item, Select, TraceFile, TraceReader};

/// Lines of events by buffer, and (CPU, count) of the marks of lost events.
#[derive(Debug, Default)]
struct Report {
    events: BTreeMap<String, Vec<String>>,
    lost: Vec<(u32, Option<u64>)>,
}

#[test]
fn tracecmd_reads_what_is_written() {
    if !common::have_tracecmd() {
        println!("skipped: no trace-cmd");
        return;
    }
    let zlib = Command::new("trace-cmd")
        .args(["list", "-c"])
        .output()
        .is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("zlib"));
    let dir = std::env::temp_dir().join(format!("tracecmd-parse-judged-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("trace.dat");
    let mut random = Random(11);
    let mut judged = 0;
    for shape in model::shapes() {
        if shape.compression == Compression::Zlib && !zlib {
            continue;
        }
        let cpus = 1 + random.below(5) as u32;
        let model = model::as_tracecmd_reads(model::model(&mut random, &shape, cpus, true));
        std::fs::write(&file, model::write(&shape, &model::head(cpus), &model)).unwrap();
        let (mut ours, mut theirs) = (read(&file), report(&file, &shape));
        // The order of marks of different CPUs is trace-cmd's own.
        ours.lost.sort_unstable();
        theirs.lost.sort_unstable();
        assert_eq!(ours.lost, theirs.lost, "{shape:?}");
        assert!(ours.events.keys().eq(theirs.events.keys()), "{shape:?}");
        for (name, ours) in &ours.events {
            let theirs = &theirs.events[name];
            let differs = ours.iter().zip(theirs).position(|(a, b)| a != b);
            assert_eq!(differs.map(|at| (&ours[at], &theirs[at])), None, "{shape:?}, buffer {name:?}");
            assert_eq!(ours.len(), theirs.len(), "{shape:?}, buffer {name:?}");
        }
        judged += 1;
    }
    println!("{judged} shapes judged{}", if zlib { "" } else { " (this trace-cmd has no zlib)" });
    std::fs::remove_dir_all(&dir).unwrap();
}

fn read(file: &Path) -> Report {
    let trace = TraceFile::open(file).unwrap();
    let formats = trace.formats();
    let count = formats.event("demo", "tick").unwrap().field_ref("count").unwrap();
    let text = formats.event("demo", "blob").unwrap().field_ref("text").unwrap();
    let pid = formats.common().unwrap().common_pid;
    let mut report = Report::default();
    for buffer in &trace.meta().buffers {
        let mut lines = Vec::new();
        let mut cursor = trace.cursor(&Select::buffer(&buffer.name)).unwrap();
        while let Some(item) = cursor.next().unwrap() {
            match item {
                Item::Event(event) => {
                    let value = match event.id {
                        model::TICK => format!("tick: count={}", count.u64(&event).unwrap()),
                        _ => format!("blob: text={}", text.text(&event).unwrap()),
                    };
                    let (seconds, rest) = (event.ts_ns / 1_000_000_000, event.ts_ns % 1_000_000_000);
                    let pid = pid.i64(&event).unwrap();
                    lines.push(format!("-{pid} [{:03}] {seconds}.{rest:09}: {value}", event.cpu));
                }
                Item::Lost { cpu, count, .. } => report.lost.push((cpu, count)),
                _ => panic!("an item that is not written"),
            }
        }
        if !lines.is_empty() {
            report.events.insert(buffer.name.clone(), lines);
        }
    }
    report
}

fn report(file: &Path, shape: &Shape) -> Report {
    let out = Command::new("trace-cmd").args(["report", "-R", "-t", "-i"]).arg(file).output().unwrap();
    assert!(out.status.success(), "{shape:?}");
    let mut report = Report::default();
    // Behind a mark of lost events the line has no name of the buffer.
    let mut marked = None;
    for line in String::from_utf8(out.stdout).unwrap().lines() {
        if let Some((head, _)) = line.split_once("EVENTS DROPPED]") {
            let (name, head) = head.split_once("CPU:").unwrap();
            let (cpu, count) = head.split_once(" [").unwrap();
            marked = Some(name.trim().trim_end_matches(':').to_string());
            report.lost.push((cpu.parse().unwrap(), count.trim().parse().ok()));
            continue;
        }
        // `   name:   <comm>-pid [cpu] time: event: field=value`
        let Some((head, rest)) = line.rsplit_once(" [") else { continue };
        let (head, pid) = head.rsplit_once('-').unwrap();
        let named = head.split_once(':').map_or("", |(name, _)| name.trim());
        let buffer = marked.take().unwrap_or_else(|| named.to_string());
        let words: Vec<&str> = rest.split_whitespace().collect();
        let line = format!("-{} [{}", pid.trim(), words.join(" "));
        report.events.entry(buffer).or_default().push(line);
    }
    report
}
