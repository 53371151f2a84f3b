//! Picks the first draft that runs on the target.

use std::collections::BTreeMap;

use cudock_base::UsageError;
use cudock_compat::{Context, Judgement, Verdict, gather_dockerfile, judge};

use crate::{Choice, InitContext};

/// A Dockerfile with candidates for the versions in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    /// The name of the versions in an error: `torch 2.15.0+cu132`.
    pub(crate) subject: String,
    pub(crate) choices: Vec<Choice>,
    pub(crate) notes: Vec<String>,
    pub(crate) dockerfile: String,
}

/// The first draft that will use the target's GPU; else the first about which not enough is known.
pub(crate) fn first_that_runs(
    context: &InitContext<'_>,
    what: &str,
    drafts: impl IntoIterator<Item = Draft>,
) -> Result<Draft, UsageError> {
    let (mut unknown, mut failed) = (None, None);
    for mut draft in drafts {
        let Some(judgement) = judged(context, &draft)? else { return Ok(draft) };
        match judgement.verdict {
            Verdict::Works => return Ok(draft),
            Verdict::Jit => {
                draft.notes.push(judgement.reason);
                return Ok(draft);
            }
            Verdict::Unknown => {
                unknown.get_or_insert_with(|| {
                    draft.notes.push(judgement.reason);
                    draft
                });
            }
            Verdict::Cpu | Verdict::Fails => {
                failed.get_or_insert((draft.subject, judgement));
            }
        }
    }
    unknown.ok_or_else(|| match failed {
        Some((subject, judgement)) => refusal(context, &subject, &judgement),
        None => UsageError::new(format!("no known release of {what} fits the project and the options")),
    })
}

fn judged(context: &InitContext<'_>, draft: &Draft) -> Result<Option<Judgement>, UsageError> {
    let Some(target) = context.target else { return Ok(None) };
    let environment = BTreeMap::new();
    let gather = Context { facts: context.facts, environment: &environment, on_this_machine: false };
    let evidence = gather_dockerfile(&draft.dockerfile, context.arch(), context.files, &gather)
        .map_err(|error| UsageError::new(error.to_string()))?;
    Ok(Some(judge(&evidence, target, context.facts)))
}

fn refusal(context: &InitContext<'_>, subject: &str, judgement: &Judgement) -> UsageError {
    let message = format!("{subject} will not run on {}: {}", context.target_name(), judgement.reason);
    let fixes = judgement.findings.iter().filter(|finding| !finding.fix.is_empty());
    fixes.take(1).fold(UsageError::new(message), |error, finding| error.hint(&finding.fix))
}
