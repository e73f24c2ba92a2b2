// SPDX-License-Identifier: GPL-2.0-or-later

use super::*;
use crate::funcgraph::stacks::Timing;

fn graph(line: &str) -> (Spot, Option<String>, String, Option<String>) {
    match Lines::default().read(line) {
        Line::Graph { spot, comm, edge, behind } => {
            (spot, comm.map(str::to_owned), format!("{edge:?}"), behind.map(str::to_owned))
        }
        other => panic!("{line:?}: {other:?}"),
    }
}

fn shown(edge: Edge<'_>) -> String {
    format!("{edge:?}")
}

#[test]
fn report_lines_have_all() {
    let (spot, comm, edge, behind) =
        graph("            init-195   [007]    13.240517: funcgraph_entry:        1.793 us   |    update_cfs_group();");
    let expected = Spot { task: Task::Pid(195), cpu: 7, ts_ns: Some(13_240_517_000), depth: Some(1) };
    assert_eq!((spot, comm.as_deref(), behind), (expected, Some("init"), None));
    assert_eq!(edge, shown(Edge::Leaf { function: "update_cfs_group", duration_ns: 1_793 }));
    let (spot, _, edge, _) = graph(
        "          <idle>-0     [002] d.h2.    13.240833: funcgraph_entry:                   |  enqueue_task_fair() {",
    );
    assert_eq!((spot.task, spot.depth), (Task::Idle(2), Some(0)));
    assert_eq!(edge, shown(Edge::Enter { function: "enqueue_task_fair" }));
    let (_, _, edge, _) =
        graph("   a-b c-5   [000]   1.000000001: funcgraph_exit:       ! 126.189 us  |  } /* = 0x0 */");
    let timing = Some(Timing { duration_ns: 126_189, calltime_ns: None });
    assert_eq!(edge, shown(Edge::Exit { function: None, timing }));
    let (spot, _, edge, _) = graph(
        " x-5 [000] 13.2: funcgraph_exit:        func=update_cfs_group depth=1 overrun=0 calltime=323cab156 rettime=323cb3717",
    );
    let timing = Some(Timing { duration_ns: 0x85c1, calltime_ns: Some(0x3_23ca_b156) });
    assert_eq!((spot.depth, edge), (Some(1), shown(Edge::Exit { function: Some("update_cfs_group"), timing })));
}

#[test]
fn pasted_lines_have_lost_their_spaces_and_gained_words() {
    let (spot, _, edge, behind) =
        graph("sched-pipe-601 [001] 73.755521: funcgraph_entry: 3.160 us | activate_task(); then the rest");
    assert_eq!((spot.task, spot.depth), (Task::Pid(601), None));
    assert_eq!(edge, shown(Edge::Leaf { function: "activate_task", duration_ns: 3_160 }));
    assert_eq!(behind.as_deref(), Some("then the rest"));
}

#[test]
fn tracefs_lines_know_the_task_from_the_last_switch() {
    let mut lines = Lines::default();
    let task = |lines: &mut Lines, line: &str| match lines.read(line) {
        Line::Graph { spot, .. } => Some(spot.task),
        _ => None,
    };
    assert_eq!(task(&mut lines, " 3)   2.080 us    |  activate_task();"), Some(Task::Unnamed(3)));
    assert_eq!(lines.read(" ------------------------------------------"), Line::Heading);
    assert_eq!(lines.read(" 3)   bash-12   =>   <idle>-0  "), Line::Heading);
    assert_eq!(task(&mut lines, " 3) + 12.080 us   |  activate_task();"), Some(Task::Idle(3)));
    assert_eq!(task(&mut lines, " 1)   2.080 us    |  activate_task();"), Some(Task::Unnamed(1)));
    assert_eq!(
        task(&mut lines, "  73.755392 |   1)  cat-9    |  d..2. |   2.080 us    |  f(a=1, b=(2));"),
        Some(Task::Pid(9))
    );
    assert_eq!(lines.read(" 3)               |  /* sched_waking: comm=x pid=1 */"), Line::Event);
    assert_eq!(lines.read(" 3)   ==========> |"), Line::Heading);
}

#[test]
fn a_closing_may_name_its_function() {
    let exit =
        |function| shown(Edge::Exit { function, timing: Some(Timing { duration_ns: 5_000, calltime_ns: None }) });
    assert_eq!(graph(" 0)   5.000 us    |    } /* try_to_wake_up */").2, exit(Some("try_to_wake_up")));
    assert_eq!(graph(" 0)   5.000 us    |    } /* try_to_wake_up = 0x1 */").2, exit(Some("try_to_wake_up")));
    assert_eq!(graph(" 0)   5.000 us    |    } /* = 0x1 */").2, exit(None));
    assert_eq!(graph(" 0)   5.000 us    |    } /* ret=0x1 */").2, exit(None));
}

#[test]
fn damage_is_named_not_guessed() {
    let bad = |line: &str| matches!(Lines::default().read(line), Line::Bad(_));
    for line in [
        "x-602 [001] 73.755392: funcgraph_entry: 2,080 us | activate_task();",
        "x-602 [001] 73.755392: funcgraph_entry: 2.080 us | activate_task(",
        "x-602 [001] 73.755392: funcgraph_entry: 2.080 us | activate_task()",
        "x-602 [001] 73.755392: funcgraph_entry: 2.080 us",
        "x-602 [001] 73.755392: funcgraph_entry: 2.080 ms | activate_task();",
        "x-602 [001] 73.755392: funcgraph_entry: | activate_task();",
        "x-602 [001] 73.755392: funcgraph_exit: 2.080 us | activate_task();",
        "x-602 [001] funcgraph_entry: 2.080 us | activate_task();",
        "-602 [001] 73.75",
        "us   |  activate_task();",
        "sched-pipe-602",
        " 3)   2,080 us    |  activate_task();",
        " 3)   2.080 us    activate_task();",
        " 3)               |  }",
        "x-5 [000] 1.2: funcgraph_exit: func=f depth=1 overrun=0 calltime=9 rettime=3",
    ] {
        assert!(bad(line), "{line:?}: {:?}", Lines::default().read(line));
    }
}

#[test]
fn words_and_other_events_are_told_apart() {
    let read = |line: &'static str| format!("{:?}", Lines::default().read(line));
    assert_eq!(read("With uclamp enabled"), format!("{:?}", Line::Prose("With uclamp enabled")));
    assert_eq!(read("  <idle>-0  [002]  13.240833: sched_waking: comm=x pid=15"), format!("{:?}", Line::Event));
    assert_eq!(read("cpus=8"), format!("{:?}", Line::Heading));
    assert_eq!(read("CPU:3 [4711 EVENTS DROPPED]"), format!("{:?}", Line::Lost));
}
