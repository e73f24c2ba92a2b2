// SPDX-License-Identifier: GPL-2.0-or-later
//! What is written of a random machine in each form is read as that machine, also with its CPUs numbered anew.

use std::fmt::Write as _;

use oorandom::Rand32;
use sisdiff::cpumask::Cpumask;
use sisdiff::topology::load::from_bytes;
use sisdiff::topology::{self, Hardware, Loaded};
use sisdiff::units::Cpu;

/// Cores within clusters within caches within packages within or across nodes, numbered at random, some CPUs offline.
fn machine(rand: &mut Rand32) -> Hardware {
    let threads = [1, 2, 2, 4][rand.rand_range(0..4) as usize];
    let (cores, caches) = (rand.rand_range(1..5), rand.rand_range(1..4));
    let packages = rand.rand_range(1..4);
    let nr = (threads * cores * caches * packages) as usize;
    let mut hw = Hardware::separate(nr);
    let order = shuffled(rand, nr);
    let groups = |size: u32| -> Vec<Cpumask> {
        let mut masks = vec![Cpumask::EMPTY; nr];
        for chunk in order.chunks(size as usize) {
            let mask: Cpumask = chunk.iter().map(|&cpu| Cpu(cpu as u16)).collect();
            chunk.iter().for_each(|&cpu| masks[cpu] = mask);
        }
        masks
    };
    hw.smt = groups(threads);
    hw.llc = groups(threads * cores);
    hw.package = groups(threads * cores * caches);
    let per_node = threads * cores * [1, caches][rand.rand_range(0..2) as usize];
    let step = rand.rand_range(1..3) as usize;
    for (at, &cpu) in order.iter().enumerate() {
        hw.node[cpu] = (at / per_node as usize * step) as u32;
    }
    hw.online = (1..nr).filter(|_| rand.rand_range(0..8) != 0).chain([0]).filter_map(Cpu::new).collect();
    let nodes = hw.nodes_with_cpus();
    hw.distance = vec![Vec::new(); nodes.last().map_or(0, |&node| node as usize + 1)];
    for &a in &nodes {
        let row = (0..hw.distance.len() as u32).map(|b| match (a == b, nodes.contains(&b)) {
            (true, _) => 10,
            (_, true) => 11 + (a + b) % 5 * 9,
            _ => 20,
        });
        hw.distance[a as usize] = row.collect();
    }
    only_online(&mut hw);
    hw
}

fn shuffled(rand: &mut Rand32, nr: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..nr).collect();
    for at in (1..nr).rev() {
        order.swap(at, rand.rand_range(0..at as u32 + 1) as usize);
    }
    order
}

/// What descriptions tell: groups of online CPUs, nothing of the others.
fn only_online(hw: &mut Hardware) {
    let online = hw.online;
    for column in [&mut hw.smt, &mut hw.llc, &mut hw.package] {
        for (cpu, mask) in column.iter_mut().enumerate() {
            let own = Cpumask::of(Cpu(cpu as u16));
            *mask = if online.intersects(&own) { *mask & online } else { own };
        }
    }
}

fn relabelled(hw: &Hardware, to: &[usize]) -> Hardware {
    let mask = |mask: &Cpumask| mask.iter().map(|cpu| Cpu(to[cpu.index()] as u16)).collect::<Cpumask>();
    let mut new = hw.clone();
    new.online = mask(&hw.online);
    for (cpu, &new_cpu) in to.iter().enumerate() {
        (new.smt[new_cpu], new.llc[new_cpu]) = (mask(&hw.smt[cpu]), mask(&hw.llc[cpu]));
        (new.package[new_cpu], new.node[new_cpu]) = (mask(&hw.package[cpu]), hw.node[cpu]);
    }
    new
}

/// The number of a CPU's group: its first CPU.
fn id(column: &[Cpumask], cpu: Cpu) -> usize {
    column[cpu.index()].first().map_or(0, Cpu::index)
}

fn lscpu_p(hw: &Hardware) -> String {
    let mut text = "# The following is the parsable format, which can be fed to other\n# programs.\n# \
                    Node,CPU,Socket,Core,Online,L1d,L1i,L2,L3\n"
        .to_owned();
    for cpu in hw.cpus() {
        let (core, llc) = (id(&hw.smt, cpu), id(&hw.llc, cpu));
        if hw.online.test(cpu) {
            let _ = write!(text, "{},{cpu},{},{core},Y,", hw.node[cpu.index()], id(&hw.package, cpu));
            let _ = writeln!(text, "{core},{core},{core},{llc}");
        } else {
            let _ = writeln!(text, ",{cpu},,,N,,,,");
        }
    }
    text
}

fn lscpu_e(hw: &Hardware) -> String {
    let mut text = "CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE MAXMHZ\n".to_owned();
    for cpu in hw.cpus() {
        let (core, llc) = (id(&hw.smt, cpu), id(&hw.llc, cpu));
        let (node, package) = (hw.node[cpu.index()], id(&hw.package, cpu));
        let _ = match hw.online.test(cpu) {
            true => writeln!(text, "{cpu} {node} {package} {core} {core}:{core}:{core}:{llc} yes 3000.0"),
            false => writeln!(text, "{cpu} - - - - no -"),
        };
    }
    text
}

/// As the first versions with JSON (all strings), as later ones, and with 2.38's bare dashes.
fn lscpu_json(hw: &Hardware, version: u32) -> String {
    let value = |n: usize| if version == 0 { format!("\"{n}\"") } else { n.to_string() };
    let none = ["null", "null", "-"][version as usize];
    let row = |cpu: Cpu| {
        let online = hw.online.test(cpu);
        let told = |n: usize| if online { value(n) } else { none.to_owned() };
        let (core, llc) = (id(&hw.smt, cpu), id(&hw.llc, cpu));
        let caches = if online { format!("\"{core}:{core}:{core}:{llc}\"") } else { "\"-\"".to_owned() };
        let yes = match (version, online) {
            (0, true) => "\"yes\"",
            (0, false) => "\"no\"",
            (_, true) => "true",
            (_, false) => "false",
        };
        format!(
            "{{\"cpu\": {}, \"node\": {}, \"socket\": {}, \"core\": {}, \"l1d:l1i:l2:l3\": {caches}, \"online\": {yes}, \
             \"maxmhz\": {none}}}",
            value(cpu.index()),
            told(hw.node[cpu.index()] as usize),
            told(id(&hw.package, cpu)),
            told(core),
        )
    };
    format!("{{\"cpus\": [{}]}}", hw.cpus().map(row).collect::<Vec<_>>().join(","))
}

fn hex(mask: &Cpumask) -> String {
    let words = mask.words().iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]);
    let mut groups: Vec<String> = words.map(|word| format!("0x{word:08x}")).collect();
    while groups.len() > 1 && groups.last().is_some_and(|group| group == "0x00000000") {
        groups.pop();
    }
    groups.reverse();
    groups.join(",")
}

fn distinct(hw: &Hardware, column: &[Cpumask]) -> Vec<Cpumask> {
    let mut masks: Vec<Cpumask> = hw.online.iter().map(|cpu| column[cpu.index()]).collect();
    masks.sort_unstable();
    masks.dedup();
    masks
}

/// Objects one beside the other: what the reader wants is in their masks.
fn hwloc(hw: &Hardware, version: u32) -> String {
    let all = Cpumask::first_n(hw.nr_cpu_ids);
    let (cpuset, complete) = (hex(&hw.online), hex(&all));
    let mut objects = String::new();
    let mut object = |kind: &str, more: &str, mask: &Cpumask| {
        let _ = writeln!(objects, "<object type=\"{kind}\" {more} cpuset=\"{}\"/>", hex(mask));
    };
    let (socket, cache) = if version == 1 { ("Socket", "Cache") } else { ("Package", "L3Cache") };
    distinct(hw, &hw.package).iter().for_each(|mask| object(socket, "", mask));
    distinct(hw, &hw.llc).iter().for_each(|mask| object(cache, "depth=\"3\" cache_type=\"0\"", mask));
    distinct(hw, &hw.smt).iter().for_each(|mask| object("Core", "", mask));
    let mut nodes = hw.nodes_with_cpus();
    nodes.reverse();
    nodes.iter().for_each(|&node| object("NUMANode", &format!("os_index=\"{node}\""), &hw.cpus_of_node(node)));
    hw.online.iter().for_each(|cpu| object("PU", &format!("os_index=\"{cpu}\""), &Cpumask::of(cpu)));
    let values: Vec<u32> =
        nodes.iter().flat_map(|&a| nodes.iter().map(move |&b| (a, b))).map(|(a, b)| hw.node_distance(a, b)).collect();
    let (n, list) = (nodes.len(), |list: &[u32]| list.iter().map(u32::to_string).collect::<Vec<_>>().join(" "));
    match version {
        1 => {
            let values: String =
                values.iter().map(|&v| format!("<latency value=\"{:.6}\"/>", f64::from(v) / 10.0)).collect();
            format!(
                "<?xml version=\"1.0\"?>\n<topology>\n<object type=\"Machine\" cpuset=\"{complete}\" \
                 complete_cpuset=\"{complete}\" online_cpuset=\"{cpuset}\">\n<distances nbobjs=\"{n}\" \
                 relative_depth=\"1\" latency_base=\"10.0\">{values}</distances>{objects}</object></topology>"
            )
        }
        _ => format!(
            "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n<object \
             type=\"Machine\" cpuset=\"{cpuset}\" complete_cpuset=\"{complete}\">{objects}</object>\n<distances2 \
             type=\"NUMANode\" nbobjs=\"{n}\" kind=\"5\" name=\"NUMALatency\" indexing=\"os\"><indexes \
             length=\"1\">{}</indexes><u64values length=\"1\">{}</u64values></distances2></topology>",
            list(&nodes),
            list(&values)
        ),
    }
}

/// A tar of /sys, with lists or with masks.
fn sysfs(hw: &Hardware, masks: bool) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut put = |path: String, text: String| {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, text.as_bytes()).expect("an entry");
    };
    let list = |mask: &Cpumask| if mask.is_empty() { String::new() } else { mask.to_string() };
    let mask = |mask: &Cpumask| hex(mask).replace("0x", "");
    let (cpus, nodes) = ("dump/sys/devices/system/cpu", "dump/sys/devices/system/node");
    put(format!("{cpus}/possible"), list(&Cpumask::first_n(hw.nr_cpu_ids)));
    put(format!("{cpus}/online"), list(&hw.online));
    for cpu in hw.online.iter() {
        for (column, name) in [(&hw.smt, "thread_siblings"), (&hw.package, "core_siblings")] {
            let of = &column[cpu.index()];
            let (ext, text) = if masks { ("", mask(of)) } else { ("_list", list(of)) };
            put(format!("{cpus}/cpu{cpu}/topology/{name}{ext}"), text + "\n");
        }
        let of = &hw.llc[cpu.index()];
        let (ext, text) = if masks { ("map", mask(of)) } else { ("list", list(of)) };
        put(format!("{cpus}/cpu{cpu}/cache/index3/shared_cpu_{ext}"), text);
        put(format!("{cpus}/cpu{cpu}/cache/index3/level"), "3\n".to_owned());
        put(format!("{cpus}/cpu{cpu}/cache/index3/type"), "Unified\n".to_owned());
    }
    let with_cpus = hw.nodes_with_cpus();
    for &node in &with_cpus {
        let of = hw.cpus_of_node(node);
        let (ext, text) = if masks { ("map", mask(&of)) } else { ("list", list(&of)) };
        put(format!("{nodes}/node{node}/cpu{ext}"), text);
        // One column for each node that is there, in the order of their numbers.
        let row = with_cpus.iter().map(|&to| hw.node_distance(node, to).to_string()).collect::<Vec<_>>().join(" ");
        put(format!("{nodes}/node{node}/distance"), row + "\n");
    }
    tar.into_inner().expect("an archive")
}

/// Whether what was read is the machine that was written; `distances` where the form tells them.
fn same(read: &Loaded, hw: &Hardware, distances: bool, at: &str) {
    let have = &read.hardware;
    assert_eq!(have.online, hw.online, "{at}: online");
    for cpu in hw.online.iter() {
        let at_cpu = cpu.index();
        assert_eq!(have.smt[at_cpu], hw.smt[at_cpu], "{at}: the core of CPU {cpu}");
        assert_eq!(have.llc[at_cpu], hw.llc[at_cpu], "{at}: the cache of CPU {cpu}");
        assert_eq!(have.package[at_cpu], hw.package[at_cpu], "{at}: the package of CPU {cpu}");
        assert_eq!(have.node[at_cpu], hw.node[at_cpu], "{at}: the node of CPU {cpu}");
        for other in hw.online.iter().filter(|_| distances) {
            let (a, b) = (hw.node[at_cpu], hw.node[other.index()]);
            assert_eq!(have.node_distance(a, b), hw.node_distance(a, b), "{at}: from node {a} to {b}");
        }
    }
}

#[test]
fn what_is_written_is_read() {
    let mut rand = Rand32::new(11);
    for round in 0..150 {
        let first = machine(&mut rand);
        let second = relabelled(&first, &shuffled(&mut rand, first.nr_cpu_ids));
        for (hw, which) in [(first, "as made"), (second, "numbered anew")] {
            let written = [
                ("lscpu -p", lscpu_p(&hw).into_bytes()),
                ("lscpu -e", lscpu_e(&hw).into_bytes()),
                ("lscpu -J of 2.30", lscpu_json(&hw, 0).into_bytes()),
                ("lscpu -J of 2.36", lscpu_json(&hw, 1).into_bytes()),
                ("lscpu -J of 2.38", lscpu_json(&hw, 2).into_bytes()),
                ("hwloc 1", hwloc(&hw, 1).into_bytes()),
                ("hwloc 2", hwloc(&hw, 2).into_bytes()),
                ("lists of sysfs", sysfs(&hw, false)),
                ("masks of sysfs", sysfs(&hw, true)),
            ];
            for (form, bytes) in written {
                let at = format!("round {round}, {which}, {form}");
                let read = from_bytes("box", &bytes, None).unwrap_or_else(|error| panic!("{at}: {error}"));
                let distances = form.contains("hwloc") || form.contains("sysfs");
                same(&read, &hw, distances, &at);
                assert!(!topology::describe(&read).is_empty());
            }
        }
    }
}

/// Texts with bytes changed, cut and repeated: a machine or an error that names the file, in no time.
#[test]
fn broken_texts_are_errors_and_never_panics() {
    let mut rand = Rand32::new(12);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..60 {
        let hw = machine(&mut rand);
        for text in [lscpu_p(&hw), lscpu_e(&hw), lscpu_json(&hw, 1), hwloc(&hw, 1), hwloc(&hw, 2)] {
            for _ in 0..8 {
                let mut bytes = text.clone().into_bytes();
                for _ in 0..rand.rand_range(0..4) {
                    let at = rand.rand_range(0..bytes.len() as u32) as usize;
                    bytes[at] = b"0123456789,-:xf \n\"<>/{}[]\0\xff"[rand.rand_range(0..27) as usize];
                }
                let (from, to) = (rand.rand_range(0..bytes.len() as u32), rand.rand_range(0..bytes.len() as u32));
                match rand.rand_range(0..4) {
                    0 => bytes.truncate(from as usize),
                    1 => bytes.extend_from_within(from.min(to) as usize..from.max(to) as usize),
                    _ => {}
                }
                match from_bytes("box", &bytes, None) {
                    Ok(loaded) => {
                        assert!(!topology::describe(&loaded).is_empty());
                        read += 1;
                    }
                    Err(error) => {
                        assert!(error.to_string().contains("box"), "{error}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
}
