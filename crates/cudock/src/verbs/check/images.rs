//! Images, held against each target.

use std::collections::BTreeMap;

use cudock_compat::evidence::Component;
use cudock_compat::{ImageSet, Target};
use cudock_facts::Facts;
use cudock_image::{ImageSource, Platform};

use super::Answer;
use crate::cli::CheckArgs;
use crate::failure::Failure;
use crate::verbs::containers::{access, announce_read};

pub(super) fn answers(
    facts: &Facts,
    args: &CheckArgs,
    platform: Option<Platform>,
    environment: &BTreeMap<String, String>,
    source: &ImageSource,
    targets: Vec<Target>,
) -> Result<(Vec<Answer>, Vec<Component>), Failure> {
    let access = access(platform, args.offline);
    let mut images = ImageSet::open(source, &access, &args.subject, environment, &announce_read)?;
    let answers = images
        .judge(targets, facts, false)?
        .into_iter()
        .filter_map(|(target, judgement)| Some(Answer { target, judgement: judgement?, rules: Vec::new() }));
    let answers = answers.collect();
    let components = images.into_evidence().map(|evidence| evidence.components);
    Ok((answers, components.unwrap_or_default()))
}
