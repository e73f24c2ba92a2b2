// SPDX-License-Identifier: GPL-2.0-or-later
//! What a text that waits to be accepted is made from, read again when it is accepted.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::cli::gate_plan::{Loaded, Product};
use crate::cli::trees;
use crate::gate::digest::digest;
use crate::gate::origin::{MadeFrom, settings};
use crate::topology::TopologySource;

/// Files of a folder that describes a machine; a copy of /sys has thousands.
const FILES_MAX: usize = 200_000;

/// What decides about a snapshot of `product` and is not in its head. Contents, not places: what a service wrote can be
/// accepted elsewhere.
pub fn made_from(loaded: &Loaded, product: &Product<'_>) -> MadeFrom {
    let mut from = BTreeMap::new();
    let mut note = |name: &str, value: String| from.insert(name.to_owned(), value);
    note("sisdiff", env!("CARGO_PKG_VERSION").to_owned());
    note("settings", digest(settings(&loaded.config, product.pair).as_bytes()));
    note("topology", topology(product));
    if let Some(file) = &loaded.config.replay.affinity {
        note("affinity", read(Path::new(&loaded.seen_from_here(file))));
    }
    let options = &product.options;
    let sides = [("baseline", Some(&options.baseline)), ("patched", options.patched.first())];
    for (side, entrant) in sides.into_iter().chain([("recorded", options.recorded.as_ref())]) {
        if let Some(folder) = entrant.and_then(trees::sources) {
            note(side, sources(folder));
        }
    }
    from
}

fn topology(product: &Product<'_>) -> String {
    match &product.options.topology {
        Some(source) => described(source),
        None => {
            TopologySource::beside(&product.trace.path).map_or_else(|| "none".to_owned(), |source| described(&source))
        }
    }
}

fn described(source: &TopologySource) -> String {
    match source {
        TopologySource::Path(path) => read(path),
        TopologySource::Shorthand(text) => text.clone(),
        // It is what it is when it is asked.
        TopologySource::Live => "live".to_owned(),
        TopologySource::Stdin | TopologySource::Bytes(_) | TopologySource::Guess(_) => "given".to_owned(),
    }
}

/// A digest of a file, or of all files of a folder.
fn read(path: &Path) -> String {
    let read = if path.is_dir() { folder(path) } else { fs::read(path).map(|bytes| digest(&bytes)) };
    read.unwrap_or_else(|error| format!("unreadable ({})", error.kind()))
}

fn folder(root: &Path) -> io::Result<String> {
    let (mut folders, mut files) = (vec![root.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            match entry.file_type()? {
                kind if kind.is_dir() => folders.push(entry.path()),
                kind if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
        if files.len() > FILES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
    files.sort();
    let mut sum = Sha256::new();
    for file in files {
        let name = file.strip_prefix(root).unwrap_or(&file);
        sum.update(name.as_os_str().as_encoded_bytes());
        // Files of a real /sys may refuse.
        sum.update(digest(&fs::read(&file).unwrap_or_default()));
    }
    Ok(digest(&sum.finalize()))
}

/// The C that a tree was cut down to, not what a compiler made of it.
fn sources(folder: &Path) -> String {
    let list = |folder: &Path| -> io::Result<Vec<_>> { fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect() };
    let mut files = list(folder).unwrap_or_default();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "c" || ending == "h"));
    files.sort();
    let mut sum = Sha256::new();
    files.iter().for_each(|file| sum.update(read(file)));
    digest(&sum.finalize())
}
