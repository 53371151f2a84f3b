//! Ranks messages by how informative they are.

use crate::scan::Hit;

/// Most informative first: causes before symptoms, the specific message before the general one, then the lower part of the
/// stack (nothing above a missing driver works), then the order of the log.
pub(crate) fn ranked(mut hits: Vec<Hit<'_>>) -> Vec<Hit<'_>> {
    let beaten: Vec<String> = hits.iter().flat_map(|hit| hit.message.wins_over.iter().cloned()).collect();
    hits.sort_by_key(|hit| {
        let message = hit.message;
        (message.symptom, beaten.contains(&message.id), message.layer, hit.line)
    });
    hits
}
