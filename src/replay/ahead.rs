// SPDX-License-Identifier: GPL-2.0-or-later
//! Reading ahead: a second thread unpacks and decodes what the machine will need next, so that one recording alone keeps
//! two processors busy. Order, and so every result, is the same as on one thread.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use crate::trace::Event;

/// Events that change hands at a time: enough that the handing over costs nothing, few enough to stay in a cache.
const BATCH: usize = 1024;
/// Batches that wait: more would only need memory.
const WAITING: usize = 4;

/// What a reader gives.
pub(super) enum Given<'a> {
    /// The next event, to be looked at or taken away.
    Event(&'a mut Event),
    /// So many events are read, of about so many in all (0: not known).
    Progress(u64, u64),
}

/// Who takes it; `false`: enough.
pub(super) type Taker<'a> = &'a mut dyn FnMut(Given<'_>) -> bool;

#[derive(Default)]
struct Batch {
    events: Vec<Event>,
    progress: Option<(u64, u64)>,
}

/// Runs `read` on a thread of its own, and gives what it gives to `each` and `tick` here.
pub(super) fn ahead<T: Send>(
    read: impl FnOnce(Taker<'_>) -> T + Send,
    mut each: impl FnMut(&Event) -> bool,
    mut tick: impl FnMut(u64, u64),
) -> T {
    thread::scope(|scope| {
        let (to, full) = sync_channel::<Batch>(WAITING);
        let (back, empty) = channel::<Vec<Event>>();
        let reading = scope.spawn(move || fill(read, &to, &empty));
        'batches: for mut batch in &full {
            for event in &batch.events {
                if !each(event) {
                    break 'batches;
                }
            }
            if let Some((events, all)) = batch.progress {
                tick(events, all);
            }
            batch.events.clear();
            // Nobody takes it at the end.
            let _ = back.send(batch.events);
        }
        // A reader that waits to hand over learns that it is enough.
        drop(full);
        reading.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// The reader's side: fills batches, emptied ones first.
fn fill<T>(read: impl FnOnce(Taker<'_>) -> T, to: &SyncSender<Batch>, empty: &Receiver<Vec<Event>>) -> T {
    let fresh = || Batch { events: empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH)), progress: None };
    let mut batch = fresh();
    let read = read(&mut |given| {
        match given {
            Given::Event(event) => batch.events.push(std::mem::take(event)),
            Given::Progress(events, all) => batch.progress = Some((events, all)),
        }
        batch.events.len() < BATCH || to.send(std::mem::replace(&mut batch, fresh())).is_ok()
    });
    // Whoever has enough does not take the rest.
    let _ = to.send(batch);
    read
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::EventKind;
    use crate::units::Cpu;

    fn event(ts_ns: u64) -> Event {
        let lost = EventKind::Lost { count: None };
        Event { ts_ns, cpu: Cpu(0), kind: lost, ..crate::trace::Decoder::lost(0, ts_ns, None).expect("a CPU") }
    }

    #[test]
    fn everything_comes_in_order_and_the_result_too() {
        let (mut seen, mut ticks) = (Vec::new(), Vec::new());
        let count = ahead(
            |take| {
                for ts_ns in 0..10_000 {
                    assert!(take(Given::Event(&mut event(ts_ns))));
                    if ts_ns % 4096 == 0 {
                        take(Given::Progress(ts_ns, 10_000));
                    }
                }
                10_000
            },
            |event| {
                seen.push(event.ts_ns);
                true
            },
            |events, all| ticks.push((events, all)),
        );
        assert_eq!(count, 10_000);
        assert_eq!(seen, (0..10_000).collect::<Vec<_>>());
        assert_eq!(ticks, [(0, 10_000), (4096, 10_000), (8192, 10_000)]);
    }

    #[test]
    fn enough_is_enough() {
        let mut seen = 0;
        let given = ahead(
            |take| (0u64..).take_while(|&ts_ns| take(Given::Event(&mut event(ts_ns)))).count(),
            |_| {
                seen += 1;
                seen < 1500
            },
            |_, _| (),
        );
        assert_eq!(seen, 1500);
        assert!(given < 1500 + (WAITING + 3) * BATCH, "{given}");
    }

    #[test]
    #[should_panic(expected = "from the reader")]
    fn a_panic_of_the_reader_is_no_silence() {
        ahead(|_| panic!("from the reader"), |_| true, |_, _| ());
    }
}
