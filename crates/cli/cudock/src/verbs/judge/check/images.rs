//! Judges an image for each target.

use std::collections::BTreeMap;

use cudock_cli::CheckArgs;
use cudock_compat::{ImageSet, Target};
use cudock_facts::Facts;
use cudock_image::{ImageSource, Platform};

use super::{Checked, TargetResult};
use crate::failure::Failure;
use crate::steps::images::{access, announce_read};

pub(crate) fn results(
    facts: &Facts,
    args: &CheckArgs,
    platform: Option<Platform>,
    environment: &BTreeMap<String, String>,
    source: &ImageSource,
    targets: Vec<Target>,
) -> Result<Checked, Failure> {
    let access = access(platform, args.offline);
    let mut images = ImageSet::open(source, &access, &args.subject, environment, &announce_read)?;
    let results = images.judge(targets, facts, false)?.into_iter().filter_map(|(target, judgement)| {
        Some(TargetResult { target, judgement: judgement?, rules: Vec::new() })
    });
    let results = results.collect();
    let digest = images.digest().map(|digest| digest.to_string());
    let components = images.into_evidence().map(|evidence| evidence.components).unwrap_or_default();
    Ok(Checked { digest, results, components })
}
