// SPDX-License-Identifier: GPL-2.0-or-later
//! Every decision in the formats of other tools: Perfetto's trace, Parquet. Written as the replay goes, in memory that
//! does not grow with the recording.

#[cfg(feature = "parquet")]
pub mod parquet;
pub mod perfetto;
mod proto;
mod words;
