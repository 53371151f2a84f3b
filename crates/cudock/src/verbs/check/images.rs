//! Images, held against each target.

use std::collections::BTreeMap;

use cudock_compat::Target;
use cudock_compat::evidence::Component;
use cudock_facts::Facts;
use cudock_image::{ImageSource, Platform};

use super::{Answer, answer};
use crate::cli::CheckArgs;
use crate::failure::Failure;
use crate::verbs::containers::Wish;
use crate::verbs::opened::OpenedImages;

/// What was asked.
pub(super) struct Asked<'a> {
    pub(super) facts: &'a Facts,
    pub(super) words: &'a CheckArgs,
    pub(super) environment: &'a BTreeMap<String, String>,
}

pub(super) fn answers(
    asked: &Asked<'_>,
    source: &ImageSource,
    targets: Vec<Target>,
) -> Result<(Vec<Answer>, Vec<Component>), Failure> {
    let wish = Wish { platform: platform(asked.words)?, offline: asked.words.offline };
    let mut opened = OpenedImages::open(source, &wish, &asked.words.subject, asked.environment)?;
    let mut places = Vec::with_capacity(targets.len());
    for target in targets {
        places.push((opened.for_target(&target)?, target));
    }
    // What is fetched once answers for all targets; nothing is fetched where every answer is there already.
    let mut answers = Vec::with_capacity(places.len());
    for (index, target) in places {
        let Some(image) = opened.at(index) else { continue };
        match image.start(&target, asked.facts) {
            Some(judgement) if image.costs_fetching() => {
                answers.push(Answer { target, judgement, rules: Vec::new() });
            }
            _ => {
                if let Some(evidence) = opened.evidence(index, asked.facts)? {
                    answers.push(answer(asked.facts, evidence, target));
                }
            }
        }
    }
    let mut images = opened.into_images().into_iter();
    let components = images.find_map(|image| image.whole).map(|evidence| evidence.components);
    Ok((answers, components.unwrap_or_default()))
}

/// The platform that was asked for.
pub(super) fn platform(words: &CheckArgs) -> Result<Option<Platform>, Failure> {
    let platform = words.platform.as_deref().map(str::parse::<Platform>).transpose();
    platform.map_err(|error| Failure::input(error).hint("--platform linux/amd64"))
}
