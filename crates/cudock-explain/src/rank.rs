//! Which of several messages to read first.

use crate::scan::Hit;

/// Most telling first: causes before symptoms, the precise message before the general one it wins over, then
/// the lower part of the stack (nothing above a missing driver can be right), then the order of the log.
pub(crate) fn ranked(mut hits: Vec<Hit<'_>>) -> Vec<Hit<'_>> {
    let beaten: Vec<String> = hits.iter().flat_map(|hit| hit.message.wins_over.iter().cloned()).collect();
    hits.sort_by_key(|hit| {
        let message = hit.message;
        (message.symptom, beaten.contains(&message.id), message.layer, hit.line)
    });
    hits
}
