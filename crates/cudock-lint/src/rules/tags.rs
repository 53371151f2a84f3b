//! Image references: tags that are missing, moving, deleted or misspelled.

use cudock_facts::finding::Severity;

use super::Rule;
use crate::context::{Context, Report};

pub(super) const RULES: &[Rule] = &[Rule {
    code: "CD0702",
    name: "missing-tag",
    severity: Severity::Warning,
    also: &["DL3006"],
    is_fixable: false,
    bad: "FROM nvcr.io/nvidia/pytorch\n",
    good: "FROM nvcr.io/nvidia/pytorch:25.09-py3\n",
    check: missing_tag,
}];

fn missing_tag(context: &Context<'_>, report: &mut Report<'_, '_>) {
    for (_, stage) in context.stages().filter(|(_, stage)| stage.base.is_none()) {
        let image = &stage.image.reference;
        let name = image.text.rsplit('/').next().unwrap_or_default();
        if image.unknown.is_some() || image.text == "scratch" || name.contains([':', '@']) {
            continue;
        }
        report.add(
            stage.image.span,
            format!("`{}` has no tag: the build takes whatever `latest` is that day", image.text),
            "name a tag",
        );
    }
}
