// SPDX-License-Identifier: GPL-2.0-or-later
//! The modelled SIS counters as rows of mmtests.

use crate::counters::{Raw, RecentMiss, Row};
use crate::fair::SisCounters;

/// Modelled counters as raw ones.
pub fn raw(counters: &SisCounters, recent_miss: RecentMiss) -> Raw {
    Raw {
        search: Some(counters.search),
        domain_search: Some(counters.domain_search),
        scanned: Some(counters.scanned),
        failed: Some(counters.failed),
        recent_hit: Some(counters.recent_hit),
        recent_miss: Some(match recent_miss {
            RecentMiss::Of2020 => counters.recent_miss,
            RecentMiss::Of2021 => counters.recent_miss_2021,
        }),
        ..Raw::default()
    }
}

/// The rows of modelled counters; those that no model counts are left out.
pub fn rows(counters: &SisCounters, recent_miss: RecentMiss) -> Vec<Row> {
    raw(counters, recent_miss).rows().into_iter().filter(|(_, value)| value.is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Value;

    #[test]
    fn either_definition_of_a_miss_can_be_asked_for() {
        let counters = SisCounters { recent_hit: 1, recent_miss: 3, recent_miss_2021: 4, ..SisCounters::default() };
        let of = |which| {
            let rows = rows(&counters, which);
            assert_eq!(rows.len(), 13);
            let of = |name: &str| rows.iter().find(|(row, _)| *row == name).and_then(|(_, value)| *value);
            (of("SIS Recent Used Miss"), of("SIS Recent Success Rate"))
        };
        assert_eq!(of(RecentMiss::Of2020), (Some(Value::Count(3)), Some(Value::Percent(25.0))));
        assert_eq!(of(RecentMiss::Of2021), (Some(Value::Count(4)), Some(Value::Percent(20.0))));
    }

    #[test]
    fn nothing_searched_divides_by_nothing() {
        let values: Vec<_> =
            rows(&SisCounters::default(), RecentMiss::Of2020).into_iter().map(|(_, value)| value).collect();
        let percents = [100.0, 100.0, 0.0, 0.0, 0.0].map(|percent| Some(Value::Percent(percent)));
        assert_eq!(values[8..], percents);
    }
}
