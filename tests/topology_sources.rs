// SPDX-License-Identifier: GPL-2.0-or-later
//! One machine described by /sys, lscpu and hwloc is one machine, as far as each tells. The samples in
//! `tests/topologies` are made by its `make.sh`.

use std::io::Read;
use std::path::{Path, PathBuf};

use sisdiff::cpumask::Cpumask;
use sisdiff::topology::{self, Arch, Form, Loaded, TopologySource};
use sisdiff::units::Cpu;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sample(name: &str) -> PathBuf {
    root().join("tests/topologies").join(name)
}

fn load(path: &Path) -> Loaded {
    topology::load(&TopologySource::Path(path.to_owned())).unwrap_or_else(|error| panic!("{error}"))
}

/// A folder of the material beside the project; `None`, with a message, without it.
fn shared(folder: &str) -> Option<PathBuf> {
    let found =
        ["../shared", "../../shared"].into_iter().map(|shared| root().join(shared).join(folder)).find(|f| f.is_dir());
    if found.is_none() {
        println!("skipped: ../shared/{folder} is not there");
    }
    found
}

const MAILED: [(&str, &str); 4] = [
    ("intel-8cpu-linux6.2", "x86_64-64cpu-linux6.2.tar.gz"),
    ("opteron-bulldozer-64cpu", "64amd64-4s2n4ca2co.tar.bz2"),
    ("riscv-visionfive2-4cpu", "rv64-visionfive2.tar.gz"),
    ("xeon-2s-subnuma-80cpu", "memorysidecaches.tar.bz2"),
];

/// The facts that every source tells: CPUs, cores, last-level caches, packages and nodes of the online CPUs.
fn same(told: &Loaded, sysfs: &Loaded, at: &str) {
    let (have, want) = (&told.hardware, &sysfs.hardware);
    assert_eq!(have.online, want.online, "{at}: online CPUs");
    for cpu in want.online.iter() {
        let of = |column: &[Cpumask]| column[cpu.index()];
        assert_eq!(of(&have.smt), of(&want.smt), "{at}: the core of CPU {cpu}");
        assert_eq!(of(&have.llc), of(&want.llc), "{at}: the last-level cache of CPU {cpu}");
        assert_eq!(of(&have.package), of(&want.package), "{at}: the package of CPU {cpu}");
        assert_eq!(have.node[cpu.index()], want.node[cpu.index()], "{at}: the node of CPU {cpu}");
    }
}

/// What hwloc tells besides: distances.
fn same_distances(told: &Loaded, sysfs: &Loaded, at: &str) {
    let nodes = sysfs.hardware.nodes();
    assert_eq!(told.hardware.nodes(), nodes, "{at}");
    for (&a, &b) in nodes.iter().flat_map(|a| nodes.iter().map(move |b| (a, b))) {
        assert_eq!(told.hardware.node_distance(a, b), sysfs.hardware.node_distance(a, b), "{at}: nodes {a} and {b}");
    }
}

#[test]
fn mailed_machines_are_the_same_by_every_source() {
    let Some(folder) = shared("topologies") else { return };
    let (mut tables, mut summaries) = (0, 0);
    for (name, archive) in MAILED {
        let sysfs = load(&folder.join(name).join(archive));
        assert_eq!(sysfs.form, Form::Sysfs);
        for version in [1, 2] {
            let at = format!("{name}.hwloc{version}.xml.gz");
            let told = load(&sample(&at));
            assert_eq!(told.form, Form::Hwloc, "{at}");
            same(&told, &sysfs, &at);
            same_distances(&told, &sysfs, &at);
        }
        for ext in ["lscpu-p.txt", "lscpu-e.txt", "lscpu-e.json"] {
            let at = format!("{name}.{ext}");
            // lscpu 2.38 prints rows of dashes for this one, which has no list of possible CPUs.
            if name.starts_with("riscv") {
                let error = topology::load(&TopologySource::Path(sample(&at))).expect_err("no CPU").to_string();
                assert!(error.contains(&at) && error.contains("no online CPU"), "{error}");
                continue;
            }
            let told = load(&sample(&at));
            assert_eq!(told.form, Form::LscpuTable, "{at}");
            same(&told, &sysfs, &at);
            tables += 1;
        }
        let at = format!("{name}.lscpu.json");
        let told = load(&sample(&at));
        assert!(told.form == Form::LscpuSummary && told.form.is_guess(), "{at}");
        assert!(told.notes[0].starts_with("the topology is a guess"), "{at}: {:?}", told.notes);
        // Counts and nodes are told. Where nodes are interleaved, which of them share a cache is guessed wrong.
        assert_eq!(topology::summary(&told.topology), topology::summary(&sysfs.topology), "{at}");
        assert_eq!(told.hardware.node, sysfs.hardware.node, "{at}");
        assert_eq!(told.hardware.smt, sysfs.hardware.smt, "{at}");
        if !name.starts_with("xeon") {
            same(&told, &sysfs, &at);
        }
        summaries += 1;
    }
    assert_eq!((tables, summaries), (9, 4));
}

/// The same without the material beside the project, by what its notes say of the machines.
#[test]
fn samples_of_mailed_machines_are_what_their_notes_say() {
    for (name, want) in [
        ("intel-8cpu-linux6.2", "8 CPUs, 4 cores of 2 threads, 1 LLC, 1 node"),
        ("opteron-bulldozer-64cpu", "64 CPUs, 32 cores of 2 threads, 8 LLCs, 8 nodes"),
        ("riscv-visionfive2-4cpu", "4 CPUs, 4 cores without SMT, 1 LLC, 1 node"),
        // Two caches of 40 CPUs, each cut at the node.
        ("xeon-2s-subnuma-80cpu", "80 CPUs, 40 cores of 2 threads, 4 LLCs, 4 nodes"),
    ] {
        for ext in ["hwloc1.xml.gz", "hwloc2.xml.gz", "lscpu-p.txt", "lscpu-e.txt", "lscpu-e.json", "lscpu.json"] {
            if name.starts_with("riscv") && (ext.contains("-p.") || ext.contains("-e.")) {
                continue;
            }
            let told = load(&sample(&format!("{name}.{ext}")));
            assert_eq!(topology::summary(&told.topology), want, "{name}.{ext}");
        }
    }
}

/// The recordings' archives hold what lscpu printed on the machine itself.
#[test]
fn recorded_machines_are_the_same_by_every_source() {
    let folders = [Some(root().join("traces")), shared("traces")];
    let entries =
        folders.into_iter().flatten().flat_map(|folder| std::fs::read_dir(folder).expect("a folder").flatten());
    let (mut tables, mut summaries, mut xml) = (0, 0, 0);
    for folder in entries {
        let path = folder.path().join("topology.tar.gz");
        let Ok(packed) = std::fs::read(&path) else { continue };
        let sysfs = load(&path);
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&packed[..]));
        for entry in archive.entries().expect("an archive") {
            let mut entry = entry.expect("an entry");
            let name = entry.path().expect("a path").file_name().map(|name| name.to_string_lossy().into_owned());
            let Some(name) = name.filter(|name| name.starts_with("lscpu")) else { continue };
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("a file");
            let at = format!("{}: {name}", path.display());
            let told = topology::load::from_bytes(&at, &bytes, sysfs.snapshot.release())
                .unwrap_or_else(|error| panic!("{error}"));
            match told.form {
                Form::LscpuTable => {
                    same(&told, &sysfs, &at);
                    tables += 1;
                }
                Form::LscpuSummary => {
                    assert_eq!(told.hardware.online, sysfs.hardware.online, "{at}");
                    assert_eq!(told.hardware.node, sysfs.hardware.node, "{at}");
                    assert_eq!(topology::summary(&told.topology), topology::summary(&sysfs.topology), "{at}");
                    summaries += 1;
                }
                form => panic!("{at}: {form}"),
            }
        }
        let name = folder.file_name().to_string_lossy().into_owned();
        for version in [1, 2] {
            let at = sample(&format!("{name}.hwloc{version}.xml.gz"));
            if at.exists() {
                let told = load(&at);
                same(&told, &sysfs, &name);
                same_distances(&told, &sysfs, &name);
                xml += 1;
            }
        }
    }
    println!("{tables} tables, {summaries} summaries, {xml} of hwloc");
    assert!(tables >= 3 && summaries >= 6 && xml >= 6, "{tables} tables, {summaries} summaries, {xml} of hwloc");
}

#[test]
fn an_odd_machine_is_the_same_by_every_source() {
    let sysfs = load(&sample("odd.tar.xz"));
    let hw = &sysfs.hardware;
    assert_eq!((hw.nr_cpu_ids, hw.online.to_string()), (8, "0-2,4-5,7".to_owned()));
    assert_eq!((hw.cluster[1].to_string(), hw.llc[1].to_string()), ("0-2".to_owned(), "0-2,4-5,7".to_owned()));
    assert_eq!((hw.capacity[0], hw.capacity[7], hw.arch), (446, 1024, Arch::Generic));
    assert_eq!((hw.nodes(), hw.node_distance(0, 2), hw.node_distance(2, 0)), (vec![0, 2], 17, 17));
    assert!(sysfs.notes.iter().any(|note| note.starts_with("node 2 has memory only")), "{:?}", sysfs.notes);
    for ext in ["hwloc1.xml.gz", "hwloc2.xml.gz", "lscpu-p.txt", "lscpu-e.txt", "lscpu-e.json", "lscpu.json"] {
        let told = load(&sample(&format!("odd.{ext}")));
        same(&told, &sysfs, ext);
        if told.form == Form::Hwloc {
            same_distances(&told, &sysfs, ext);
        }
    }
    // The second version has clusters and capacities, and so the same domains as /sys gives.
    let two = load(&sample("odd.hwloc2.xml.gz"));
    assert_eq!(two.hardware.arch, Arch::Generic, "no x86 has capacities");
    for cpu in hw.online.iter() {
        assert_eq!(two.hardware.cluster[cpu.index()], hw.cluster[cpu.index()], "CPU {cpu}");
        assert_eq!(two.hardware.capacity[cpu.index()], hw.capacity[cpu.index()], "CPU {cpu}");
        let chain = |loaded: &Loaded| {
            let domains = loaded.topology.hierarchy(cpu).iter().map(|&id| loaded.topology.domain(id).clone());
            domains.collect::<Vec<_>>()
        };
        assert_eq!(chain(&two), chain(&sysfs), "CPU {cpu}");
    }
}

#[test]
fn a_synthetic_machine_of_hwloc_is_the_shorthand() {
    let told = load(&sample("synthetic.hwloc2.xml.gz"));
    let shorthand = topology::load(&TopologySource::Shorthand("2x2d4x2:adjacent".to_owned())).expect("a shorthand");
    for cpu in told.topology.cpus() {
        let at = cpu.index();
        assert_eq!(told.hardware.smt[at], shorthand.hardware.smt[at], "CPU {cpu}");
        assert_eq!(told.hardware.llc[at], shorthand.hardware.llc[at], "CPU {cpu}");
        assert_eq!(told.hardware.node[at], shorthand.hardware.node[at], "CPU {cpu}");
    }
    assert_eq!(told.topology.nr_cpu_ids(), 32);
}

/// lscpu and hwloc, where they are installed, on the machine that this runs on.
#[test]
fn the_machine_this_runs_on_is_the_same_by_every_source() {
    if !Path::new("/sys/devices/system/cpu").exists() {
        println!("skipped: /sys is not there");
        return;
    }
    let live = topology::load(&TopologySource::Live).unwrap_or_else(|error| panic!("{error}"));
    for command in [
        &["lscpu", "-p"][..],
        &["lscpu", "-e"],
        &["lscpu", "-J", "-e"],
        &["lscpu", "-p=CPU,CORE,SOCKET,NODE,CACHE,ONLINE"],
        &["lstopo-no-graphics", "--of", "xml"],
        &["lstopo-no-graphics", "--of", "xml", "--export-xml-flags", "v1"],
    ] {
        let run = std::process::Command::new(command[0]).args(&command[1..]).env("LC_ALL", "C").output();
        let Some(output) = run.ok().filter(|output| output.status.success()) else {
            println!("skipped: {} does not run", command.join(" "));
            continue;
        };
        let at = command.join(" ");
        let told = topology::load::from_bytes(&at, &output.stdout, None).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(told.hardware.online, live.hardware.online, "{at}");
        for cpu in live.hardware.online.iter() {
            assert_eq!(told.hardware.smt[cpu.index()], live.hardware.smt[cpu.index()], "{at}: CPU {cpu}");
            assert_eq!(told.hardware.node[cpu.index()], live.hardware.node[cpu.index()], "{at}: CPU {cpu}");
            assert_eq!(told.hardware.llc[cpu.index()], live.hardware.llc[cpu.index()], "{at}: CPU {cpu}");
        }
    }
}

#[test]
fn every_packing_is_unpacked() {
    let want = load(&sample("odd.tar.xz"));
    let packed = std::fs::read(sample("odd.tar.xz")).expect("a sample");
    let mut tar = Vec::new();
    lzma_rust2::XzReader::new(&packed[..], true).read_to_end(&mut tar).expect("xz");
    let mut gz = Vec::new();
    flate2::read::GzEncoder::new(&tar[..], flate2::Compression::best()).read_to_end(&mut gz).expect("gzip");
    let mut bz2 = Vec::new();
    bzip2::read::BzEncoder::new(&tar[..], bzip2::Compression::best()).read_to_end(&mut bz2).expect("bzip2");
    let zst = ruzstd::encoding::compress_to_vec(&tar[..], ruzstd::encoding::CompressionLevel::Fastest);
    for (name, bytes) in [("tar", &tar), ("gz", &gz), ("bz2", &bz2), ("zst", &zst), ("xz", &packed)] {
        // The name says nothing of the packing.
        let told = topology::load::from_bytes("box.txt", bytes, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((told.hardware, told.notes), (want.hardware.clone(), want.notes.clone()), "{name}");
        for cut in [bytes.len() / 2, bytes.len() * 9 / 10] {
            let error = topology::load::from_bytes("box.txt", &bytes[..cut], None).expect_err(name).to_string();
            assert!(error.contains("box.txt"), "{name}: {error}");
        }
    }
}

#[test]
fn what_a_source_lacks_is_said() {
    for (name, words) in [
        ("xeon-2s-subnuma-80cpu.lscpu-p.txt", ["node distances", "capacities", "sched domains"]),
        ("xeon-2s-subnuma-80cpu.lscpu.json", ["is a guess", "which CPUs share a core", "lscpu -J -e"]),
        ("xeon-2s-subnuma-80cpu.hwloc1.xml.gz", ["isolated CPUs", "CPU capacities", "a copy of /sys"]),
    ] {
        let text = topology::describe(&load(&sample(name))).split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(text.contains(word), "{name} lacks {word:?}: {text}");
        }
    }
    let odd = load(&sample("odd.tar.xz"));
    let lacks =
        "not in the description: /proc/version (the kernel), the scheduler's features in debugfs, the kernel's list";
    assert!(odd.notes.iter().any(|note| note.starts_with(lacks)), "{:?}", odd.notes);
    let whole = load(&root().join("traces/dies12-truth/topology.tar.gz"));
    assert!(!whole.notes.iter().any(|note| note.starts_with("not in the description")), "{:?}", whole.notes);
    let error =
        topology::load::from_bytes("notes.md", b"# My machine\nis fine\n", None).expect_err("prose").to_string();
    assert!(error.contains("notes.md"), "{error}");
    let error = topology::load::from_bytes("x", b"Architektur: x86_64\n", None).expect_err("German").to_string();
    assert!(error.contains("Architektur") && error.contains("lstopo --of xml"), "{error}");
    assert_eq!(load(&sample("odd.tar.xz")).topology.node(Cpu(7)), 0);
}
