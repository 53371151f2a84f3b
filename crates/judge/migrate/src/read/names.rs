//! Recognizes names of sizes.

/// Whether a word has the form of a GPU size with its prefix: `Standard_NC6s_v3`, case-insensitively.
pub(super) fn is_gpu_size(word: &str) -> bool {
    let (prefix, rest) = word.split_at_checked("standard_".len()).unwrap_or_default();
    prefix.eq_ignore_ascii_case("standard_") && is_bare_gpu_size(rest)
}

/// Whether a word has the form of a GPU size without its prefix: `NC6s_v3`, which is common where a size is expected.
pub(super) fn is_bare_gpu_size(word: &str) -> bool {
    let mut chars = word.bytes();
    let series = chars.next().is_some_and(|ch| ch.eq_ignore_ascii_case(&b'N'))
        && chars.next().is_some_and(|ch| b"CDGV".contains(&ch.to_ascii_uppercase()));
    let rest = word.get(2..).unwrap_or_default();
    // Confidential sizes have one more letter: NCC40ads_H100_v5.
    let rest = rest.strip_prefix(['C', 'c']).unwrap_or(rest);
    series
        && word.len() <= 64
        && rest.starts_with(|ch: char| ch.is_ascii_digit())
        && rest.bytes().all(|ch| ch.is_ascii_alphanumeric() || ch == b'_')
}

/// Lower case without punctuation: `target_low_priority_nodes` and `targetLowPriorityNodes` are one key.
pub(super) fn folded(word: &str) -> String {
    word.chars().filter(|ch| ch.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The length of the name at the start of a text.
pub(super) fn name_length(text: &str) -> usize {
    text.bytes().take_while(|byte| is_name_byte(*byte)).count()
}

/// The number of blanks at the start of a text.
pub(super) fn blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t']).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_gpus_are_distinguished_from_others() {
        for name in ["Standard_NC6", "STANDARD_NC6", "standard_nd40rs_v2", "Standard_NCC40ads_H100_v5"] {
            assert!(is_gpu_size(name), "{name}");
        }
        // CPU and FPGA sizes, and names that are not sizes.
        for name in
            ["Standard_DS3_v2", "Standard_NP10s", "Standard_NC", "Standard_LRS", "NC6", "", "Standard_"]
        {
            assert!(!is_gpu_size(name), "{name}");
        }
        assert!(is_bare_gpu_size("NC6") && is_bare_gpu_size("nv12s_v3") && !is_bare_gpu_size("NCU"));
    }
}
