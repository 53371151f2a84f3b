//! "Did you mean": the known names nearest to one that is not known.

/// At most this many suggestions: more is a list, not a hint.
const MOST: usize = 3;

/// How much alike two names must be, on a scale to 1.
const ALIKE: f64 = 0.72;

/// The candidates most like `query`, best first; none if none is like it.
///
/// Case, blanks, dashes and underscores do not count: people write `rtx4090` and `NC4as-T4-v3`.
pub fn nearest<'a>(query: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let query = folded(query);
    let mut alike: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|candidate| (likeness(&query, &folded(candidate)), candidate))
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    alike.dedup_by_key(|(_, candidate)| *candidate);
    alike.into_iter().take(MOST).map(|(_, candidate)| candidate).collect()
}

/// The versions just below and just above one that is not known: letters tell nothing about numbers.
pub fn neighbours<T: Ord + ToString>(wanted: &T, known: impl IntoIterator<Item = T>) -> Vec<String> {
    let (mut below, mut above): (Option<T>, Option<T>) = (None, None);
    for version in known {
        if version < *wanted && below.as_ref().is_none_or(|best| version > *best) {
            below = Some(version);
        } else if version > *wanted && above.as_ref().is_none_or(|best| version < *best) {
            above = Some(version);
        }
    }
    [below, above].into_iter().flatten().map(|version| version.to_string()).collect()
}

/// A name with what people vary taken out.
pub fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric() || *c == '.').flat_map(char::to_lowercase).collect()
}

fn likeness(query: &str, candidate: &str) -> f64 {
    let edits = strsim::normalized_damerau_levenshtein(query, candidate);
    // A name typed in part is near to the whole name, however long that is; and one slip is one slip, however
    // short the name.
    let length = query.chars().count();
    let part = length >= 3 && candidate.contains(query);
    let slip = length >= 2 && strsim::damerau_levenshtein(query, candidate) == 1;
    match (part, slip) {
        (true, _) => edits.max(0.85),
        (false, true) => edits.max(0.8),
        (false, false) => edits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slip_in_a_short_name_is_near() {
        assert_eq!(nearest("T5", ["T4", "V100", "A100-40"]), ["T4"]);
    }

    #[test]
    fn case_and_dashes_do_not_count() {
        assert_eq!(nearest("rtx4090", ["RTX-4090", "RTX-5090"]).first(), Some(&"RTX-4090"));
    }

    #[test]
    fn a_part_of_a_name_is_near_to_the_whole() {
        assert_eq!(nearest("NC4as_T4", ["Standard_NC4as_T4_v3", "Standard_NV6"]), ["Standard_NC4as_T4_v3"]);
    }

    #[test]
    fn the_neighbours_of_a_version_are_by_number() {
        assert_eq!(neighbours(&7, [1, 10, 6, 8]), ["6", "8"]);
        assert_eq!(neighbours(&11, [1, 10, 6, 8]), ["10"]);
    }

    #[test]
    fn nothing_is_near_to_nonsense() {
        assert!(nearest("zzzzzzzz", ["T4", "V100"]).is_empty());
        assert!(nearest("", ["T4", "V100"]).is_empty());
    }
}
