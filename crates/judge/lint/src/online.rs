//! Checks in registries whether base images exist.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use cudock_base::Environment;
use cudock_base::text::error_chain;
use cudock_compat::codes::BASE_IMAGE_MISSING;
use cudock_facts::finding::{Finding, Severity, TextRegion};
use cudock_registry::{Client, Error, Options, Reference};

use crate::context::LintContext;

/// Looks up images in registries, each once.
pub struct ImageCheck {
    client: Client,
    /// Whether an image exists; `None` if its registry did not say.
    answers: RefCell<HashMap<Reference, Option<bool>>>,
    problems: RefCell<BTreeSet<String>>,
}

impl ImageCheck {
    pub fn from_environment(environment: &Environment) -> Result<Self, Error> {
        let mut options = Options::from_environment(environment)?;
        // An answer that does not come is only missing from the report.
        options.retries = options.retries.for_mirror();
        options.timeout = Duration::from_secs(10);
        let client = Client::new(options)?;
        Ok(Self { client, answers: RefCell::default(), problems: RefCell::default() })
    }

    /// Failed lookups, with the reason.
    pub fn problems(&self) -> Vec<String> {
        self.problems.borrow().iter().cloned().collect()
    }

    /// Adds a finding for each base image that does not exist, unless the tables already know that.
    pub(crate) fn check(&self, context: &LintContext<'_>, findings: &mut Vec<Finding>) {
        let known: HashSet<usize> = findings
            .iter()
            .filter(|finding| finding.code == BASE_IMAGE_MISSING)
            .filter_map(|finding| Some(finding.location.as_ref()?.region.span.start))
            .collect();
        for (_, stage) in context.stages().filter(|(_, stage)| stage.base.is_none()) {
            let (image, span) = (&stage.image.reference, stage.image.span);
            if known.contains(&span.start) || image.unknown.is_some() || image.text == "scratch" {
                continue;
            }
            let Ok(reference) = image.text.parse::<Reference>() else { continue };
            if self.exists(&reference) == Some(false) {
                let message = format!("`{reference}` does not exist: the registry has no such tag");
                let region = TextRegion::new(context.build.lines, span.bytes());
                let finding =
                    Finding::new(BASE_IMAGE_MISSING, Severity::Error, message, "name a tag that exists");
                findings.push(finding.at(context.path, region));
            }
        }
    }

    fn exists(&self, reference: &Reference) -> Option<bool> {
        if let Some(known) = self.answers.borrow().get(reference) {
            return *known;
        }
        let answer = self.client.exists(reference);
        let answer = answer.inspect_err(|error| {
            self.problems.borrow_mut().insert(error_chain(error));
        });
        let answer = answer.ok();
        self.answers.borrow_mut().insert(reference.clone(), answer);
        answer
    }
}
