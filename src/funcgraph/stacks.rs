// SPDX-License-Identifier: GPL-2.0-or-later
//! Entries and exits → calls. The tracer keeps a stack for each task, so a call that sleeps ends where its task runs
//! again, on whichever CPU.

use std::collections::BTreeMap;

/// Whose stack: a thread, or one CPU's idle task (all of them have pid 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// A thread.
    Pid(i32),
    /// The idle task of a CPU.
    Idle(u32),
    /// Whoever runs on a CPU: text of tracefs does not say until the first switch.
    Unnamed(u32),
}

impl Task {
    /// The task `pid` on `cpu`.
    pub fn new(pid: i32, cpu: u32) -> Task {
        match pid {
            0 => Task::Idle(cpu),
            pid => Task::Pid(pid),
        }
    }

    /// Its thread id, if that is known.
    pub fn pid(self) -> Option<i32> {
        match self {
            Task::Pid(pid) => Some(pid),
            Task::Idle(_) => Some(0),
            Task::Unnamed(_) => None,
        }
    }
}

/// Where something was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// Who.
    pub task: Task,
    /// On which CPU; pasted text may not say.
    pub cpu: u32,
    /// When, ns of the trace's clock, if told.
    pub ts_ns: Option<u64>,
    /// Nesting as the tracer counts it, if told. Text whose spaces were lost does not tell.
    pub depth: Option<u32>,
}

/// How long a call ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// From when the tracer read its clock at entry to when it did at return, ns.
    pub duration_ns: u64,
    /// When it did at entry, ns of its own clock, which is not always the trace's; text does not say.
    pub calltime_ns: Option<u64>,
}

/// How long after the tracer had read its own clock the two records got their times of the trace's clock, ns: the
/// difference of the clocks plus the tracer's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lag {
    /// At entry.
    pub enter_ns: i64,
    /// At return.
    pub exit_ns: i64,
}

/// What one record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge<'a> {
    /// A function was entered.
    Enter {
        /// Its name.
        function: &'a str,
    },
    /// A function returned.
    Exit {
        /// Its name, where the record has it: text has it only where the entry is not shown.
        function: Option<&'a str>,
        /// How long it ran; `None`: the record does not say, and the times of the two records have to do.
        timing: Option<Timing>,
    },
    /// A function was entered and returned, with nothing traced in between: one line of text.
    Leaf {
        /// Its name.
        function: &'a str,
        /// How long it ran, ns.
        duration_ns: u64,
    },
}

/// A finished call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<'a> {
    /// The function.
    pub function: &'a str,
    /// Who ran it.
    pub task: Task,
    /// The CPU that it returned on.
    pub cpu: u32,
    /// Time of the entry's record, ns, if told.
    pub enter_ns: Option<u64>,
    /// Time of the exit's record, ns, if told.
    pub exit_ns: Option<u64>,
    /// How long it ran, ns, with the traced functions that it called.
    pub duration_ns: u64,
    /// Without them, ns.
    pub self_ns: u64,
    /// Traced functions that it called itself.
    pub children: u32,
    /// Whether it was called by a traced function.
    pub is_nested: bool,
    /// How far its records lag behind what they tell, where the records say.
    pub lag: Option<Lag>,
}

/// Records of one function that found no partner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unpaired {
    /// Exits without an entry: the call began before the recording, or its entry was lost.
    pub exits: u64,
    /// Entries without an exit: the call went on when the recording ended, or its exit was lost.
    pub entries: u64,
}

#[derive(Debug)]
struct Open {
    function: u32,
    depth: Option<u32>,
    enter_ns: Option<u64>,
    children: u32,
    children_ns: u64,
}

/// Pairs the records of all tasks.
#[derive(Debug, Default)]
pub struct Stacks {
    names: Names,
    open: BTreeMap<Task, Vec<Open>>,
    unpaired: Vec<Unpaired>,
    nameless_exits: u64,
}

impl Stacks {
    /// Takes a record in; gives the call that it ends.
    pub fn take(&mut self, spot: &Spot, edge: &Edge<'_>) -> Option<Call<'_>> {
        match *edge {
            Edge::Enter { function } => {
                self.enter(spot, function);
                None
            }
            Edge::Exit { function, timing } => self.exit(spot, function, timing),
            Edge::Leaf { function, duration_ns } => {
                self.enter(spot, function);
                self.exit(spot, Some(function), Some(Timing { duration_ns, calltime_ns: None }))
            }
        }
    }

    /// Records of a CPU are missing here: no call that was open may be paired across that.
    ///
    /// All stacks go, not only those of the tasks last seen there: the lost records may be of any task.
    pub fn lost(&mut self) {
        for stack in std::mem::take(&mut self.open).into_values() {
            self.forget(&stack);
        }
    }

    /// The end: calls that are still open have no exit. Gives what found no partner, by function, and exits that have
    /// no name either.
    pub fn finish(mut self) -> (BTreeMap<String, Unpaired>, u64) {
        self.lost();
        let named = self.names.all.iter().zip(&self.unpaired);
        let unpaired = named.filter(|(_, unpaired)| **unpaired != Unpaired::default());
        (unpaired.map(|(name, unpaired)| (name.clone(), *unpaired)).collect(), self.nameless_exits)
    }

    fn enter(&mut self, spot: &Spot, function: &str) {
        self.drop_from(spot.task, spot.depth);
        let function = self.id(function);
        let open = Open { function, depth: spot.depth, enter_ns: spot.ts_ns, children: 0, children_ns: 0 };
        self.open.entry(spot.task).or_default().push(open);
    }

    fn exit(&mut self, spot: &Spot, function: Option<&str>, timing: Option<Timing>) -> Option<Call<'_>> {
        // What is deeper has lost its exit.
        self.drop_from(spot.task, spot.depth.map(|depth| depth + 1));
        let named = function.map(|name| self.id(name));
        let stack = self.open.entry(spot.task).or_default();
        let fits = |open: &Open| {
            let depth = open.depth.zip(spot.depth).is_none_or(|(a, b)| a == b);
            depth && named.is_none_or(|id| id == open.function)
        };
        let Some(open) = stack.pop_if(|open| fits(open)) else {
            match named {
                Some(id) => self.unpaired[id as usize].exits += 1,
                None => self.nameless_exits += 1,
            }
            return None;
        };
        let between = || Some(Timing { duration_ns: spot.ts_ns?.checked_sub(open.enter_ns?)?, calltime_ns: None });
        let Some(timing) = timing.or_else(between) else {
            self.unpaired[open.function as usize].entries += 1;
            return None;
        };
        let duration_ns = timing.duration_ns;
        let parent = stack.last_mut();
        let is_nested = parent.is_some();
        if let Some(parent) = parent {
            parent.children += 1;
            parent.children_ns = parent.children_ns.saturating_add(duration_ns);
        }
        Some(Call {
            function: &self.names.all[open.function as usize],
            task: spot.task,
            cpu: spot.cpu,
            enter_ns: open.enter_ns,
            exit_ns: spot.ts_ns,
            duration_ns,
            self_ns: duration_ns.saturating_sub(open.children_ns),
            children: open.children,
            is_nested,
            lag: lag(&timing, open.enter_ns, spot.ts_ns),
        })
    }

    /// Forgets what a task has open at `depth` and deeper.
    fn drop_from(&mut self, task: Task, depth: Option<u32>) {
        let (Some(depth), Some(stack)) = (depth, self.open.get_mut(&task)) else { return };
        let keep = stack.iter().position(|open| open.depth.is_some_and(|open| open >= depth)).unwrap_or(stack.len());
        let dropped = stack.split_off(keep);
        self.forget(&dropped);
    }

    fn forget(&mut self, dropped: &[Open]) {
        for open in dropped {
            self.unpaired[open.function as usize].entries += 1;
        }
    }

    fn id(&mut self, name: &str) -> u32 {
        let id = self.names.id(name);
        self.unpaired.resize(self.names.all.len(), Unpaired::default());
        id
    }
}

fn lag(timing: &Timing, enter_ns: Option<u64>, exit_ns: Option<u64>) -> Option<Lag> {
    let calltime_ns = timing.calltime_ns?;
    let behind = |at: u64, of: u64| i64::try_from(i128::from(at) - i128::from(of)).ok();
    Some(Lag {
        enter_ns: behind(enter_ns?, calltime_ns)?,
        exit_ns: behind(exit_ns?, calltime_ns.saturating_add(timing.duration_ns))?,
    })
}

/// Names as small numbers, in order of first sight.
#[derive(Debug, Default)]
struct Names {
    all: Vec<String>,
    ids: BTreeMap<String, u32>,
}

impl Names {
    fn id(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        // Fewer functions than addresses in a kernel.
        let id = self.all.len() as u32;
        self.all.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(pid: i32, cpu: u32, ts_ns: u64, depth: u32) -> Spot {
        Spot { task: Task::new(pid, cpu), cpu, ts_ns: Some(ts_ns), depth: Some(depth) }
    }

    fn enter(stacks: &mut Stacks, spot: Spot, function: &str) {
        assert_eq!(stacks.take(&spot, &Edge::Enter { function }), None);
    }

    fn exit<'a>(stacks: &'a mut Stacks, spot: Spot, function: &str, duration_ns: u64) -> Option<Call<'a>> {
        stacks.take(
            &spot,
            &Edge::Exit { function: Some(function), timing: Some(Timing { duration_ns, calltime_ns: None }) },
        )
    }

    #[test]
    fn nested_calls_have_their_own_time_and_the_rest_is_self_time() {
        let mut stacks = Stacks::default();
        enter(&mut stacks, spot(5, 0, 100, 0), "outer");
        enter(&mut stacks, spot(5, 0, 110, 1), "inner");
        let inner = exit(&mut stacks, spot(5, 0, 140, 1), "inner", 20).expect("a call");
        assert_eq!((inner.duration_ns, inner.self_ns, inner.is_nested, inner.children), (20, 20, true, 0));
        let outer = exit(&mut stacks, spot(5, 0, 200, 0), "outer", 90).expect("a call");
        assert_eq!((outer.duration_ns, outer.self_ns, outer.is_nested, outer.children), (90, 70, false, 1));
        assert_eq!(stacks.finish(), (BTreeMap::new(), 0));
    }

    #[test]
    fn a_call_that_sleeps_ends_on_another_cpu_and_others_do_not_mix_in() {
        let mut stacks = Stacks::default();
        enter(&mut stacks, spot(5, 0, 100, 0), "schedule");
        enter(&mut stacks, spot(6, 0, 120, 0), "schedule");
        enter(&mut stacks, spot(0, 1, 125, 0), "schedule");
        enter(&mut stacks, spot(0, 2, 126, 0), "schedule");
        let call = exit(&mut stacks, spot(5, 3, 500, 0), "schedule", 390).expect("a call");
        assert_eq!((call.cpu, call.enter_ns, call.exit_ns), (3, Some(100), Some(500)));
        assert!(exit(&mut stacks, spot(0, 2, 600, 0), "schedule", 1).is_some());
        let (unpaired, _) = stacks.finish();
        assert_eq!(unpaired["schedule"], Unpaired { exits: 0, entries: 2 });
    }

    #[test]
    fn what_lost_its_partner_is_counted_under_its_name_and_pairs_with_nothing_else() {
        let mut stacks = Stacks::default();
        assert!(exit(&mut stacks, spot(5, 0, 10, 0), "early", 5).is_none());
        enter(&mut stacks, spot(5, 0, 20, 0), "outer");
        enter(&mut stacks, spot(5, 0, 30, 1), "inner");
        // The exit of inner is missing.
        assert!(exit(&mut stacks, spot(5, 0, 50, 0), "outer", 25).is_some());
        // The exit of one, and the entry of the other, are missing.
        enter(&mut stacks, spot(5, 0, 60, 0), "one");
        assert!(exit(&mut stacks, spot(5, 0, 70, 0), "other", 5).is_none());
        enter(&mut stacks, spot(5, 0, 80, 0), "cut");
        stacks.lost();
        assert!(exit(&mut stacks, spot(5, 0, 90, 0), "cut", 5).is_none());
        let (unpaired, nameless) = stacks.finish();
        let named: Vec<_> = unpaired.iter().map(|(name, u)| (name.as_str(), u.exits, u.entries)).collect();
        assert_eq!(named, [("cut", 1, 1), ("early", 1, 0), ("inner", 0, 1), ("one", 0, 1), ("other", 1, 0)]);
        assert_eq!(nameless, 0);
    }

    #[test]
    fn without_durations_the_times_of_the_records_have_to_do() {
        let mut stacks = Stacks::default();
        enter(&mut stacks, spot(5, 0, 100, 0), "f");
        let call = stacks.take(&spot(5, 0, 130, 0), &Edge::Exit { function: None, timing: None });
        assert_eq!(call.map(|call| call.duration_ns), Some(30));
    }
}
