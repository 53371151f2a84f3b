//! What rules see of a Dockerfile, and how they report.

use std::collections::HashMap;

use cudock_base::Span;
use cudock_declared::{Declared, Files};
use cudock_dockerfile::{Build, Command, Run, Setting, Stage, Step, StepKind};
use cudock_facts::Facts;
use cudock_facts::finding::{Finding, TextEdit, TextRegion};
use cudock_facts::lookup::ImageTag;

use crate::rules::Rule;
use crate::{LintOptions, LintTarget};

/// A Dockerfile with everything that rules need to judge it.
pub struct Context<'a> {
    pub build: &'a Build<'a>,
    pub path: &'a str,
    pub facts: &'a Facts,
    pub target: Option<&'a LintTarget>,
    pub files: &'a dyn Files,
    /// What each stage contains, with what it is built on; the order is that of the stages.
    pub declared: Vec<Declared>,
    /// Whether the last stage needs a stage.
    pub needed: Vec<bool>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(build: &'a Build<'a>, path: &'a str, options: &LintOptions<'a>) -> Self {
        Self {
            build,
            path,
            facts: options.facts,
            target: options.target,
            files: options.files,
            declared: cudock_declared::read_stages(build.text(), options.arch, options.files),
            needed: build.needed(),
        }
    }

    /// The stage that becomes the image.
    pub fn last(&self) -> Option<&'a Stage> {
        self.build.stages.last()
    }

    /// All stages with their indexes.
    pub fn stages(&self) -> impl Iterator<Item = (usize, &'a Stage)> {
        self.build.stages.iter().enumerate()
    }

    /// The `RUN` instructions of all stages, with the index of the stage.
    pub fn runs(&self) -> impl Iterator<Item = (usize, &'a Step, &'a Run)> {
        self.stages().flat_map(|(index, stage)| {
            stage.steps.iter().filter_map(move |step| match &step.kind {
                StepKind::Run(run) => Some((index, step, run)),
                _ => None,
            })
        })
    }

    /// The commands of all `RUN` instructions.
    pub fn commands(&self) -> impl Iterator<Item = (usize, &'a Run, &'a Command)> {
        self.runs().flat_map(|(index, _, run)| run.commands.iter().map(move |command| (index, run, command)))
    }

    /// The steps that the image consists of: those of the last stage and of what it is built on, in order.
    pub fn image_steps(&self) -> Vec<&'a Step> {
        self.build.steps(self.build.last())
    }

    /// The commands that run in the image's own layers under no condition.
    pub fn image_commands(&self) -> impl Iterator<Item = (&'a Run, &'a Command)> {
        let runs = self.image_steps().into_iter().filter_map(|step| match &step.kind {
            StepKind::Run(run) => Some(run),
            _ => None,
        });
        let commands = runs.flat_map(|run| run.commands.iter().map(move |command| (run, command)));
        commands.filter(|(_, command)| !command.is_conditional)
    }

    /// The commands of all stages that the image needs which run under no condition.
    pub fn needed_commands(&self) -> impl Iterator<Item = (usize, &'a Command)> {
        let is_needed = |stage: usize| self.needed.get(stage).copied().unwrap_or(false);
        let commands = self.commands().filter(move |(stage, _, _)| is_needed(*stage));
        commands.filter(|(_, _, command)| !command.is_conditional).map(|(stage, _, command)| (stage, command))
    }

    /// The `ENV` settings of the image, the last of each name.
    pub fn image_settings(&self) -> HashMap<&'a str, (&'a Step, &'a Setting)> {
        let mut settings = HashMap::new();
        for step in self.image_steps() {
            let StepKind::Env(own) = &step.kind else { continue };
            settings.extend(own.iter().map(|setting| (setting.name.as_str(), (step, setting))));
        }
        settings
    }

    /// The nvidia/cuda tag that the image starts from.
    pub fn image_base(&self) -> Option<ImageTag> {
        self.cuda_image(self.build.last())
    }

    /// The text of a part of the file, as written.
    pub fn source(&self, span: Span) -> &'a str {
        self.build.text().get(span.bytes()).unwrap_or_default()
    }

    /// The nvidia/cuda tag that a stage starts from.
    pub fn cuda_image(&self, stage: usize) -> Option<ImageTag> {
        let image = &self.build.base_image(stage)?.reference;
        let tag = cuda_tag(&image.text).filter(|_| image.unknown.is_none())?;
        ImageTag::parse(tag)
    }

    /// An edit that replaces some text.
    pub fn edit(&self, span: Span, text: impl Into<String>) -> TextEdit {
        TextEdit { region: self.region(span), text: text.into() }
    }

    /// An edit that inserts text before a byte.
    pub fn insert(&self, at: usize, text: impl Into<String>) -> TextEdit {
        TextEdit { region: TextRegion::new(&self.build.lines, at..at), text: text.into() }
    }

    fn region(&self, span: Span) -> TextRegion {
        TextRegion::new(&self.build.lines, span.bytes())
    }
}

/// The tag of an nvidia/cuda image: `12.4.1-base-ubuntu22.04`.
pub(crate) fn cuda_tag(reference: &str) -> Option<&str> {
    let reference = reference.split('@').next().unwrap_or(reference);
    let (repository, tag) = reference.rsplit_once(':')?;
    let repository = repository.strip_prefix("docker.io/").unwrap_or(repository);
    ["nvidia/cuda", "nvcr.io/nvidia/cuda"].contains(&repository).then_some(tag)
}

/// Takes the findings of one rule.
pub struct Report<'a, 'f> {
    rule: &'static Rule,
    context: &'a Context<'a>,
    findings: &'f mut Vec<Finding>,
}

impl<'a, 'f> Report<'a, 'f> {
    pub(crate) fn new(rule: &'static Rule, context: &'a Context<'a>, findings: &'f mut Vec<Finding>) -> Self {
        Self { rule, context, findings }
    }

    /// The rule's finding at a part of the file, to be completed and then reported with [`Self::push`].
    pub fn finding(&self, span: Span, message: impl Into<String>, fix: impl Into<String>) -> Finding {
        let finding = Finding::new(self.rule.code, self.rule.severity, message, fix);
        finding.at(self.context.path, self.context.region(span))
    }

    pub fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Reports the rule's finding without edits.
    pub fn add(&mut self, span: Span, message: impl Into<String>, fix: impl Into<String>) {
        let finding = self.finding(span, message, fix);
        self.push(finding);
    }
}
