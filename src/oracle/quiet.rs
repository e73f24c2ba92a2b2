// SPDX-License-Identifier: GPL-2.0-or-later
//! Panics as values: where and with what words, without a line on stderr for each of thousands of tries.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

/// A panic that was caught.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Panic {
    /// File and line: the same whenever the cause is the same.
    pub place: String,
    /// What it said.
    pub message: String,
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<Panic> = RefCell::default();
}

/// Runs `f`; a panic in it on this thread is an error. Panics outside of it, and on other threads, are told as ever.
pub(super) fn quietly<T>(f: impl FnOnce() -> T) -> Result<T, Panic> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = take_hook();
        set_hook(Box::new(move |info| {
            if !QUIET.get() {
                return loud(info);
            }
            let place = info.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
            let payload = info.payload();
            let said = payload.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
            LAST.set(Panic { place, message: said.to_owned() });
        }));
    });
    let before = QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(f));
    QUIET.set(before);
    result.map_err(|_| LAST.take())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_tells_its_place_and_words() {
        let panic = quietly(|| panic!("planted {}", 7)).expect_err("it panics");
        assert_eq!(panic.message, "planted 7");
        assert!(panic.place.contains("quiet.rs:"), "{panic:?}");
        assert_eq!(quietly(|| 3), Ok(3));
    }
}
