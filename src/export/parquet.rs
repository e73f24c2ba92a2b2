// SPDX-License-Identifier: GPL-2.0-or-later
//! Decisions as Parquet: one row for each decision and implementation. `docs/queries.md` has the columns with their
//! units, and queries.

use std::cell::RefCell;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::compare::{Class, Verdict};
use crate::export::words;
use crate::fair::Decision;
use crate::inputs::Inputs;
use crate::replay::run::Observer;
use crate::replay::setup::Bench;
use crate::replay::totals::input_names;
use crate::replay::{Filter, ReplayError, Role, Row};

/// Rows that are kept in memory until they are written.
const GROUP_ROWS: usize = 32_768;

/// The columns, in order. Units are in the names; times are of the trace's clock.
pub const SCHEMA: &str = "message decisions {
    required binary file (string);
    required int64 number;
    required int64 ts_ns;
    required binary kind (string);
    required int32 pid;
    required binary comm (string);
    required int32 waker_pid;
    required binary waker_comm (string);
    required int32 this_cpu;
    required int32 prev_cpu;
    required boolean in_task;
    required boolean sync;
    optional int32 recorded_class_cpu;
    optional int32 recorded_final_cpu;
    required binary spec (string);
    required binary role (string);
    required int32 class_cpu;
    required int32 final_cpu;
    required binary exit (string);
    required boolean wrong;
    required int32 idle_checks;
    required int64 sis_search;
    required int64 sis_domain_search;
    required int64 sis_scanned;
    required int64 sis_failed;
    required int64 sis_recent_hit;
    required int64 sis_recent_miss;
    required binary class (string);
    required binary assumed (string);
    required binary unknown (string);
    optional boolean as_recorded;
    optional binary verdict (string);
    optional binary distance (string);
    optional binary load (string);
    optional binary outside (string);
}";

/// A cell.
enum Cell<'a> {
    Text(&'a str),
    Int(i32),
    Long(i64),
    Bool(bool),
    None,
}

/// The values of one column that wait.
enum Column {
    Text(Vec<ByteArray>, Vec<i16>),
    Int(Vec<i32>, Vec<i16>),
    Long(Vec<i64>, Vec<i16>),
    Bool(Vec<bool>, Vec<i16>),
}

impl Column {
    fn push(&mut self, cell: Cell<'_>) {
        let there = i16::from(!matches!(cell, Cell::None));
        match (self, cell) {
            (Self::Text(values, levels), cell) => {
                if let Cell::Text(text) = cell {
                    values.push(text.into());
                }
                levels.push(there);
            }
            (Self::Int(values, levels), cell) => {
                if let Cell::Int(value) = cell {
                    values.push(value);
                }
                levels.push(there);
            }
            (Self::Long(values, levels), cell) => {
                if let Cell::Long(value) = cell {
                    values.push(value);
                }
                levels.push(there);
            }
            (Self::Bool(values, levels), cell) => {
                if let Cell::Bool(value) = cell {
                    values.push(value);
                }
                levels.push(there);
            }
        }
    }

    fn write<W: Write + Send>(&mut self, group: &mut SerializedRowGroupWriter<'_, W>) -> Result<(), ParquetError> {
        match self {
            Self::Text(values, levels) => write::<ByteArrayType, W>(group, values, levels),
            Self::Int(values, levels) => write::<Int32Type, W>(group, values, levels),
            Self::Long(values, levels) => write::<Int64Type, W>(group, values, levels),
            Self::Bool(values, levels) => write::<BoolType, W>(group, values, levels),
        }
    }
}

fn write<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &mut Vec<T::T>,
    levels: &mut Vec<i16>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("more columns than the schema has".to_owned()));
    };
    // Required columns have no levels, and ignore these.
    column.typed::<T>().write_batch(values, Some(levels), None)?;
    values.clear();
    levels.clear();
    column.close()
}

/// Writes decisions as the replay goes.
pub struct Parquet<W: Write + Send>(RefCell<Writer<W>>);

struct Writer<W: Write + Send> {
    out: SerializedFileWriter<W>,
    /// Where it goes, for errors.
    name: String,
    /// The recording.
    file: String,
    specs: Vec<(String, Role)>,
    columns: Vec<Column>,
    rows: usize,
}

/// An error as if the output could not be written: nothing else can be wrong with rows of our own schema.
fn failed(name: &str, error: &ParquetError) -> ReplayError {
    match error {
        ParquetError::External(cause) => match cause.downcast_ref::<std::io::Error>() {
            Some(error) => ReplayError::write(name, error),
            None => ReplayError::write(name, &std::io::Error::other(error.to_string())),
        },
        error => ReplayError::write(name, &std::io::Error::other(error.to_string())),
    }
}

fn columns() -> Vec<Column> {
    let kinds = SCHEMA.lines().filter_map(|line| line.split_whitespace().nth(1).filter(|_| line.ends_with(';')));
    kinds
        .map(|kind| match kind {
            "int32" => Column::Int(Vec::new(), Vec::new()),
            "int64" => Column::Long(Vec::new(), Vec::new()),
            "boolean" => Column::Bool(Vec::new(), Vec::new()),
            _ => Column::Text(Vec::new(), Vec::new()),
        })
        .collect()
}

impl<W: Write + Send> Parquet<W> {
    /// Into `out`, which is called `name` in errors; `file` names the recording in each row.
    ///
    /// # Errors
    /// [`ReplayError::Write`].
    pub fn new(out: W, name: &str, file: &str) -> Result<Self, ReplayError> {
        let schema = parse_message_type(SCHEMA).map_err(|error| failed(name, &error))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("sisdiff {}", env!("CARGO_PKG_VERSION")))
            // Times and numbers ascend: differences are small.
            .set_column_encoding("ts_ns".into(), Encoding::DELTA_BINARY_PACKED)
            .set_column_dictionary_enabled("ts_ns".into(), false)
            .set_column_encoding("number".into(), Encoding::DELTA_BINARY_PACKED)
            .set_column_dictionary_enabled("number".into(), false)
            .build();
        let out = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))
            .map_err(|error| failed(name, &error))?;
        let writer = Writer {
            out,
            name: name.to_owned(),
            file: file.to_owned(),
            specs: Vec::new(),
            columns: columns(),
            rows: 0,
        };
        Ok(Self(RefCell::new(writer)))
    }

    /// Writes what is left, and gives back where it went.
    ///
    /// # Errors
    /// [`ReplayError::Write`].
    pub fn finish(self) -> Result<W, ReplayError> {
        let mut writer = self.0.into_inner();
        writer.flush()?;
        let name = writer.name;
        writer.out.into_inner().map_err(|error| failed(&name, &error))
    }
}

impl<W: Write + Send> Observer for Parquet<W> {
    fn begin(&self, bench: &Bench, _: &Filter) {
        let specs = bench.contestants.iter().map(|one| (one.implementation.name().to_owned(), one.role));
        self.0.borrow_mut().specs = specs.collect();
    }

    fn event(&self, _: &crate::trace::Event) {}

    fn decision(&self, row: &Row) -> Result<(), ReplayError> {
        self.0.borrow_mut().decision(row)
    }
}

impl<W: Write + Send> Writer<W> {
    fn decision(&mut self, row: &Row) -> Result<(), ReplayError> {
        let mut verdicts = row.verdicts.iter();
        for (at, (spec, role)) in self.specs.iter().enumerate() {
            let Some(decision) = row.decisions.get(at) else { continue };
            let verdict = if *role == Role::Patched { verdicts.next() } else { None };
            let wrong = row.wrong.get(at) == Some(&true);
            let mut columns = self.columns.iter_mut();
            let mut put = |cell: Cell<'_>| {
                if let Some(column) = columns.next() {
                    column.push(cell);
                }
            };
            question(&mut put, &self.file, row);
            put(Cell::Text(spec));
            put(Cell::Text(words::role(*role)));
            answer(&mut put, decision, wrong);
            put(row.choice.is(decision).map_or(Cell::None, Cell::Bool));
            judged(&mut put, verdict);
            self.rows += 1;
        }
        if self.rows >= GROUP_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ReplayError> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let (out, columns) = (&mut self.out, &mut self.columns);
        let mut write = || {
            let mut group = out.next_row_group()?;
            for column in columns.iter_mut() {
                column.write(&mut group)?;
            }
            group.close().map(drop)
        };
        write().map_err(|error| failed(&self.name, &error))
    }
}

fn cpu(cpu: crate::units::Cpu) -> Cell<'static> {
    Cell::Int(cpu.0.into())
}

fn question(put: &mut impl FnMut(Cell<'_>), file: &str, row: &Row) {
    let recorded = &row.recorded;
    let wakeup = &recorded.wakeup;
    put(Cell::Text(file));
    put(Cell::Long(recorded.number as i64));
    put(Cell::Long(recorded.ts_ns as i64));
    put(Cell::Text(words::kind(wakeup.kind)));
    put(Cell::Int(recorded.pid.0));
    put(Cell::Text(&recorded.comm.to_string()));
    put(Cell::Int(recorded.waker_pid.0));
    put(Cell::Text(&recorded.waker_comm.to_string()));
    put(cpu(wakeup.this_cpu));
    put(cpu(wakeup.prev_cpu));
    put(Cell::Bool(wakeup.in_task));
    put(Cell::Bool(wakeup.sync));
    put(row.choice.class_cpu.map_or(Cell::None, cpu));
    put(row.choice.final_cpu.map_or(Cell::None, cpu));
}

fn answer(put: &mut impl FnMut(Cell<'_>), decision: &Decision, wrong: bool) {
    let list = |inputs: Inputs| input_names(inputs).collect::<Vec<_>>().join(",");
    let sis = &decision.sis;
    put(cpu(decision.class_cpu));
    put(cpu(decision.final_cpu));
    put(Cell::Text(&format!("{:?}", decision.exit)));
    put(Cell::Bool(wrong));
    put(Cell::Int(decision.probes as i32));
    for n in [sis.search, sis.domain_search, sis.scanned, sis.failed, sis.recent_hit, sis.recent_miss] {
        put(Cell::Long(n as i64));
    }
    put(Cell::Text(words::class(Class::of(decision.leaned_on))));
    put(Cell::Text(&list(decision.leaned_on.assumed)));
    put(Cell::Text(&list(decision.leaned_on.unknown)));
}

fn judged(put: &mut impl FnMut(Cell<'_>), verdict: Option<&Verdict>) {
    put(verdict.map_or(Cell::None, |verdict| Cell::Text(words::verdict(verdict))));
    let difference = verdict.and_then(|verdict| match verdict {
        Verdict::Diverge { difference, .. } => Some(difference),
        _ => None,
    });
    put(difference.map_or(Cell::None, |it| Cell::Text(words::distance(it.distance))));
    put(difference.map_or(Cell::None, |it| Cell::Text(words::load(it.load))));
    put(difference.map_or(Cell::None, |it| Cell::Text(words::outside(it.outside))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_read_by_its_own_parser() {
        let schema = parse_message_type(SCHEMA).expect("a schema");
        assert_eq!(schema.get_fields().len(), columns().len());
    }
}
