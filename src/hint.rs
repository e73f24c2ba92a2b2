// SPDX-License-Identifier: GPL-2.0-or-later
//! "did you mean", for every error about a name.

/// ` (did you mean "…"?)`, or nothing where no name is near.
pub fn did_you_mean(found: &str, names: &[&str]) -> String {
    let distance = |name: &&&str| strsim::damerau_levenshtein(&found.to_lowercase(), &name.to_lowercase());
    match names.iter().min_by_key(distance) {
        Some(name) if distance(&name) <= 1 + name.len() / 3 => format!(" (did you mean {name:?}?)"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_near_is_meant() {
        assert_eq!(did_you_mean("alowed", &["preferred", "allowed"]), " (did you mean \"allowed\"?)");
        assert_eq!(did_you_mean("colour", &["preferred", "allowed"]), "");
        assert_eq!(did_you_mean("x", &[]), "");
    }
}
