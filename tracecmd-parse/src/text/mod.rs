// SPDX-License-Identifier: GPL-2.0-or-later
//! Traces as text.
//!
//! | form | made by |
//! |---|---|
//! | [`Form::Report`] | `trace-cmd report`, with any of `-R` (raw), `-t` (nanoseconds), `-N` (no plugins) |
//! | [`Form::ReportLatency`] | `trace-cmd report -l` |
//! | [`Form::Tracefs`] | `cat /sys/kernel/tracing/trace`, with and without irq-info and TGID columns and with the option `fields`; Android's atrace (also `-z`); pages of systrace |
//! | [`Form::Perf`] | `perf script`, with and without `--ns`, pids, periods and call chains |
//!
//! Which one it is is told from the lines. [`TextTrace`] gives the events in two ways: as [`TextEvent`]s, which are
//! what a line says and nothing else, and through [`crate::TraceReader`], with formats made from the text, so that
//! what reads a trace.dat reads a text, too.
//!
//! # What a text does not have
//! [`crate::Meta::notes`] says of each trace what applies:
//!
//! * Times have microseconds, unless `-t` or `--ns` was given. trace-cmd rounds, perf cuts off.
//! * `trace-cmd report` without `-l` and perf do not say whether an event came from an interrupt.
//! * The default `trace-cmd report` lets a plugin print sched_switch. The plugin of libtraceevent 1.7 has letters of
//!   old kernels: its `Z`, `X`, `x`, `W` are the bits that kernels since 4.14 call `X`, `Z`, `P`, `I`. The bits are
//!   what is read. It prints no `+` for a preempted task.
//! * Only the scheduler's events have fields of a known type; of others, what is `name=value`.
//!
//! # What is never guessed
//! A comm may hold anything: spaces, `=`, brackets, what looks like the next field. A line is read only if it fits
//! its form as a whole, and in one way. What does not is counted, and the first ten such lines are named with their
//! number. A last line without a line break may have lost digits, and is not read.

mod event;
mod events;
mod fields;
mod form;
mod head;
mod irq;
mod kernel;
mod lines;
mod scan;
mod synth;
mod template;
mod trace;

pub use event::{LeftState, TextEvent};
pub use events::{TextCursor, TextItem, TextSummary};
pub use fields::{Fields, Style};
pub use form::Form;
pub use irq::IrqInfo;
pub use trace::TextTrace;
