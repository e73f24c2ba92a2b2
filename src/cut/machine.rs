// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine's description beside a recording, for the copy to be replayed with; without names, if asked.

use std::io::Write;
use std::path::Path;

use crate::cut::CutError;
use crate::topology::LoadError;
use crate::topology::files::Files;

/// Its name beside the new recording, unless it is a single text, which keeps its own.
pub const NAME: &str = "topology.tar.gz";

/// The description of the machine in `path`: the name for the copy, and a .tar.gz of the files that sisdiff reads; with
/// `anonymize` without what names the machine, its users and its tasks.
///
/// # Errors
/// [`CutError::Machine`], [`CutError::Unclean`].
pub fn packed(path: &Path, anonymize: bool) -> Result<(String, Vec<u8>), CutError> {
    let file = path.display().to_string();
    let Some(files) = Files::open(path)? else {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        return match (anonymize, name) {
            (false, Some(name)) => {
                let unread = |error: std::io::Error| LoadError::Read { file, reason: error.to_string() };
                Ok((name, std::fs::read(path).map_err(unread)?))
            }
            _ => Err(CutError::Unclean { file }),
        };
    };
    if files.has_no_cpus() {
        return Err(LoadError::NoCpus { file }.into());
    }
    let broken = |error: std::io::Error| LoadError::Read { file, reason: error.to_string() };
    Ok((NAME.to_owned(), pack(&files, anonymize).map_err(broken)?))
}

fn pack(files: &Files, anonymize: bool) -> std::io::Result<Vec<u8>> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let mut tar = tar::Builder::new(gzip);
    for (path, bytes) in files.iter() {
        let clean = if anonymize { cleaned(path, bytes) } else { bytes.to_vec() };
        let mut header = tar::Header::new_gnu();
        header.set_size(clean.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, clean.as_slice())?;
    }
    for name in files.names() {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        header.set_mode(0o777);
        tar.append_link(&mut header, name, "../..")?;
    }
    let mut gzip = tar.into_inner()?;
    gzip.flush()?;
    gzip.finish()
}

/// What a file tells without names.
fn cleaned(path: &str, bytes: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(bytes) else { return bytes.to_vec() };
    let keep = |keep: &dyn Fn(&str) -> Option<String>| -> Vec<u8> {
        text.lines().filter_map(keep).map(|line| line + "\n").collect::<String>().into_bytes()
    };
    match path {
        "proc/version" => version(text).into_bytes(),
        "proc/cpuinfo" => keep(&|line| is_cpuinfo(line).then(|| line.to_owned())),
        "sys/kernel/debug/sched/debug" | "proc/sched_debug" => keep(&debug),
        _ => bytes.to_vec(),
    }
}

/// Who built the kernel where: `(root@build.example.org)`.
fn version(text: &str) -> String {
    let words = text.split(' ').map(|word| if word.contains('@') { "(-)" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// Serial numbers and the like are elsewhere.
fn is_cpuinfo(line: &str) -> bool {
    const KEYS: [&str; 18] = [
        "processor",
        "vendor_id",
        "cpu family",
        "model",
        "model name",
        "stepping",
        "physical id",
        "siblings",
        "core id",
        "cpu cores",
        "apicid",
        "cpu MHz",
        "CPU implementer",
        "CPU architecture",
        "CPU variant",
        "CPU part",
        "CPU revision",
        "BogoMIPS",
    ];
    line.is_empty() || line.split_once(':').is_some_and(|(key, _)| KEYS.contains(&key.trim()))
}

/// The scheduler's debug file names every task and control group: clocks, settings and the run queues' bounds stay.
fn debug(line: &str) -> Option<String> {
    if let Some((head, path)) = line.split_once("]:").filter(|(head, _)| head.starts_with("cfs_rq[")) {
        // The root group alone, which tells that there are groups.
        return (path.is_empty() || path == "/").then(|| format!("{head}]:{path}"));
    }
    let key = line.split(':').next().unwrap_or("").trim();
    let is_head = matches!(key, "ktime" | "sched_clk" | "cpu_clk" | "jiffies") || key.starts_with("sysctl_");
    let is_queue =
        line.starts_with("cpu#") || key == ".max_idle_balance_cost" || line.contains(".max_idle_balance_cost");
    (is_head || is_queue || line.starts_with("Sched Debug")).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_people_tasks_and_groups_go() {
        let text =
            "Linux version 6.1.0-57-amd64 (debian-kernel@lists.debian.org) (gcc-12 12.2.0) #1 SMP Debian 6.1.192-3\n";
        assert_eq!(version(text), text.replace("(debian-kernel@lists.debian.org)", "(-)"));
        let debug_text = "Sched Debug Version: v0.11, 6.1.0\nktime : 1.5\njiffies : 42\ncpu#0, 2596.150 MHz\n  .nr_running : 1\n  \
            .max_idle_balance_cost : 500000\n\ncfs_rq[0]:/user.slice/secret\n\ncfs_rq[0]:/\n  .exec_clock : 1\n\nrunnable tasks:\n \
            S  secret 1234  5.6  7 120\n";
        let clean = String::from_utf8(cleaned("proc/sched_debug", debug_text.as_bytes())).expect("text");
        assert!(!clean.contains("secret") && !clean.contains("exec_clock"), "{clean}");
        for kept in ["ktime : 1.5", "jiffies : 42", "cpu#0,", "500000", "cfs_rq[0]:/\n"] {
            assert!(clean.contains(kept), "{kept}: {clean}");
        }
        let cpuinfo = "processor\t: 0\nmodel name\t: QEMU TCG CPU version 2.5+\nSerial\t\t: 0000c0ffee\n\n";
        assert_eq!(
            cleaned("proc/cpuinfo", cpuinfo.as_bytes()),
            cpuinfo.replace("Serial\t\t: 0000c0ffee\n", "").as_bytes()
        );
        assert_eq!(cleaned("sys/devices/system/cpu/online", b"0-7\n"), b"0-7\n");
    }

    #[test]
    fn a_description_that_cannot_be_cleaned_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("topology.json");
        std::fs::write(&path, "{\"cpus\": []}").expect("written");
        let error = packed(&path, true).expect_err("refused");
        assert!(error.to_string().contains("topology.json"), "{error}");
        let (name, bytes) = packed(&path, false).expect("copied");
        assert_eq!((name.as_str(), bytes.as_slice()), ("topology.json", &b"{\"cpus\": []}"[..]));
        let error = packed(&dir.path().join("none"), false).expect_err("absent");
        assert!(error.to_string().contains("none"), "{error}");
    }
}
