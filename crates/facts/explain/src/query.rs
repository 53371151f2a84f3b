//! Classifies the text that a user wants explained.

/// Whether a text is a finding code such as `CD0304`.
pub fn is_finding_code(text: &str) -> bool {
    let digits = text.get(..2).filter(|start| start.eq_ignore_ascii_case("CD")).and_then(|_| text.get(2..));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The kernel's message for a text such as `Xid 79` or `xid: 79`.
pub fn xid_message(text: &str) -> Option<String> {
    let rest = text.get(..3).filter(|start| start.eq_ignore_ascii_case("xid")).and_then(|_| text.get(3..))?;
    let number: u16 = rest.trim_start_matches([':', ' ', '-', '=']).parse().ok()?;
    Some(format!("NVRM: Xid (PCI:0000:00:00): {number}, "))
}

/// Whether a text that is not an existing file looks like a path.
pub fn is_like_a_path(text: &str) -> bool {
    !text.contains(char::is_whitespace)
        && (text.contains('/') || [".log", ".txt", ".out", ".err"].iter().any(|end| text.ends_with(end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_xids_are_distinguished_from_messages() {
        assert!(is_finding_code("CD0304") && is_finding_code("cd1"));
        assert!(!is_finding_code("CD") && !is_finding_code("CDI") && !is_finding_code("304"));
        for text in ["Xid 79", "xid: 79", "XID=79", "xid79"] {
            assert_eq!(xid_message(text).as_deref(), Some("NVRM: Xid (PCI:0000:00:00): 79, "), "{text}");
        }
        assert_eq!(xid_message("Xid of a GPU"), None);
    }

    #[test]
    fn a_path_has_no_blanks() {
        assert!(is_like_a_path("logs/train") && is_like_a_path("train.log"));
        assert!(!is_like_a_path("no kernel image / device") && !is_like_a_path("out of memory"));
    }
}
