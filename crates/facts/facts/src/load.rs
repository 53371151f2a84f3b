//! Loads tables with a user's overlay, and checks them before they are used.

use std::path::Path;

use crate::check;
use crate::overlay::{Overlay, OverlayError};
use crate::store::Facts;

impl Facts {
    /// The embedded tables with the files of `directory` as an overlay: a file is named after its table, its rows replace
    /// those with the same key and add to the rest, and `replace = true` in its header drops the rest.
    ///
    /// All files are read and checked here, so that errors are reported before a table is used.
    pub fn with_overlay(directory: &Path) -> Result<Self, OverlayError> {
        let facts = Self::unchecked(Overlay::read(directory)?);
        let overlay = facts.overlay();
        // The merged tables are checked like the embedded ones.
        match check::all(&facts).iter().find_map(|violation| overlay?.error_for(violation)) {
            Some(error) => Err(error),
            None => Ok(facts),
        }
    }
}
