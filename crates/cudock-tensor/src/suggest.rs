//! "Did you mean".

/// The candidate nearest to a name, if one is near enough to be meant.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const NEAR: f64 = 0.6;
    // A name as long as a page is no slip of the pen, and comparing it would take long.
    const LONGEST: usize = 200;
    if name.len() > LONGEST {
        return None;
    }
    let name = name.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            (strsim::normalized_damerau_levenshtein(&name, &candidate.to_lowercase()), candidate)
        })
        .filter(|(nearness, _)| *nearness >= NEAR)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate)
}

/// The end of a message about an unknown name: what may have been meant, or else what there is.
pub(crate) fn instead<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str, IntoIter: Clone>,
) -> String {
    let candidates = candidates.into_iter();
    if let Some(candidate) = nearest(name, candidates.clone()) {
        return format!("; did you mean `{candidate}`?");
    }
    let all: Vec<String> = candidates.map(|candidate| format!("`{candidate}`")).collect();
    format!("; there is {}", all.join(", "))
}

/// A name from outside as a message shows it: cut where it gets long.
pub(crate) fn shown(name: &str) -> String {
    const MOST: usize = 60;
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()),
        None => name.to_owned(),
    }
}
