// SPDX-License-Identifier: GPL-2.0-or-later
//! Reader of trace-cmd's `trace.dat`.
