//! "Did you mean".

/// Of the known words the one that looks most like the unknown one, if any does.
pub(crate) fn nearest<'k>(unknown: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if unknown.len() > 100 {
        return None;
    }
    let folded = unknown.to_lowercase();
    known
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&folded, &word.to_lowercase()), word))
        .min()
        .filter(|(distance, _)| *distance <= (folded.chars().count() / 3).max(1))
        .map(|(_, word)| word)
}

/// Words as a sentence lists them: `a`, `b` or `c`.
pub(crate) fn choice(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// A word of the file, short and on one line.
pub(crate) fn shown(word: &str) -> String {
    const LONGEST: usize = 60;
    let mut text: String = word.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if word.chars().nth(LONGEST).is_some() {
        text.push('…');
    }
    text
}
