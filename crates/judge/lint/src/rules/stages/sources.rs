//! The stages that copies are from, and the images that stages start from.

use cudock_dockerfile::{Copy, CopyFrom, Step, StepKind};
use cudock_facts::lookup::split_reference;
use cudock_facts::tables::System;

use crate::context::LintContext;

/// The copies of the last stage, and of those it is built on.
pub(super) fn copies<'a>(context: &'a LintContext<'_>) -> impl Iterator<Item = (&'a Step<'a>, &'a Copy)> {
    context.build.steps(context.build.last()).into_iter().filter_map(|step| match &step.kind {
        StepKind::Copy(copy) => Some((step, copy)),
        _ => None,
    })
}

/// The repository and the tag of the image that a stage starts from.
pub(super) fn image<'a>(context: &'a LintContext<'_>, stage: usize) -> Option<(&'a str, &'a str)> {
    let reference = &context.build.base_image(stage)?.reference;
    reference.unknown.is_none().then(|| split_reference(&reference.text))
}

/// The distribution that a stage starts from.
pub(super) fn system<'a>(context: &'a LintContext<'_>, stage: usize) -> Option<&'a System> {
    let (repository, tag) = image(context, stage)?;
    context.facts.images().system(repository, tag)
}

/// A stage as messages name it.
pub(super) fn stage_name(context: &LintContext<'_>, stage: usize) -> String {
    let name = context.build.stages.get(stage).and_then(|stage| stage.name.as_deref());
    name.map_or_else(|| format!("stage {stage}"), |name| format!("stage `{name}`"))
}

/// The stage of the file that a copy is from.
pub(super) fn source_stage(copy: &Copy) -> Option<usize> {
    copy.from.as_ref().and_then(CopyFrom::stage)
}
