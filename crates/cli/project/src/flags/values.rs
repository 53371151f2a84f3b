//! Parsers of values that several verbs take.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A parser for one of some names, each with its help and its meaning. Names without help are accepted and not listed.
pub fn choice<T: Clone + Send + Sync + 'static>(
    choices: &'static [(&'static str, &'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let known =
        choices.iter().map(|(name, help, _)| PossibleValue::new(*name).help(*help).hide(help.is_empty()));
    PossibleValuesParser::new(known).try_map(|text| {
        let found = choices.iter().find(|(name, ..)| *name == text);
        found.map(|(.., value)| value.clone()).ok_or("not one of the values")
    })
}
