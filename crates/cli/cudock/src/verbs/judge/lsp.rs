//! `cudock lsp`: the linter in editors.

use cudock_facts::Facts;

use crate::failure::{Failure, Outcome};
use crate::output;

pub(crate) fn run(facts: &Facts) -> Result<Outcome, Failure> {
    let is_shut_down = cudock_lsp::serve_stdio(facts, output::today())?;
    Ok(if is_shut_down { Outcome::Yes } else { Outcome::No })
}
