//! Cuts a tree.
use sisdiff_tree::{config::Config, extract::assemble};
use std::collections::BTreeMap;
fn main() {
    let root = std::env::args().nth(1).unwrap();
    let mut files = BTreeMap::new();
    for dir in ["kernel/sched", "include/linux/sched"] {
        let Ok(entries) = std::fs::read_dir(format!("{root}/{dir}")) else { continue };
        for e in entries {
            let e = e.unwrap();
            let n = e.file_name().into_string().unwrap();
            if n.ends_with(".h") || n.ends_with(".c") { files.insert(format!("{dir}/{n}"), String::from_utf8_lossy(&std::fs::read(e.path()).unwrap()).into_owned()); }
        }
    }
    for n in ["sched.h", "cpumask.h", "cpumask_types.h", "topology.h", "nodemask.h", "nodemask_types.h", "list.h", "llist.h", "rculist.h", "energy_model.h"] {
        let p = format!("include/linux/{n}");
        if let Ok(b) = std::fs::read(format!("{root}/{p}")) { files.insert(p, String::from_utf8_lossy(&b).into_owned()); }
    }
    for p in ["include/uapi/linux/sched.h"] { if let Ok(b) = std::fs::read(format!("{root}/{p}")) { files.insert(p.to_string(), String::from_utf8_lossy(&b).into_owned()); } }
    let t = std::time::Instant::now();
    match assemble::extract(&root, &files, &Config::default(), None) {
        Ok(e) => { print!("{}", e.text); for (f, p) in &e.functions { eprintln!("{p} {f}"); } for w in &e.warnings { eprintln!("warning: {w}"); } }
        Err(e) => { eprintln!("error: {e}"); std::process::exit(2) }
    }
    eprintln!("{:?}", t.elapsed());
}
