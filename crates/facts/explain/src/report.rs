//! The report of a log: the messages found in it, ranked by how informative they are.

use cudock_facts::tables::Message;

use crate::smi::SmiTable;

/// A message found in a log.
#[derive(Debug, Clone)]
pub struct Hit<'a> {
    pub message: &'a Message,
    /// The line it was first found on, from 1.
    pub line: u64,
    /// The number of matches.
    pub count: u64,
    /// The first line it was found on, truncated.
    pub excerpt: String,
    /// The match of the first group of its pattern there.
    pub group: Option<String>,
}

#[derive(Debug, Clone)]
pub struct LogReport<'a> {
    /// The messages found, most informative first.
    pub hits: Vec<Hit<'a>>,
    pub bytes: u64,
    pub lines: u64,
    /// The first table of nvidia-smi.
    pub smi: Option<SmiTable>,
}

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
