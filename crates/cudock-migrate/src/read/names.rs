//! What names of sizes look like.

/// Whether a word has the form of a GPU size with its prefix: `Standard_NC6s_v3`, in any case.
pub(super) fn is_gpu_size(word: &str) -> bool {
    let (prefix, rest) = word.split_at_checked("standard_".len()).unwrap_or_default();
    prefix.eq_ignore_ascii_case("standard_") && is_bare_gpu_size(rest)
}

/// Whether a word has the form of a GPU size without its prefix: `NC6s_v3`. Where sizes are expected, people write it.
pub(super) fn is_bare_gpu_size(word: &str) -> bool {
    let mut letters = word.bytes();
    let series = letters.next().is_some_and(|letter| letter.eq_ignore_ascii_case(&b'N'))
        && letters.next().is_some_and(|letter| b"CDGV".contains(&letter.to_ascii_uppercase()));
    let rest = word.get(2..).unwrap_or_default();
    // Confidential sizes have one letter more: NCC40ads_H100_v5.
    let rest = rest.strip_prefix(['C', 'c']).unwrap_or(rest);
    series
        && word.len() <= 64
        && rest.starts_with(|letter: char| letter.is_ascii_digit())
        && rest.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
}

/// A word without what people vary: `target_low_priority_nodes` and `targetLowPriorityNodes` are one key.
pub(super) fn folded(word: &str) -> String {
    word.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether a byte belongs to a name.
pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_gpus_are_told_from_others() {
        for name in ["Standard_NC6", "STANDARD_NC6", "standard_nd40rs_v2", "Standard_NCC40ads_H100_v5"] {
            assert!(is_gpu_size(name), "{name}");
        }
        // Processors, FPGAs, and no sizes at all.
        for name in
            ["Standard_DS3_v2", "Standard_NP10s", "Standard_NC", "Standard_LRS", "NC6", "", "Standard_"]
        {
            assert!(!is_gpu_size(name), "{name}");
        }
        assert!(is_bare_gpu_size("NC6") && is_bare_gpu_size("nv12s_v3") && !is_bare_gpu_size("NCU"));
    }
}
