// SPDX-License-Identifier: GPL-2.0-or-later
//! What a task's name tells: kernel threads that are bound to one CPU carry its number.

use crate::units::{Comm, Cpu};

/// Kernel threads created by smpboot_register_percpu_thread() or kthread_create_on_cpu(), by the part before the slash.
///
/// **Source**: the thread_comm of each `struct smp_hotplug_thread` and the names given to kthread_create_on_cpu(), 5.2 to
/// 6.12. `rcuop`, `rcuos`, `rcuog` carry a number, too, but may run anywhere.
const PER_CPU: &[&[u8]] = &[
    b"cpuhp",
    b"ksoftirqd",
    b"ktimers",
    b"ktimersoftd",
    b"migration",
    b"rcuc",
    b"watchdog",
    b"idle_inject",
    b"irq_work",
    b"posixcputmr",
    b"backlog_napi",
];

/// The CPU that a kernel thread of this name is bound to.
///
/// A user task can call itself so; nothing else in a plain recording would tell.
pub fn bound_cpu(comm: &Comm) -> Option<Cpu> {
    let name = comm.as_bytes();
    let slash = name.iter().position(|&b| b == b'/')?;
    let (head, tail) = (&name[..slash], &name[slash + 1..]);
    let digits = tail.iter().take_while(|b| b.is_ascii_digit()).count();
    let (number, rest) = tail.split_at(digits);
    let fits = match head {
        // kworker/3:1, kworker/3:1H; kworker/u8:1 is not bound.
        b"kworker" => rest.first() == Some(&b':'),
        _ => rest.is_empty() && PER_CPU.contains(&head),
    };
    if !fits {
        return None;
    }
    std::str::from_utf8(number).ok()?.parse().ok().and_then(Cpu::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_kernel_threads_are_known_by_name() {
        let of = |name: &str| bound_cpu(&Comm::new(name.as_bytes()));
        assert_eq!(of("kworker/3:1"), Some(Cpu(3)));
        assert_eq!(of("kworker/12:0H"), Some(Cpu(12)));
        assert_eq!(of("ksoftirqd/0"), Some(Cpu(0)));
        assert_eq!(of("migration/7"), Some(Cpu(7)));
        for free in ["kworker/u8:1", "rcuop/3", "rcuos/3", "foo/3", "kworker/", "kworker/R-mm", "migration/x", "sh"] {
            assert_eq!(of(free), None, "{free}");
        }
    }
}
