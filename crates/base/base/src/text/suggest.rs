//! "Did you mean": the known names closest to an unknown one.

/// Maximum number of suggestions.
const MAX_SUGGESTIONS: usize = 3;

/// How similar two names must be, on a scale from 0 to 1.
const THRESHOLD: f64 = 0.72;

/// Maximum length of a compared name: a longer one is not a typo, and slow to compare.
const LONGEST_NAME: usize = 200;

/// The candidates most similar to `query`, best first; empty if none is similar.
///
/// Case, spaces, dashes and underscores are ignored: people write `rtx4090` and `NC4as-T4-v3`.
pub fn nearest<'a>(query: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if query.len() > LONGEST_NAME {
        return Vec::new();
    }
    let query = normalize(query);
    let mut similar: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|candidate| (similarity(&query, &normalize(candidate)), candidate))
        .filter(|(score, _)| *score >= THRESHOLD)
        .collect();
    similar.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    similar.dedup_by_key(|(_, candidate)| *candidate);
    similar.into_iter().take(MAX_SUGGESTIONS).map(|(_, candidate)| candidate).collect()
}

/// The candidate most similar to `query`, if any is similar.
pub fn closest<'a>(query: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest(query, candidates).into_iter().next()
}

/// The versions just below and just above an unknown one: similar digits mean nothing for numbers.
pub fn adjacent<T: Ord + ToString>(wanted: &T, known: impl IntoIterator<Item = T>) -> Vec<String> {
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

/// A name in lower case and without separators.
pub fn normalize(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric() || *c == '.').flat_map(char::to_lowercase).collect()
}

fn similarity(query: &str, candidate: &str) -> f64 {
    let distance = strsim::damerau_levenshtein(query, candidate);
    let length = query.chars().count();
    let longest = length.max(candidate.chars().count()).max(1);
    #[expect(clippy::cast_precision_loss, reason = "names are short")]
    let edits = 1.0 - distance as f64 / longest as f64;
    // Part of a name is close to the whole name, however long that is; and one typo is one typo, however short the name.
    let part = length >= 3 && candidate.contains(query);
    let typo = length >= 2 && distance == 1;
    match (part, typo) {
        // Of several names that contain it, the one that differs least comes first.
        (true, _) => 0.85 + edits / 10.0,
        (false, true) => edits.max(0.8),
        (false, false) => edits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_other_spellings_and_parts_of_a_name_are_close() {
        assert_eq!(nearest("T5", ["T4", "V100", "A100-40"]), ["T4"]);
        assert_eq!(closest("rtx4090", ["RTX-4090", "RTX-5090"]), Some("RTX-4090"));
        assert_eq!(nearest("NC4as_T4", ["Standard_NC4as_T4_v3", "Standard_NV6"]), ["Standard_NC4as_T4_v3"]);
        assert_eq!(closest("nam", ["domainname", "hostname", "name"]), Some("name"));
    }

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(adjacent(&7, [1, 10, 6, 8]), ["6", "8"]);
        assert_eq!(adjacent(&11, [1, 10, 6, 8]), ["10"]);
    }

    #[test]
    fn nothing_is_close_to_nonsense() {
        assert!(nearest("zzzzzzzz", ["T4", "V100"]).is_empty());
        assert!(nearest("", ["T4", "V100"]).is_empty());
        assert_eq!(closest(&"T4".repeat(200), ["T4"]), None);
    }
}
