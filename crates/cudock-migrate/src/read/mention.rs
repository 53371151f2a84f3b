//! Sizes that stand anywhere else: in lists, notebooks, allowed values, texts of programs and prose.

use super::draft::{Draft, Found};
use super::names::{is_gpu_size, is_name_byte};
use crate::choice::{Service, What};

/// Takes every word that looks like a GPU size and was not taken yet, outside of comments.
pub(super) fn read(text: &str, hint: Option<Service>, draft: &mut Draft<'_>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(start) =
        bytes.iter().skip(at).position(|byte| is_name_byte(*byte)).map(|offset| at + offset)
    {
        let rest = bytes.get(start..).unwrap_or_default();
        let end = start + rest.iter().take_while(|byte| is_name_byte(**byte)).count();
        at = end;
        let word = text.get(start..end).unwrap_or_default();
        if is_gpu_size(word) && !draft.has(start) && !draft.in_comment(start) {
            let what = What::Size { name: word.to_owned() };
            draft.add(Found { service: hint, ..Found::new(start, end, what) });
        }
    }
}
