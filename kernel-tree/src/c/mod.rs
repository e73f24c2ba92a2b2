// SPDX-License-Identifier: GPL-2.0-or-later
//! Reading C as the kernel writes it.

pub mod conditional;
pub mod disguise;
pub mod index;
pub mod keywords;
pub mod lex;
