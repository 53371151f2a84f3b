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

/// A name with what people vary taken out.
pub fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric() || *c == '.').flat_map(char::to_lowercase).collect()
}

fn likeness(query: &str, candidate: &str) -> f64 {
    let edits = strsim::normalized_damerau_levenshtein(query, candidate);
    // A name typed in part is near to the whole name, however long that is.
    let part = query.chars().count() >= 3 && candidate.contains(query);
    if part { edits.max(0.85) } else { edits }
}
