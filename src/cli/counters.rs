// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff counters`, and reading /proc/schedstat for `replay`: files in, counters out.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::cli::args::{CountersArgs, Format};
use crate::cli::output::Trouble;
use crate::counters::{Column, Source, columns};
use crate::report::counters as report;

/// Texts of counters are small; what is larger is something else.
const BYTES_MAX: u64 = 64 << 20;

/// What the command prints.
///
/// # Errors
/// [`Trouble::Usage`] for what cannot be read or holds no counters.
pub fn counters(args: &CountersArgs) -> Result<String, Trouble> {
    let columns = load(&args.files, args.each)?;
    match args.format {
        Format::Text => Ok(report::table(&columns)),
        Format::Json => report::json(&columns).map_err(|error| Trouble::Usage(error.to_string())),
    }
}

/// The columns of `files`.
///
/// # Errors
/// [`Trouble::Usage`].
pub fn load(files: &[PathBuf], each: bool) -> Result<Vec<Column>, Trouble> {
    let named = |path: &PathBuf| {
        let name = path.display().to_string();
        let source = source(path).map_err(|why| Trouble::Usage(format!("{name}: {why}")))?;
        Ok((name, source))
    };
    let sources = files.iter().map(named).collect::<Result<Vec<_>, Trouble>>()?;
    columns(&sources, each).map_err(Trouble::Usage)
}

fn source(path: &Path) -> Result<Source, String> {
    let failed = |error: std::io::Error| format!("cannot be read ({error})");
    if path.is_dir() {
        let text = |which: &str| {
            let file = path.join(format!("schedstat-{which}.txt"));
            std::fs::read_to_string(&file).map_err(|error| format!("{} cannot be read ({error})", file.display()))
        };
        return Ok(Source::Pair(text("before")?, text("after")?));
    }
    let mut bytes = Vec::new();
    let read = |from: &mut dyn Read, into: &mut Vec<u8>| from.take(BYTES_MAX).read_to_end(into).map(drop);
    if path == Path::new("-") {
        read(&mut std::io::stdin().lock(), &mut bytes).map_err(failed)?;
    } else {
        read(&mut File::open(path).map_err(failed)?, &mut bytes).map_err(failed)?;
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return archive(&bytes);
    }
    Ok(Source::Text(String::from_utf8_lossy(&bytes).into_owned()))
}

/// An archive with schedstat-before.txt and schedstat-after.txt, as the recording script makes it.
fn archive(bytes: &[u8]) -> Result<Source, String> {
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(bytes).take(BYTES_MAX));
    let damaged = |error: std::io::Error| format!("a damaged archive ({error})");
    let (mut before, mut after) = (None, None);
    for entry in tar.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let name = entry.path().map_err(damaged)?.file_name().map(|name| name.to_string_lossy().into_owned());
        let slot = match name.as_deref() {
            Some("schedstat-before.txt") => &mut before,
            Some("schedstat-after.txt") => &mut after,
            _ => continue,
        };
        let mut text = String::new();
        entry.read_to_string(&mut text).map_err(damaged)?;
        *slot = Some(text);
    }
    match (before, after) {
        (Some(before), Some(after)) => Ok(Source::Pair(before, after)),
        _ => Err("an archive without schedstat-before.txt and schedstat-after.txt".to_owned()),
    }
}
