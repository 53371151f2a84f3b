//! What the fact tables know about an error.

use cudock_facts::Facts;
use cudock_facts::tables::{Message, Messages};

/// Why a CUDA error happens and what to do, by its number.
#[derive(Debug, Default)]
pub(crate) struct Explanation {
    pub(crate) cause: Option<String>,
    pub(crate) way_out: Vec<String>,
}

/// Pages of `cudock explain` about what can be wrong with a libcuda.
pub(crate) const LIBRARY_MISSING: &str = "CD0203";
pub(crate) const LIBRARY_DAMAGED: &str = "CD0206";
pub(crate) const LIBRARY_OF_IMAGE: &str = "CD0606";

/// The catalogue's message about an error number. Frameworks have messages of their own for some numbers; the one of
/// CUDA itself is preferred, because here CUDA was asked directly.
pub(crate) fn explanation(code: i32) -> Explanation {
    let facts = Facts::embedded();
    message(facts.messages(), code).map_or_else(Explanation::default, |message| Explanation {
        cause: Some(message.cause.trim().to_owned()),
        way_out: message.fix.clone(),
    })
}

fn message(messages: &Messages, code: i32) -> Option<&Message> {
    let of_cuda = format!("cuda-{code}-");
    let about = |message: &&Message| message.cuda_code.is_some_and(|known| i32::from(known) == code);
    let mut known = messages.message.iter().filter(about);
    known.clone().find(|message| message.id.starts_with(&of_cuda)).or_else(|| known.next())
}

/// The runtime's name and words for an error number, which the driver shares but for the spelling.
pub(crate) fn runtime_name(code: i32) -> Option<(String, String)> {
    let facts = Facts::embedded();
    let error = facts.messages().cuda_error(&code.to_string())?;
    Some((error.name.clone(), error.text.clone()))
}

/// What a page says to do.
pub(crate) fn way_out_of(page: &str) -> Vec<String> {
    let facts = Facts::embedded();
    facts.findings().get(page).map(|page| page.fix.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_errors_have_a_way_out() {
        for code in [3, 34, 35, 46, 100, 221, 802, 803, 804, 999] {
            let known = explanation(code);
            assert!(known.cause.is_some() && !known.way_out.is_empty(), "{code} is not explained");
        }
    }

    #[test]
    fn cudas_own_message_is_preferred_to_a_frameworks() {
        let facts = Facts::embedded();
        assert_eq!(
            message(facts.messages(), 100).map(|message| message.id.as_str()),
            Some("cuda-100-no-device")
        );
    }

    #[test]
    fn a_number_nobody_knows_is_not_explained() {
        assert!(explanation(4711).way_out.is_empty());
        assert!(explanation(-1).way_out.is_empty());
        assert_eq!(runtime_name(-1), None);
    }

    #[test]
    fn a_library_that_is_not_as_it_should_be_has_a_way_out() {
        for page in [LIBRARY_MISSING, LIBRARY_DAMAGED, LIBRARY_OF_IMAGE] {
            assert!(!way_out_of(page).is_empty(), "{page}");
        }
    }
}
