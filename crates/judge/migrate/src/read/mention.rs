//! Finds sizes anywhere else: in lists, notebooks, allowed values, strings of programs and prose.

use super::collector::ChoiceCollector;
use super::names::{is_gpu_size, is_name_byte, name_length};
use crate::choice::{Choice, ChoiceKind};
use cudock_base::bug::Parts;
use cudock_facts::services::AzureService;

/// Collects every word that looks like a GPU size and was not collected yet, outside of comments.
pub(super) fn read(text: &str, hint: Option<AzureService>, collector: &mut ChoiceCollector<'_>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(start) =
        bytes.iter().skip(at).position(|byte| is_name_byte(*byte)).map(|offset| at + offset)
    {
        let end = start + name_length(text.part(start..));
        at = end;
        let word = text.part(start..end);
        if is_gpu_size(word) && !collector.starts_at(start) && !collector.in_comment(start) {
            let kind = ChoiceKind::Size { name: word.to_owned() };
            collector.add(Choice { service: hint, ..Choice::at(start, end, kind) });
        }
    }
}
