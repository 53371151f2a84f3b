//! The variables that the commands of a stage see.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};

use cudock_base::Span;

use crate::PositionedError;

/// The variables of a stage. `None` is a variable whose value is unknown.
///
/// The expanded text is bounded: a variable that doubles another, forty times over, would be a terabyte.
#[derive(Debug)]
pub(super) struct Variables {
    environment: HashMap<String, Option<String>>,
    arguments: HashMap<String, Option<String>>,
    left: Cell<Option<usize>>,
}

impl Variables {
    pub(super) fn for_text(text: &str) -> Self {
        let left = text.len().saturating_mul(8).saturating_add(1 << 20);
        Self { environment: HashMap::new(), arguments: HashMap::new(), left: Cell::new(Some(left)) }
    }

    /// The value of a variable; the environment wins over build arguments.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let value = self.environment.get(name).or_else(|| self.arguments.get(name))?.as_ref()?;
        let left = self.left.get()?.checked_sub(value.len() + 1);
        self.left.set(left);
        left.map(|_| value.clone())
    }

    /// Fails when the expanded text exceeds the bound; the results must then not be used.
    pub(super) fn check(&self, span: Span) -> Result<(), PositionedError> {
        let message = "variables expand to far more text than the file holds";
        self.left.get().map(|_| ()).ok_or_else(|| PositionedError::at_line(span, message))
    }

    pub(super) fn set(&mut self, name: String, value: Option<String>) {
        self.environment.insert(name, value);
    }

    pub(super) fn set_argument(&mut self, name: String, value: Option<String>) {
        self.arguments.insert(name, value);
    }

    /// Drops build arguments: their scope is the stage.
    pub(super) fn end_stage(&mut self) {
        self.arguments.clear();
    }

    /// The variables with a known value.
    pub(super) fn into_environment(self) -> BTreeMap<String, String> {
        self.environment.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}
