// SPDX-License-Identifier: GPL-2.0-or-later
//! From an [`Extract`] to an object: the system's `cc` with fixed flags.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::TreeError;
use crate::extract::assemble::Extract;
use crate::standins;

/// Flags of every build. The kernel's own dialect: no strict aliasing, signed overflow wraps, a null dereference is kept
/// (it must fault where the kernel's would).
const FLAGS: &[&str] = &[
    "-std=gnu11",
    "-O2",
    "-g1",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-delete-null-pointer-checks",
    "-fno-common",
    "-fvisibility=hidden",
    "-fno-ident",
    "-Wall",
    "-Wno-unused",
    "-Wno-main",
    "-Werror=implicit-function-declaration",
    "-Werror=implicit-int",
    "-Werror=int-conversion",
    "-Werror=incompatible-pointer-types",
];

/// What is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// An object to be opened in this process.
    Object,
    /// A program that answers in a process of its own.
    Helper,
    /// The same with the compiler's address and undefined-behaviour checks.
    Sanitized,
}

impl Target {
    /// The file's name in a build directory.
    pub fn file(self) -> &'static str {
        match self {
            Self::Object => "tree.so",
            Self::Helper => "tree-helper",
            Self::Sanitized => "tree-sanitized",
        }
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Object => &["-fPIC", "-shared", "-Wl,-z,defs", "-Wl,-z,now"],
            Self::Helper => &["-DSD_HELPER"],
            Self::Sanitized => &[
                "-DSD_HELPER",
                "-DSD_SANITIZED",
                "-fsanitize=address,undefined",
                "-fno-sanitize-recover=all",
                "-fno-omit-frame-pointer",
            ],
        }
    }
}

/// The compiler: `$CC`, else `cc`.
pub fn compiler() -> String {
    std::env::var("CC").ok().filter(|cc| !cc.trim().is_empty()).unwrap_or_else(|| "cc".to_owned())
}

/// What the compiler says it is.
///
/// # Errors
/// There is none.
pub fn compiler_version() -> Result<String, TreeError> {
    let cc = compiler();
    let output = Command::new(&cc).arg("--version").output();
    let output = output.map_err(|source| TreeError::NoCompiler { cc: cc.clone(), source })?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
}

/// Everything that goes into a build but the tree: for the name of a cache entry.
pub fn recipe(targets: &[Target]) -> String {
    let mut text = FLAGS.join(" ");
    for target in targets {
        text += target.flags().join(" ").as_str();
    }
    for (_, header) in standins::HEADERS {
        text += header;
    }
    [&text, standins::PROBE, standins::GLUE, standins::RUNTIME].concat()
}

/// Writes the sources into `dir`.
///
/// # Errors
/// The directory cannot be written.
pub fn write_sources(dir: &Path, extract: &Extract, shim: Option<&str>) -> Result<(), TreeError> {
    let write = |name: &str, text: &str| {
        let path = dir.join(name);
        let parent = path.parent().unwrap_or(dir);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|source| TreeError::Io { path: path.display().to_string(), source })
    };
    for (name, text) in standins::HEADERS {
        write(name, text)?;
    }
    for (name, text) in &extract.includes {
        write(name, text)?;
    }
    if let Some(shim) = shim {
        write("shim.h", shim)?;
    }
    write("probe.h", standins::PROBE)?;
    write("glue.c", standins::GLUE)?;
    write("runtime.c", standins::RUNTIME)?;
    write("tree.c", &extract.text)
}

/// Compiles the sources in `dir` to `target`; the warnings.
///
/// # Errors
/// No compiler, or one that refuses.
pub fn compile(dir: &Path, name: &str, target: Target) -> Result<(PathBuf, String), TreeError> {
    let cc = compiler();
    let object = dir.join(target.file());
    // Under a name of its own until it is whole: others may look for it.
    let fresh = format!("{}.{}", target.file(), std::process::id());
    let output = Command::new(&cc)
        .current_dir(dir)
        .args(FLAGS)
        .args(target.flags())
        .args(["-I.", "-o", &fresh, "tree.c", "runtime.c"])
        .env("LC_ALL", "C")
        .output()
        .map_err(|source| TreeError::NoCompiler { cc: cc.clone(), source })?;
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(refusal(name, &cc, &log));
    }
    std::fs::rename(dir.join(&fresh), &object)
        .map_err(|source| TreeError::Io { path: object.display().to_string(), source })?;
    Ok((object, log))
}

/// The compiler's refusal in one sentence: an unknown symbol where that is what it complains of.
fn refusal(name: &str, cc: &str, log: &str) -> TreeError {
    let error = log.lines().find(|line| line.contains(" error: ") || line.contains("undefined reference to"));
    let error = error.unwrap_or_else(|| log.lines().next().unwrap_or_default());
    let quoted = |text: &str| text.split(['\'', '‘', '’', '`']).nth(1).map(str::to_owned);
    let unknown = ["undeclared", "implicit declaration of function", "undefined reference to", "unknown type name"];
    let mut place = error.splitn(3, ':');
    let (path, line) = (place.next().unwrap_or_default(), place.next().and_then(|line| line.trim().parse().ok()));
    if unknown.iter().any(|what| error.contains(what))
        && let (Some(symbol), Some(line)) =
            (error.split_once("error:").map_or(Some(error), |(_, text)| Some(text)).and_then(quoted), line)
    {
        let inside =
            log.lines().take_while(|line| *line != error).filter_map(|line| line.split_once("In function ")).last();
        let by = inside.and_then(|(_, text)| quoted(text)).unwrap_or_else(|| "the tree".to_owned());
        return TreeError::Unresolved { symbol, by, path: path.to_owned(), line };
    }
    TreeError::Compile { path: name.to_owned(), cc: cc.to_owned(), error: error.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_symbol_is_named_with_its_place() {
        let log = "kernel/sched/fair.c: In function 'select_idle_cpu':\nkernel/sched/fair.c:71:9: error: implicit declaration of function 'nice_helper' [-Werror]\n";
        let error = refusal("x", "cc", log).to_string();
        for part in ["kernel/sched/fair.c:71", "nice_helper", "select_idle_cpu", "--shim"] {
            assert!(error.contains(part), "{error}");
        }
        let error = refusal("x", "cc", "kernel/sched/fair.c:9:1: error: expected ';' before '}' token\n").to_string();
        assert!(error.contains("expected ';'"), "{error}");
    }
}
