// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings → outcomes: files, threads, decisions as they come. The only place with threads.

use std::io::{BufWriter, Seek, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};

use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::replay::driver::{Contestant, Driver, Explained, Row};
use crate::replay::error::ReplayError;
use crate::replay::filter::Filter;
use crate::replay::outcome::Outcome;
use crate::replay::recording::Source;
use crate::replay::setup::{Bench, Options};
use crate::replay::stated;
use crate::trace::Event;

/// Hears how far the replay of a file is: events done, events in all.
pub trait Progress: Sync {
    /// The replay of `file` has done `events` of about `all`.
    fn at(&self, file: &Path, events: u64, all: u64);
}

/// Makes the text of one decision: the file's name, the decision, the implementations.
pub type DecisionLine = fn(&str, &Row, &[Contestant]) -> String;

/// Makes the filter of a recording, whose first event is at that time, ns.
pub type FilterOf<'a> = &'a (dyn Fn(u64) -> Filter + Sync);

/// What to do with each recording.
pub struct Job<'a> {
    /// How to replay.
    pub options: &'a Options,
    /// Which decisions count.
    pub filter: FilterOf<'a>,
    /// How that was asked for.
    pub filters: &'a [String],
    /// Who hears of progress.
    pub progress: &'a dyn Progress,
}

/// Replays `files`, several at a time, and gives their outcomes in order. `decisions` gets every decision's line, file
/// by file.
///
/// # Errors
/// The first file's that cannot be replayed.
pub fn replay(
    files: &[PathBuf],
    job: &Job<'_>,
    threads: Option<usize>,
    line: DecisionLine,
    decisions: Option<(&str, &mut (dyn Write + Send))>,
) -> Result<Vec<Outcome>, ReplayError> {
    let outcomes = observe(files, job, threads, line, decisions, |_| Ok(Blind))?;
    Ok(outcomes.into_iter().map(|(outcome, _)| outcome).collect())
}

/// The same, each file before the eyes of an observer of its own.
///
/// # Errors
/// As [`replay`], and the observers' own.
pub fn observe<O: Observer + Send>(
    files: &[PathBuf],
    job: &Job<'_>,
    threads: Option<usize>,
    line: DecisionLine,
    decisions: Option<(&str, &mut (dyn Write + Send))>,
    observer: impl Fn(&Path) -> Result<O, ReplayError> + Sync,
) -> Result<Vec<(Outcome, O)>, ReplayError> {
    let ahead = has_spare(files.len(), threads);
    let Some((name, out)) = decisions else {
        return parallel(files, threads, |file| {
            let observer = observer(file)?;
            Ok((one(file, job, ahead, &mut |_, _, _| Ok(()), Some(&observer))?, observer))
        });
    };
    let written = |error: std::io::Error| ReplayError::write(name, &error);
    if let [file] = files {
        let mut out = BufWriter::new(out);
        let observer = observer(file)?;
        let mut sink =
            |file: &str, row: &Row, all: &[Contestant]| writeln!(out, "{}", line(file, row, all)).map_err(written);
        let outcome = one(file, job, ahead, &mut sink, Some(&observer))?;
        out.flush().map_err(written)?;
        return Ok(vec![(outcome, observer)]);
    }
    let spooled = parallel(files, threads, |file| {
        let mut spool = BufWriter::new(tempfile::tempfile().map_err(written)?);
        let observer = observer(file)?;
        let mut sink =
            |file: &str, row: &Row, all: &[Contestant]| writeln!(spool, "{}", line(file, row, all)).map_err(written);
        let outcome = one(file, job, ahead, &mut sink, Some(&observer))?;
        let mut spool = spool.into_inner().map_err(|error| written(error.into_error()))?;
        spool.rewind().map_err(written)?;
        Ok((outcome, observer, spool))
    })?;
    let mut outcomes = Vec::with_capacity(spooled.len());
    for (outcome, observer, mut spool) in spooled {
        std::io::copy(&mut spool, out).map_err(written)?;
        outcomes.push((outcome, observer));
    }
    out.flush().map_err(written)?;
    Ok(outcomes)
}

/// Whether each of so many files may have a second thread that reads ahead.
fn has_spare(files: usize, threads: Option<usize>) -> bool {
    let processors = || std::thread::available_parallelism().map_or(1, NonZero::get);
    match threads {
        // Whoever asks for more threads than there are files has them.
        Some(threads) => threads > files,
        None => leaves_some(files, processors()),
    }
}

/// Whether two threads for each file leave a processor over. A recording that is replayed with two threads needs less time,
/// but more processor time: where all are taken by it, another replay beside it (or whatever else runs) pays for that.
fn leaves_some(files: usize, processors: usize) -> bool {
    processors > 2 * files
}

/// `each` file, in order at the end. Files are independent, so the number of threads changes nothing but the time.
pub(crate) fn parallel<T: Send>(
    files: &[PathBuf],
    threads: Option<usize>,
    each: impl Fn(&Path) -> Result<T, ReplayError> + Sync,
) -> Result<Vec<T>, ReplayError> {
    // One file needs no other thread, whose memory would grow in small steps.
    if let [file] = files {
        return Ok(vec![each(file)?]);
    }
    // Collected first: which error comes first must not depend on the threads either.
    all(files, threads, |file| each(file)).into_iter().collect()
}

/// `each` of `items` on `threads`, in order at the end.
pub fn all<I: Sync, T: Send>(items: &[I], threads: Option<usize>, each: impl Fn(&I) -> T + Sync) -> Vec<T> {
    match rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build() {
        Ok(pool) => pool.install(|| items.par_iter().with_max_len(1).map(&each).collect()),
        Err(_) => items.iter().map(each).collect(),
    }
}

/// Replays one file and gives each decision to `sink` as it settles.
///
/// # Errors
/// As [`replay`], and the sink's own.
pub fn decisions(file: &Path, job: &Job<'_>, sink: Sink<'_>) -> Result<Outcome, ReplayError> {
    one(file, job, has_spare(1, None), sink, None)
}

/// The same for one of `replays` that run on `threads` at the same time: a second thread reads ahead where there are more
/// threads than replays.
///
/// # Errors
/// As [`decisions`].
pub fn decisions_among(
    file: &Path,
    job: &Job<'_>,
    replays: usize,
    threads: Option<usize>,
    sink: Sink<'_>,
) -> Result<Outcome, ReplayError> {
    one(file, job, has_spare(replays, threads), sink, None)
}

/// Hears of each decision: the file's name, the decision, the implementations.
pub type Sink<'a> = &'a mut dyn FnMut(&str, &Row, &[Contestant]) -> Result<(), ReplayError>;

/// Hears of all that a replay of one recording sees. Events and decisions come in turn, hence shared references.
pub trait Observer {
    /// The replay begins, on this machine, with these implementations; what passes the filter counts.
    fn begin(&self, bench: &Bench, filter: &Filter);

    /// The next event, before the machine hears of it.
    fn event(&self, event: &Event);

    /// The next decision, settled: later than its event, in the order of their numbers.
    ///
    /// # Errors
    /// Whatever the observer cannot do, such as writing.
    fn decision(&self, row: &Row) -> Result<(), ReplayError>;

    /// Whether it wants to hear of anything.
    fn is_awake(&self) -> bool {
        true
    }
}

/// Sees nothing, and costs nothing.
struct Blind;

impl Observer for Blind {
    fn begin(&self, _: &Bench, _: &Filter) {}

    fn event(&self, _: &Event) {}

    fn decision(&self, _: &Row) -> Result<(), ReplayError> {
        Ok(())
    }

    fn is_awake(&self) -> bool {
        false
    }
}

fn one(
    file: &Path,
    job: &Job<'_>,
    ahead: bool,
    sink: Sink<'_>,
    observer: Option<&dyn Observer>,
) -> Result<Outcome, ReplayError> {
    let observer = observer.filter(|observer| observer.is_awake());
    let mut source = Source::open(file, job.options.buffer.as_deref(), job.options.reader)?;
    source.read_ahead(ahead);
    let filter = (job.filter)(source.first_ns());
    let bench = Bench::new(&source, job.options)?;
    if let Some(observer) = observer {
        observer.begin(&bench, &filter);
    }
    let Bench { mut machine, contestants, kernel, assumed, mut setup, notes } = bench;
    let mut failed = None;
    let name = file.display().to_string();
    let mut driver = Driver::new(contestants, filter, |row, contestants| {
        if failed.is_none() {
            let seen = observer.map_or(Ok(()), |observer| observer.decision(row));
            failed = seen.and_then(|()| sink(&name, row, contestants)).err();
        }
    });
    driver.assume(assumed);
    let counted = source.walk(
        |event| {
            if let Some(observer) = observer {
                observer.event(event);
            }
            machine.apply(event, &mut |state, notice| driver.notice(state, &notice));
            driver.fault().is_none()
        },
        |events, all| job.progress.at(file, events, all),
    )?;
    faultless(driver.fault())?;
    machine.finish(&mut |state, notice| driver.notice(state, &notice));
    let finished = driver.finish();
    if let Some(error) = failed {
        return Err(error);
    }
    let mut recording = source.describe(&counted)?;
    recording.kernel = kernel;
    recording.notes.extend(notes);
    if let Some(side) = &job.options.affinity {
        let using = stated::used(side, machine.stated())?;
        recording.notes.extend(stated::notes(&using));
        recording.notes.extend(finished.contradicted.note(&using.file));
        setup.affinity = Some(using);
    }
    setup.facts = finished.facts;
    setup.filters = job.filters.to_vec();
    Ok(Outcome { recording, setup, totals: finished.totals })
}

fn faultless(fault: Option<&str>) -> Result<(), ReplayError> {
    fault.map_or(Ok(()), |fault| Err(ReplayError::Fault(fault.to_owned())))
}

/// One explained decision with what the report says around it.
pub struct Explanation {
    /// The decision.
    pub explained: Explained,
    /// How it was replayed.
    pub setup: crate::replay::Setup,
    /// Spec and role of each implementation.
    pub columns: Vec<(String, crate::replay::Role)>,
}

/// Which decision to explain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// By its number.
    Number(u64),
    /// The nearest one of a time, given the time of the first event; of a wakee if told.
    Nearest {
        /// The time, ns of the trace's clock.
        ts_ns: u64,
        /// The wakee.
        pid: Option<crate::units::Pid>,
    },
}

/// Replays `file` until decision `which` and its recorded choice.
///
/// # Errors
/// As [`replay`], and [`ReplayError::NoDecision`].
pub fn explain(
    file: &Path,
    options: &Options,
    which: impl FnOnce(u64) -> Which,
    progress: &dyn Progress,
) -> Result<Explanation, ReplayError> {
    let source = Source::open(file, options.buffer.as_deref(), options.reader)?;
    let number = match which(source.first_ns()) {
        Which::Number(number) => number,
        Which::Nearest { ts_ns, pid } => nearest(&source, options, ts_ns, pid)?,
    };
    let mut found = None;
    let seen = watch(&source, options, &[number], progress, &mut |explained| found = Some(explained))?;
    let explained = found.ok_or_else(|| ReplayError::NoDecision {
        file: file.display().to_string(),
        number: number.to_string(),
        found: format!("the recording has {}, numbered from 1", seen.decisions),
    })?;
    Ok(Explanation { explained, setup: seen.setup, columns: seen.columns })
}

/// How watched decisions were replayed.
pub struct Seen {
    /// The setup.
    pub setup: crate::replay::Setup,
    /// Spec and role of each implementation.
    pub columns: Vec<(String, crate::replay::Role)>,
    /// Decisions up to the last one watched, and some more.
    pub decisions: u64,
}

/// Replays `file` until the last of the decisions `numbers` (ascending) and its recorded choice, and gives each of them to
/// `each`, in order.
///
/// # Errors
/// As [`replay`].
pub fn explain_each(
    file: &Path,
    options: &Options,
    numbers: &[u64],
    progress: &dyn Progress,
    each: &mut dyn FnMut(Explained),
) -> Result<Seen, ReplayError> {
    let source = Source::open(file, options.buffer.as_deref(), options.reader)?;
    watch(&source, options, numbers, progress, each)
}

fn watch(
    source: &Source,
    options: &Options,
    numbers: &[u64],
    progress: &dyn Progress,
    each: &mut dyn FnMut(Explained),
) -> Result<Seen, ReplayError> {
    let Bench { mut machine, contestants, assumed, mut setup, .. } = Bench::new(source, options)?;
    let columns = contestants.iter().map(|one| (one.implementation.name().to_owned(), one.role)).collect();
    let mut driver = Driver::new(contestants, Filter::default(), |_, _| ());
    driver.watch(numbers.iter().copied());
    driver.assume(assumed);
    let mut left = numbers.len();
    source.walk(
        |event| {
            machine.apply(event, &mut |state, notice| driver.notice(state, &notice));
            while let Some(explained) = driver.take_explained() {
                left -= 1;
                each(explained);
            }
            left > 0 && driver.fault().is_none()
        },
        |events, all| progress.at(source.path(), events, all),
    )?;
    faultless(driver.fault())?;
    let finished = driver.finish();
    setup.facts = finished.facts;
    finished.explained.into_iter().for_each(each);
    Ok(Seen { setup, columns, decisions: finished.totals.decisions.sum() })
}

/// The decision nearest to a time. Wakings without a decision are told in the error.
fn nearest(source: &Source, options: &Options, ts_ns: u64, pid: Option<crate::units::Pid>) -> Result<u64, ReplayError> {
    use crate::machine::Notice;
    /// Further away than this it is another wakeup.
    const FAR_NS: u64 = 1_000_000;
    let Bench { mut machine, .. } = Bench::new(source, options)?;
    let mut best: Option<(u64, u64)> = None;
    let mut other: Option<(u64, crate::machine::Why)> = None;
    source.walk(
        |event| {
            machine.apply(event, &mut |_, notice| match notice {
                Notice::Wakeup(recorded) if pid.is_none_or(|pid| pid == recorded.pid) => {
                    let away = recorded.ts_ns.abs_diff(ts_ns);
                    if best.is_none_or(|(nearest, _)| away < nearest) {
                        best = Some((away, recorded.number));
                    }
                }
                Notice::NotSelected { ts_ns: at, pid: who, why, .. } if pid.is_none_or(|pid| pid == who) => {
                    let away = at.abs_diff(ts_ns);
                    if other.is_none_or(|(nearest, _)| away < nearest) {
                        other = Some((away, why));
                    }
                }
                _ => {}
            });
            true
        },
        |_, _| (),
    )?;
    let found = match (best, other) {
        (Some((away, number)), other) if away <= FAR_NS && other.is_none_or(|(nearer, _)| away <= nearer) => {
            return Ok(number);
        }
        (_, Some((away, why))) if away <= FAR_NS => {
            format!("the waking there led to none: {}", crate::replay::totals::reason(why))
        }
        (Some((away, number)), _) => {
            format!("the nearest is number {number}, {:.6} s away", away as f64 / 1e9)
        }
        (None, _) => "the recording has none of that task".to_owned(),
    };
    let seconds = crate::units::seconds(ts_ns);
    let number = match pid {
        Some(pid) => format!("of task {pid} at {seconds}"),
        None => format!("at {seconds}"),
    };
    Err(ReplayError::NoDecision { file: source.path().display().to_string(), number, found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_ahead_is_for_processors_that_are_left_over_or_for_who_asks() {
        for (files, processors, ahead) in
            [(1, 1, false), (1, 2, false), (1, 3, true), (2, 4, false), (2, 5, true), (0, 1, true)]
        {
            assert_eq!(leaves_some(files, processors), ahead, "{files} files, {processors} processors");
        }
        for (files, threads, ahead) in [(1, 1, false), (1, 2, true), (2, 2, false), (2, 3, true)] {
            assert_eq!(has_spare(files, Some(threads)), ahead, "{files} files, {threads} threads");
        }
    }
}
