// SPDX-License-Identifier: GPL-2.0-or-later
//! `sisdiff replay --format html`, what needs no browser. `tests/browser/run` has the rest.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const LARGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/numa80-truth/trace.dat");
const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/smt8-light-state-truth/trace.dat");

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sisdiff")).args(args).output().expect("sisdiff runs")
}

fn page(args: &[&str]) -> String {
    let output = run(&[args, &["--format", "html"]].concat());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).expect("a page is text")
}

/// Elements that are opened are closed, in order.
fn is_balanced(page: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let without_script = page.split("<script>").next().expect("a page");
    let body = without_script.split("</style>").last().expect("a body");
    for tag in body.split('<').skip(1) {
        let tag = tag.split('>').next().expect("a tag");
        let name = tag.trim_start_matches('/').split([' ', '>']).next().expect("a name");
        match tag.starts_with('/') {
            true if open.pop() == Some(name) => {}
            true if name == "head" => {}
            true => return Err(format!("</{name}> closes nothing; open: {open:?}")),
            false if ["input", "meta", "link"].contains(&name) => {}
            false => open.push(name),
        }
    }
    if open == ["body"] { Ok(()) } else { Err(format!("left open: {open:?}")) }
}

#[test]
fn eighty_cpus_fit_a_mail_and_are_all_there() {
    let page = page(&["replay", LARGE]);
    assert!(page.len() < 3_000_000, "{}", page.len());
    for id in ["about", "differences", "time", "scanned", "heat", "latency", "names", "explained"] {
        assert!(page.contains(&format!("id=\"{id}-1\"")), "{id}");
    }
    assert!(page.matches("<svg").count() >= 4);
    is_balanced(&page).expect("elements are balanced");
    let explained = page.matches("class=\"one\"").count();
    assert!((5..=60).contains(&explained), "{explained}");
}

#[test]
fn the_page_says_what_the_text_says() {
    let page = page(&["replay", SMALL]);
    let text = run(&["replay", SMALL]);
    let text = String::from_utf8(text.stdout).expect("text");
    let counter = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name)).expect("a row of counters");
        line.trim_start().trim_start_matches(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    for name in ["SIS Scanned", "SIS Recent Used Hit", "SIS Domain Search Eff"] {
        let cells = counter(name).iter().map(|cell| format!("<td class=\"num\">{cell}</td>")).collect::<String>();
        assert!(page.contains(&format!("{name}</th>{cells}")), "{name} {cells}");
    }
    // Each link leads somewhere.
    for link in page.split("href=\"#").skip(1) {
        let id = link.split('"').next().expect("an id");
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    is_balanced(&page).expect("elements are balanced");
}

#[test]
fn the_same_inputs_give_the_same_bytes() {
    let args = ["replay", LARGE, SMALL, "--patched", "v5.11+recent-used", "--patched", "v5.11+mel-v2"];
    let one = page(&[&args[..], &["--threads", "1"]].concat());
    assert!(page(&[&args[..], &["--threads", "4"]].concat()) == one);
    assert!(one.contains("Recordings") && one.contains("id=\"f2\""));
    is_balanced(&one).expect("elements are balanced");
}

#[test]
fn decisions_and_the_page_come_from_one_run() {
    let dir = tempfile::tempdir().expect("a folder");
    let (lines, page) = (dir.path().join("d.jsonl"), dir.path().join("p.html"));
    let [lines, page] = [&lines, &page].map(|path| path.display().to_string());
    let output = run(&["replay", SMALL, "--format", "html", "-o", &page, "--decisions", &lines]);
    assert!(output.status.success() && output.stdout.is_empty());
    let alone = run(&["replay", SMALL, "--quiet", "--decisions", "-"]);
    assert!(fs::read(&lines).expect("decisions") == alone.stdout);
    assert!(fs::read_to_string(&page).expect("a page").ends_with("</html>\n"));
}

#[test]
fn funcgraph_has_a_distribution_for_each_function() {
    let mail = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/funcgraph/pipe.txt");
    let [off, on] = [format!("off={mail}#3"), format!("on={mail}#1")];
    let page = page(&["funcgraph", &off, &on, "--ops", "2*activate_task + 2*deactivate_task"]);
    is_balanced(&page).expect("elements are balanced");
    for function in ["activate_task", "deactivate_task"] {
        assert!(page.contains(&format!("aria-label=\"Durations of {function}()\"")), "{function}");
    }
    let text = run(&["funcgraph", &off, &on]);
    let text = String::from_utf8(text.stdout).expect("text");
    let row = text.lines().find(|line| line.trim_start().starts_with("activate_task")).expect("a row");
    for cell in row.split_whitespace().skip(1).take(3) {
        assert!(page.contains(cell), "{cell} of {row}");
    }
}

/// A text of a trace in which tasks have hostile names.
fn hostile(dir: &Path) -> String {
    let mut text = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 9/9   #P:4\n#\n".to_owned();
    let name = "<script>a&\"'</a";
    for round in 0..40_u32 {
        let at = |n: u32| format!("10.{:06}", round * 1000 + n);
        let (cpu, other) = (round % 2, 2 + round % 2);
        text += &format!(
            "          <idle>-0       [00{cpu}] d... {}: sched_switch: prev_comm=swapper/{cpu} prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=waker next_pid=50 next_prio=120\n",
            at(0)
        );
        text += &format!(
            "           waker-50      [00{cpu}] d... {}: sched_waking: comm={name} pid=60 prio=120 target_cpu=00{other}\n",
            at(10)
        );
        text += &format!(
            "           waker-50      [00{cpu}] d... {}: sched_wakeup: comm={name} pid=60 prio=120 target_cpu=00{other}\n",
            at(20)
        );
        text += &format!(
            "          <idle>-0       [00{other}] d... {}: sched_switch: prev_comm=swapper/{other} prev_pid=0 prev_prio=120 prev_state=R ==> next_comm={name} next_pid=60 next_prio=120\n",
            at(30)
        );
        text += &format!(
            "           {name}-60      [00{other}] d... {}: sched_switch: prev_comm={name} prev_pid=60 prev_prio=120 prev_state=S ==> next_comm=swapper/{other} next_pid=0 next_prio=120\n",
            at(400)
        );
        text += &format!(
            "           waker-50      [00{cpu}] d... {}: sched_switch: prev_comm=waker prev_pid=50 prev_prio=120 prev_state=S ==> next_comm=swapper/{cpu} next_pid=0 next_prio=120\n",
            at(500)
        );
    }
    let path = dir.join("<img src=x>.txt");
    fs::write(&path, text).expect("a text");
    path.display().to_string()
}

#[test]
fn hostile_names_stay_text() {
    let dir = tempfile::tempdir().expect("a folder");
    let page =
        page(&["replay", &hostile(dir.path()), "--topology", "1x4x1", "--baseline", "v6.1", "--patched", "v5.11"]);
    assert!(page.contains("&lt;script&gt;a&amp;&quot;"), "the name is there");
    assert_eq!(page.matches("<script").count(), 1, "and the page's own script is the only one");
    assert!(!page.contains("<img"));
    is_balanced(&page).expect("elements are balanced");
}

#[test]
fn a_pipe_is_replayed_and_not_explained() {
    let topology = Path::new(SMALL).with_file_name("topology.tar.gz").display().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_sisdiff"))
        .args(["replay", "-", "--topology", &topology, "--format", "html"])
        .stdin(fs::File::open(SMALL).expect("a recording"))
        .output()
        .expect("sisdiff runs");
    let page = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success() && page.contains("id=\"heat-1\""));
    assert_eq!(page.matches("class=\"one\"").count(), 0);
    assert!(page.contains("cannot be read a second time"));
}
