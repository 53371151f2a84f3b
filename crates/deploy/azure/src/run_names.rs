//! The names that derive from the id of a run.

/// Whether a text is the id of a run: 12 lower-case hexadecimal digits.
pub fn is_run_id(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The resource group of a run, and the name of what must be unique in a region or workspace.
pub fn group_name(run_id: &str) -> String {
    format!("cudock-{run_id}")
}

/// The resource group of what deletes a run.
pub fn reaper_group_name(run_id: &str) -> String {
    format!("{}-reaper", group_name(run_id))
}
