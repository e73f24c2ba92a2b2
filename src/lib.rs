// SPDX-License-Identifier: GPL-2.0-or-later
//! sisdiff: differential tester for the Linux scheduler's wakeup path.
