// SPDX-License-Identifier: GPL-2.0-or-later
//! The programs of the built-in workloads.

use super::Values;
use crate::simulate::program::{Dist, How, Op, SpecId, Start, Workload};

/// Over the loopback device: the sender's context, in softirq, and sync.
const LOOPBACK: How = How { sync: true, softirq: true, data: true };
/// Through a pipe: from the writer itself, sync.
const PIPE: How = How { sync: true, softirq: false, data: true };
/// A futex: no hint, no data of its own.
const FUTEX: How = How { sync: false, softirq: false, data: false };

fn endless(body: Vec<Op>) -> Vec<Op> {
    let mut ops = vec![Op::Loop(0)];
    ops.extend(body);
    ops.push(Op::End);
    ops
}

fn task(workload: &mut Workload, name: &str, body: Vec<Op>, values: &Values) -> SpecId {
    let id = workload.task(name, endless(body));
    workload.tasks[id].footprint_kib = values.get("footprint");
    id
}

/// dbench's clients connect, wait for each other and are released at once, a minute before anything is measured; a request
/// is one segment of TCP, and so is its reply but where it carries more than one holds.
pub(super) fn tbench(v: &Values) -> Workload {
    let mut w = Workload::default();
    let client_run = Dist::around(v.get("client_run"), v.get("spread"));
    let server_run = Dist::around(v.get("server_run"), v.get("spread"));
    let (copy, gap) = (Dist::around(v.get("copy"), v.get("spread")), Dist::around(v.get("gap"), v.get("spread")));
    let long = v.get("long");
    let released = w.channel(0);
    for group in 0..v.get("clients") as u32 {
        let (request, reply, rest) = (w.channel(0), w.channel(0), w.channel(0));
        let mut client = Vec::new();
        let mut server = Vec::new();
        for nth in 1..=long.max(1) {
            client.extend([Op::Run(client_run), Op::Mark, Op::Signal(request, LOOPBACK), Op::Wait(reply)]);
            server.extend([Op::Wait(request), Op::Run(server_run), Op::Signal(reply, LOOPBACK)]);
            if long > 0 && nth == long {
                client.extend([Op::Run(copy), Op::Wait(rest)]);
                server.extend([Op::Run(gap), Op::Signal(rest, LOOPBACK)]);
            }
            client.push(Op::Done);
        }
        let client = task(&mut w, "tbench", client, v);
        let program = w.tasks[client].program;
        w.programs[program].insert(0, Op::Wait(released));
        let server = task(&mut w, "tbench_srv", server, v);
        for (member, id) in [client, server].into_iter().enumerate() {
            w.tasks[id].start = Start::Spread { group, member: member as u32, members: 2 };
        }
    }
    w.task("tbench", vec![Op::Sleep(Dist::Fixed(RELEASE_NS)), Op::Broadcast(released, FUTEX)]);
    w
}

/// From the beginning to the release of all clients.
const RELEASE_NS: u64 = 1_000_000;

pub(super) fn hackbench(v: &Values) -> Workload {
    let mut w = Workload::default();
    let how = if v.get("pipe") == 1 { PIPE } else { LOOPBACK };
    let (write, read) = (Dist::around(v.get("write"), 20), Dist::around(v.get("read"), 20));
    for instance in 0..v.get("instances") {
        let name = format!("hackbench{instance}");
        for _ in 0..v.get("groups") {
            let pipes: Vec<_> = (0..v.get("fds")).map(|_| (w.channel(0), w.channel(v.get("buffer")))).collect();
            for &(data, room) in &pipes {
                let receiver = vec![Op::Wait(data), Op::Run(read), Op::Signal(room, how), Op::Done];
                task(&mut w, &name, receiver, v);
            }
            for first in 0..pipes.len() {
                let mut sender = Vec::new();
                for at in 0..pipes.len() {
                    let (data, room) = pipes[(first + at) % pipes.len()];
                    sender.extend([Op::Run(write), Op::Wait(room), Op::Signal(data, how)]);
                }
                task(&mut w, &name, sender, v);
            }
        }
    }
    w
}

pub(super) fn schbench(v: &Values) -> Workload {
    let mut w = Workload::default();
    for _ in 0..v.get("messages") {
        let (asks, go) = (w.channel(0), w.channel(0));
        let message = vec![Op::Wait(asks), Op::Run(Dist::Fixed(1_000)), Op::Signal(go, FUTEX)];
        task(&mut w, "schbench-msg", message, v);
        for _ in 0..v.get("workers") {
            let worker = vec![
                Op::Signal(asks, FUTEX),
                Op::Wait(go),
                Op::MarkToken,
                Op::Run(Dist::around(v.get("think"), 10)),
                Op::Done,
                Op::Sleep(Dist::Exp(v.get("rest"))),
            ];
            task(&mut w, "schbench", worker, v);
        }
    }
    w
}

pub(super) fn pipe(v: &Values) -> Workload {
    let mut w = Workload::default();
    let run = Dist::around(v.get("run"), 10);
    for _ in 0..v.get("pairs") {
        let (there, back) = (w.channel(0), w.channel(0));
        task(&mut w, "pipe", vec![Op::Mark, Op::Run(run), Op::Signal(there, PIPE), Op::Wait(back), Op::Done], v);
        task(&mut w, "pipe", vec![Op::Wait(there), Op::Run(run), Op::Signal(back, PIPE)], v);
    }
    w
}

pub(super) fn db(v: &Values) -> Workload {
    let mut w = Workload::default();
    let data = How { data: true, ..FUTEX };
    let parts = v.get("parts").max(1);
    let part = Dist::around(v.get("run") / parts, 50);
    for instance in 0..v.get("instances") {
        let (log, committed) = (w.channel(0), w.channel(0));
        let writer = vec![Op::Wait(log), Op::Run(Dist::around(v.get("log"), 20)), Op::Signal(committed, data)];
        task(&mut w, &format!("log{instance}"), writer, v);
        // Latches of shared pages, one for every two users.
        let latches: Vec<_> = (0..v.get("users").div_ceil(2).max(1)).map(|_| w.channel(1)).collect();
        for user in 0..v.get("users") as usize {
            let mut ops = vec![Op::Mark];
            for nth in 0..parts as usize {
                let latch = latches[(user + nth) % latches.len()];
                ops.extend([Op::Wait(latch), Op::Run(part), Op::Signal(latch, data)]);
            }
            ops.extend([Op::Signal(log, data), Op::Wait(committed), Op::Done, Op::Sleep(Dist::Exp(v.get("think")))]);
            task(&mut w, &format!("db{instance}"), ops, v);
        }
    }
    w
}

pub(super) fn periodic(v: &Values) -> Workload {
    let mut w = Workload::default();
    for nth in 0..v.get("tasks") {
        let period = v.get("period").max(1);
        let run = Op::Run(Dist::around(v.get("run"), 10));
        let id = task(&mut w, "periodic", vec![Op::Mark, run, Op::Done, Op::Period(period)], v);
        let program = w.tasks[id].program;
        // Not all at the same time.
        w.programs[program].insert(0, Op::Sleep(Dist::Fixed(period * nth / v.get("tasks").max(1))));
    }
    w
}

pub(super) fn spin(v: &Values) -> Workload {
    let mut w = Workload::default();
    for _ in 0..v.get("tasks") {
        task(&mut w, "spin", vec![Op::Mark, Op::Run(Dist::around(v.get("run").max(1), 10)), Op::Done], v);
    }
    w
}
