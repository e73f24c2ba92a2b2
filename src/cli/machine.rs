// SPDX-License-Identifier: GPL-2.0-or-later
//! Where the machine's description comes from.

use std::path::{Path, PathBuf};

use crate::cli::output::Trouble;
use crate::topology::TopologySource;

/// The source that `--topology` names; `files` are the recordings.
///
/// # Errors
/// If both are to be read from standard input.
pub fn given(text: Option<&str>, files: &[PathBuf]) -> Result<Option<TopologySource>, Trouble> {
    let source = text.map(TopologySource::parse);
    if source == Some(TopologySource::Stdin) && files.iter().any(|file| file == Path::new("-")) {
        return Err(Trouble::Usage(
            "--topology -: standard input holds the recording already; give one of them as a file".to_owned(),
        ));
    }
    Ok(source)
}

/// Reads standard input, if that is the source, so that several recordings can use it.
///
/// # Errors
/// If it cannot be read.
pub fn read(source: &mut Option<TopologySource>) -> Result<(), Trouble> {
    if let Some(given) = source.take() {
        *source = Some(given.once().map_err(|error| Trouble::Replay(error.into()))?);
    }
    Ok(())
}
