// SPDX-License-Identifier: GPL-2.0-or-later
//! What is written is read again: every version, byte order, size of long and
//! page, compression; several buffers, long deltas, absolute stamps, losses.

mod common;

use std::collections::BTreeMap;

use common::model::{self, Seen};
use common::random::Random;
use tracecmd_parse::{TraceFile, TraceReader};

#[test]
fn what_is_written_is_read() {
    let mut random = Random(3);
    for shape in model::shapes() {
        for _ in 0..4 {
            let cpus = 1 + random.below(6) as u32;
            let head = model::head(cpus);
            let model = model::model(&mut random, &shape, cpus, false);
            let bytes = model::write(&shape, &head, &model);
            let trace = TraceFile::from_bytes(bytes).unwrap();
            let meta = trace.meta();
            assert_eq!((meta.version, meta.endian, meta.compression), (shape.version, shape.endian, shape.compression));
            assert_eq!((meta.cpus, &meta.comms, &meta.cpustat), (cpus, &head.comms, &head.cpustat));
            assert_eq!((&meta.clock, &meta.uname, meta.trace_id), (&head.clock, &head.uname, head.trace_id));
            assert_eq!(meta.tracecmd_version, head.tracecmd_version);
            assert_eq!(trace.kallsyms().unwrap(), Some(head.kallsyms.clone()));
            assert_eq!(trace.printk_formats().unwrap(), None);
            assert_eq!((trace.formats().len(), trace.formats().skipped()), (2, &[][..]));
            for (name, cpus) in &model {
                let want: BTreeMap<u32, Vec<Seen>> = cpus
                    .iter()
                    .map(|(cpu, records)| (*cpu, model::expected(records)))
                    .filter(|(_, seen)| !seen.is_empty())
                    .collect();
                assert_eq!(model::read(&trace, name), want, "{shape:?}, buffer {name:?}");
            }
        }
    }
}
