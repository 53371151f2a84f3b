//! Explanations of errors from the fact tables.

use cudock_facts::Facts;
use cudock_facts::tables::{Message, Messages};

/// The cause of a CUDA error, and what to do.
#[derive(Debug, Default)]
pub(crate) struct Explanation {
    pub(crate) cause: Option<String>,
    pub(crate) hints: Vec<String>,
}

/// Findings about a broken libcuda.
pub(crate) const LIBRARY_MISSING: &str = "CD0203";
pub(crate) const LIBRARY_DAMAGED: &str = "CD0206";
pub(crate) const LIBRARY_FROM_IMAGE: &str = "CD0606";

/// The explanation of an error code. Frameworks have their own messages for some codes; the one of CUDA itself is preferred,
/// because CUDA was called directly.
pub(crate) fn explanation(code: i32) -> Explanation {
    let facts = Facts::embedded();
    message(facts.messages(), code).map_or_else(Explanation::default, |message| Explanation {
        cause: Some(message.cause.trim().to_owned()),
        hints: message.fix.clone(),
    })
}

fn message(messages: &Messages, code: i32) -> Option<&Message> {
    let of_cuda = format!("cuda-{code}-");
    let about = |message: &&Message| message.cuda_code.is_some_and(|known| i32::from(known) == code);
    let mut known = messages.message.iter().filter(about);
    known.clone().find(|message| message.id.starts_with(&of_cuda)).or_else(|| known.next())
}

/// The runtime's name and description of an error code. The driver uses the same codes with different names.
pub(crate) fn runtime_name(code: i32) -> Option<(String, String)> {
    let facts = Facts::embedded();
    let error = facts.messages().cuda_error(&code.to_string())?;
    Some((error.name.clone(), error.text.clone()))
}

pub(crate) fn fixes_of(page: &str) -> Vec<String> {
    let facts = Facts::embedded();
    facts.findings().get(page).map(|page| page.fix.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_errors_have_hints() {
        for code in [3, 34, 35, 46, 100, 221, 802, 803, 804, 999] {
            let known = explanation(code);
            assert!(known.cause.is_some() && !known.hints.is_empty(), "{code} is not explained");
        }
    }

    #[test]
    fn the_message_of_cuda_is_preferred_to_a_frameworks() {
        let facts = Facts::embedded();
        assert_eq!(
            message(facts.messages(), 100).map(|message| message.id.as_str()),
            Some("cuda-100-no-device")
        );
    }

    #[test]
    fn an_unknown_code_has_no_explanation() {
        assert!(explanation(4711).hints.is_empty());
        assert!(explanation(-1).hints.is_empty());
        assert_eq!(runtime_name(-1), None);
    }

    #[test]
    fn findings_about_the_library_have_hints() {
        for page in [LIBRARY_MISSING, LIBRARY_DAMAGED, LIBRARY_FROM_IMAGE] {
            assert!(!fixes_of(page).is_empty(), "{page}");
        }
    }
}
