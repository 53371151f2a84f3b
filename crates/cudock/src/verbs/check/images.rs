//! Images: opened for each processor that is asked about, and fetched only if their configuration does not decide.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use cudock_compat::evidence::{Component, Evidence};
use cudock_compat::{Judgement, Target, image, image_start, judge_start};
use cudock_facts::Facts;
use cudock_image::{Image, Origin, Platform, Source, open};

use super::{Answer, answer};
use crate::cli::CheckArgs;
use crate::failure::Failure;
use crate::output::megabytes;
use crate::verbs::containers::{Wish, in_daemon, open_options};

/// Compressed layers of this size take seconds.
const LONG: u64 = 500_000_000;

/// What was asked.
pub(super) struct Asked<'a> {
    pub(super) facts: &'a Facts,
    pub(super) words: &'a CheckArgs,
    pub(super) environment: &'a BTreeMap<String, String>,
}

pub(super) fn answers(
    asked: &Asked<'_>,
    source: &Source,
    targets: Vec<Target>,
) -> Result<(Vec<Answer>, Vec<Component>), Failure> {
    let wish = Wish { platform: platform(asked.words)?, offline: asked.words.offline };
    let mut options = open_options(source, &wish)?;
    let source = in_daemon(source.clone(), &options);
    let first = open(&source, &options)?;
    let mut opened: Vec<Opened> = vec![Opened::new(asked, first)];
    let mut answers = Vec::with_capacity(targets.len());
    for target in targets {
        let index = match other_platform(asked, &opened, &target) {
            Some(platform) => {
                options.platform = Some(platform);
                opened.push(Opened::new(asked, open(&source, &options)?));
                opened.len() - 1
            }
            None => fitting(&opened, &target),
        };
        let Some(image) = opened.get_mut(index) else { continue };
        answers.push((index, image.start(asked, &target), target));
    }
    // What is fetched once answers for all targets; nothing is fetched where every answer is there already.
    let mut done = Vec::with_capacity(answers.len());
    for (index, start, target) in answers {
        let Some(image) = opened.get_mut(index) else { continue };
        match start {
            Some(judgement) if image.costs_fetching() => {
                done.push(Answer { target, judgement, rules: Vec::new() });
            }
            _ => {
                let evidence = image.evidence(asked)?;
                done.push(answer(asked.facts, evidence, target));
            }
        }
    }
    let components = opened.into_iter().find_map(|image| image.whole).map(|evidence| evidence.components);
    Ok((done, components.unwrap_or_default()))
}

/// An image for one processor.
struct Opened {
    image: Image,
    config: Evidence,
    whole: Option<Evidence>,
}

impl Opened {
    fn new(asked: &Asked<'_>, image: Image) -> Self {
        let config = image_start(&image, &asked.words.subject, asked.environment);
        Self { image, config, whole: None }
    }

    /// The verdict, where the configuration alone decides it.
    fn start(&self, asked: &Asked<'_>, target: &Target) -> Option<Judgement> {
        judge_start(&self.config, target, asked.facts)
    }

    fn costs_fetching(&self) -> bool {
        self.whole.is_none() && self.image.origin == Origin::Registry && self.image.to_fetch() > 0
    }

    fn evidence(&mut self, asked: &Asked<'_>) -> Result<&Evidence, Failure> {
        if self.whole.is_none() {
            let bytes = self.image.to_fetch();
            if bytes > 0 {
                anstream::eprintln!("fetching {} of {}", megabytes(bytes), self.image.name);
            }
            let stored: u64 = self.image.layers.iter().map(|layer| layer.size).sum();
            if stored > LONG && std::io::stderr().is_terminal() {
                anstream::eprintln!("reading {} in {} layers", megabytes(stored), self.image.layers.len());
            }
            let whole = image(&self.image, &asked.words.subject, asked.environment, asked.facts)?;
            self.whole = Some(whole);
        }
        Ok(self.whole.as_ref().unwrap_or(&self.config))
    }
}

/// The image for a target's processor, where there is another for it that is not open yet.
fn other_platform(asked: &Asked<'_>, opened: &[Opened], target: &Target) -> Option<Platform> {
    let wanted = target.traits.cpu.as_deref().filter(|_| asked.words.platform.is_none())?;
    if opened.iter().any(|image| image.image.platform.architecture == wanted) {
        return None;
    }
    let first = opened.first()?;
    first
        .image
        .platforms
        .iter()
        .find(|platform| platform.os == "linux" && platform.architecture == wanted)
        .cloned()
}

fn fitting(opened: &[Opened], target: &Target) -> usize {
    let wanted = target.traits.cpu.as_deref();
    opened.iter().position(|image| Some(image.image.platform.architecture.as_str()) == wanted).unwrap_or(0)
}

/// The platform that was asked for.
pub(super) fn platform(words: &CheckArgs) -> Result<Option<Platform>, Failure> {
    let platform = words.platform.as_deref().map(str::parse::<Platform>).transpose();
    platform.map_err(|error| Failure::input(error).hint("--platform linux/amd64"))
}
