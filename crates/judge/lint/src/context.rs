//! The view that rules have of a Dockerfile.

use std::collections::HashMap;
use std::sync::OnceLock;

use cudock_base::bug::Parts;
use cudock_base::{Arch, Span};
use cudock_dockerfile::{Build, Command, CommandArg, Run, Setting, Stage, Step, StepKind};
use cudock_facts::Facts;
use cudock_facts::finding::{Finding, TextEdit, TextRegion};
use cudock_facts::lookup::{CudaImage, ImageTag, split_reference};
use cudock_facts::tables::SourceBuild;
use cudock_manifests::{CudaPackage, Declared, DeclaredPackage, Files, Manager};

use crate::{LintOptions, LintTarget};

/// A Dockerfile with everything that rules need to judge it.
pub struct LintContext<'a> {
    pub build: &'a Build<'a>,
    pub path: &'a str,
    pub facts: &'a Facts,
    pub target: Option<&'a LintTarget>,
    pub files: &'a dyn Files,
    /// The declared packages of each stage, with those of the stages it is built on; in the order
    /// of the stages.
    pub declared: &'a [Declared],
    /// Whether the last stage needs a stage.
    pub needed: Vec<bool>,
    /// The processor that the image is built for, unless the file says so.
    pub arch: Arch,
    image_steps: Vec<&'a Step<'a>>,
    image_settings: HashMap<&'a str, (&'a Step<'a>, &'a Setting)>,
    in_order: Vec<RunCommand<'a>>,
    settings: HashMap<&'a str, Vec<StageSetting<'a>>>,
    /// Installed packages by stage.
    installed: Vec<Vec<Installed<'a>>>,
    /// Packages by stage, in the order of the file.
    conda_packages: Vec<Vec<&'a DeclaredPackage>>,
    conda_cuda_packages: Vec<Vec<&'a CudaPackage>>,
    /// The nvidia/cuda tag that each stage starts from.
    cuda_images: Vec<OnceLock<Option<ImageTag>>>,
    /// The tags of nvidia/cuda that stages start from.
    cuda_tags: OnceLock<HashMap<&'a str, CudaImage<'a>>>,
    /// Results shared by several rules.
    pub(crate) nvidia_sources: OnceLock<Vec<(usize, &'a str, CommandArg<'a>)>>,
    pub(crate) source_builds: OnceLock<Vec<Compilation<'a>>>,
    /// Findings of cudock-compat in the last stage.
    pub(crate) predicted: OnceLock<Vec<Finding>>,
}

/// A command of a `RUN`, with the index of its stage.
#[derive(Clone, Copy)]
pub struct RunCommand<'a> {
    pub stage: usize,
    pub run: &'a Run<'a>,
    pub command: &'a Command<'a>,
}

/// A variable that a stage sets.
struct StageSetting<'a> {
    stage: usize,
    /// Whether stages that are built on this one have it, too.
    is_env: bool,
    setting: &'a Setting,
}

/// A package with the command that names it.
#[derive(Clone, Copy)]
pub struct Installed<'a> {
    pub package: &'a DeclaredPackage,
    pub by: RunCommand<'a>,
}

/// A package that pip compiles with nvcc.
pub(crate) struct Compilation<'a> {
    pub name: &'a str,
    pub row: &'a SourceBuild,
    pub span: Span,
    pub by: RunCommand<'a>,
}

impl<'a> LintContext<'a> {
    pub(crate) fn new(
        build: &'a Build<'a>,
        declared: &'a [Declared],
        path: &'a str,
        options: &LintOptions<'a>,
    ) -> Self {
        let in_order = in_order(build);
        let image_steps = build.steps(build.last());
        Self {
            build,
            path,
            facts: options.facts,
            target: options.target,
            files: options.files,
            declared,
            needed: build.needed(),
            arch: options.arch,
            image_settings: image_settings(&image_steps),
            image_steps,
            settings: settings(build),
            installed: declared.iter().map(|declared| installed(declared, &in_order)).collect(),
            in_order,
            conda_packages: declared.iter().map(conda_packages).collect(),
            conda_cuda_packages: declared.iter().map(conda_cuda_packages).collect(),
            cuda_images: build.stages.iter().map(|_| OnceLock::new()).collect(),
            cuda_tags: OnceLock::new(),
            nvidia_sources: OnceLock::new(),
            source_builds: OnceLock::new(),
            predicted: OnceLock::new(),
        }
    }

    /// The stage that becomes the image.
    pub fn last(&self) -> Option<&'a Stage<'a>> {
        self.build.stages.last()
    }

    /// All stages with their indexes.
    pub fn stages(&self) -> impl Iterator<Item = (usize, &'a Stage<'a>)> {
        self.build.stages.iter().enumerate()
    }

    /// The `RUN` instructions of all stages, with the index of the stage.
    pub fn runs(&self) -> impl Iterator<Item = (usize, &'a Step<'a>, &'a Run<'a>)> {
        self.stages().flat_map(|(index, stage)| {
            stage.steps.iter().filter_map(move |step| match &step.kind {
                StepKind::Run(run) => Some((index, step, run)),
                _ => None,
            })
        })
    }

    /// The commands of all `RUN` instructions.
    pub fn commands(&self) -> impl Iterator<Item = (usize, &'a Run<'a>, &'a Command<'a>)> {
        self.in_order.iter().map(|by| (by.stage, by.run, by.command))
    }

    /// The steps that the image consists of: those of the last stage and of what it is built on, in order.
    pub fn image_steps(&self) -> &[&'a Step<'a>] {
        &self.image_steps
    }

    /// The commands that run in the image's own layers under no condition.
    pub fn image_commands(&self) -> impl Iterator<Item = (&'a Run<'a>, &'a Command<'a>)> {
        let runs = self.image_steps.iter().filter_map(|step| match &step.kind {
            StepKind::Run(run) => Some(run),
            _ => None,
        });
        let commands = runs.flat_map(|run| run.commands.iter().map(move |command| (run, command)));
        commands.filter(|(_, command)| !command.is_conditional)
    }

    /// The commands of all stages that the image needs which run under no condition.
    pub fn needed_commands(&self) -> impl Iterator<Item = (usize, &'a Command<'a>)> {
        let is_needed = |stage: usize| self.needed.get(stage).copied().unwrap_or(false);
        let commands = self.commands().filter(move |(stage, _, _)| is_needed(*stage));
        commands.filter(|(_, _, command)| !command.is_conditional).map(|(stage, _, command)| (stage, command))
    }

    /// The `ENV` settings of the image, the last of each name.
    pub fn image_settings(&self) -> &HashMap<&'a str, (&'a Step<'a>, &'a Setting)> {
        &self.image_settings
    }

    /// The nvidia/cuda tag that the image starts from.
    pub fn image_base(&self) -> Option<&ImageTag> {
        self.cuda_image(self.build.last())
    }

    /// The commands of all `RUN` instructions, with their stages.
    pub fn run_commands(&self) -> impl Iterator<Item = &RunCommand<'a>> {
        self.in_order.iter()
    }

    /// The command of a `RUN` that a part of the file belongs to.
    pub fn command_at(&self, span: Span) -> Option<RunCommand<'a>> {
        command_at(&self.in_order, span)
    }

    /// The packages that commands of a stage, and of those it is built on, install without a condition.
    pub fn installed(&self, stage: usize) -> &[Installed<'a>] {
        self.installed.get(stage).map(Vec::as_slice).unwrap_or_default()
    }

    /// The conda packages that a command names.
    pub fn conda_packages(&self, by: RunCommand<'_>) -> &[&'a DeclaredPackage] {
        within(self.conda_packages.get(by.stage), by.command.span, |package| package.span.start)
    }

    /// The CUDA packages that a command of conda names.
    pub fn conda_cuda_packages(&self, by: RunCommand<'_>) -> &[&'a CudaPackage] {
        within(self.conda_cuda_packages.get(by.stage), by.command.span, |package| package.span.start)
    }

    /// Whether a variable is set for a command: by itself, by its script, or by `ENV` or `ARG` before it.
    pub fn is_set(&self, by: RunCommand<'_>, name: &str) -> bool {
        let set = self.settings.get(name).map(Vec::as_slice).unwrap_or_default();
        let of_stage = |(stage, _): (usize, &Stage<'_>)| {
            let start = set.partition_point(|one| one.stage < stage);
            let own = set.iter().skip(start).take_while(move |one| one.stage == stage);
            own.take_while(|one| one.setting.span.start < by.command.span.start)
                .any(|one| one.is_env || one.stage == by.stage)
        };
        by.command.set.iter().any(|(own, _)| own == name)
            || !set.is_empty() && self.build.chain(by.stage).any(of_stage)
    }

    /// The processor that a stage is for.
    pub fn arch_of(&self, stage: usize) -> Arch {
        let platform = self.declared.get(stage).and_then(|declared| declared.platform.as_deref());
        platform.and_then(|platform| Arch::parse(platform.split('/').nth(1)?)).unwrap_or(self.arch)
    }

    /// Whether the layers of a stage are part of the image.
    pub fn is_shipped(&self, stage: usize) -> bool {
        self.build.chain(self.build.last()).any(|(index, _)| index == stage)
    }

    /// Whether nothing but a distribution, Python or CUDA is in the image that a stage starts from.
    pub fn is_plain(&self, stage: usize) -> bool {
        let Some(image) = self.build.base_image(stage) else { return false };
        let (repository, _) = split_reference(&image.reference.text);
        image.reference.unknown.is_none()
            && (repository == "nvidia/cuda"
                || self.facts.images().plain.iter().any(|row| row.repository == repository))
    }

    /// The text of a part of the file.
    pub fn source(&self, span: Span) -> &'a str {
        self.build.text().get(span.bytes()).unwrap_or_default()
    }

    /// The nvidia/cuda tag that a stage starts from.
    pub fn cuda_image(&self, stage: usize) -> Option<&ImageTag> {
        let parse = || {
            let image = &self.build.base_image(stage)?.reference;
            let (repository, tag) = split_reference(&image.text);
            (repository == "nvidia/cuda" && image.unknown.is_none()).then(|| ImageTag::parse(tag)).flatten()
        };
        self.cuda_images.get(stage)?.get_or_init(parse).as_ref()
    }

    /// The row of the tables about a tag of nvidia/cuda that a stage starts from.
    pub fn listed_image(&self, tag: &str) -> Option<&CudaImage<'a>> {
        self.cuda_tags.get_or_init(|| cuda_tags(self.build, self.facts)).get(tag)
    }

    /// An edit of a part of a stage's image, if that is its own, and the part is there exactly once, as written.
    pub fn replace_in_image(&self, stage: usize, part: &str, by: &str) -> Option<TextEdit> {
        let stage = self.build.stages.get(stage).filter(|stage| stage.base.is_none())?;
        let span = stage.image.span;
        let written = self.build.text().get(span.bytes())?;
        let is_literal = written == stage.image.reference.text && !written.contains('@');
        let at =
            span.start + written.find(part).filter(|_| is_literal && written.matches(part).count() == 1)?;
        Some(self.edit(self.build.lines.span(at..at + part.len()), by))
    }

    /// An edit that replaces some text.
    pub fn edit(&self, span: Span, text: impl Into<String>) -> TextEdit {
        TextEdit { region: self.region(span), text: text.into() }
    }

    /// An edit that inserts text before a byte.
    pub fn insert(&self, at: usize, text: impl Into<String>) -> TextEdit {
        TextEdit { region: TextRegion::new(self.build.lines, at..at), text: text.into() }
    }

    fn region(&self, span: Span) -> TextRegion {
        TextRegion::new(self.build.lines, span.bytes())
    }
}

/// Tables of tags are long, and stages often start from the same ones.
fn cuda_tags<'a>(build: &'a Build<'a>, facts: &'a Facts) -> HashMap<&'a str, CudaImage<'a>> {
    let mut tags = HashMap::new();
    for stage in &build.stages {
        let (repository, tag) = split_reference(&stage.image.reference.text);
        if repository == "nvidia/cuda" {
            tags.entry(tag).or_insert_with(|| facts.images().cuda_image(tag));
        }
    }
    tags
}

fn in_order<'a>(build: &'a Build<'a>) -> Vec<RunCommand<'a>> {
    let steps = build
        .stages
        .iter()
        .enumerate()
        .flat_map(|(stage, one)| one.steps.iter().map(move |step| (stage, step)));
    let runs = steps.filter_map(|(stage, step)| match &step.kind {
        StepKind::Run(run) => Some((stage, run)),
        _ => None,
    });
    runs.flat_map(|(stage, run)| run.commands.iter().map(move |command| RunCommand { stage, run, command }))
        .collect()
}

fn command_at<'a>(in_order: &[RunCommand<'a>], span: Span) -> Option<RunCommand<'a>> {
    let behind = in_order.partition_point(|one| one.command.span.start <= span.start);
    let found = *in_order.get(behind.checked_sub(1)?)?;
    (span.end <= found.command.span.end).then_some(found)
}

fn image_settings<'a>(steps: &[&'a Step<'a>]) -> HashMap<&'a str, (&'a Step<'a>, &'a Setting)> {
    let mut settings = HashMap::new();
    for step in steps {
        let StepKind::Env(own) = &step.kind else { continue };
        settings.extend(own.iter().map(|setting| (setting.name.as_str(), (*step, setting))));
    }
    settings
}

fn installed<'a>(declared: &'a Declared, in_order: &[RunCommand<'a>]) -> Vec<Installed<'a>> {
    let named = declared.packages.iter().filter(|package| package.file.is_none());
    let installed = named.filter_map(|package| {
        let by = command_at(in_order, package.span)?;
        (!by.command.is_conditional).then_some(Installed { package, by })
    });
    installed.collect()
}

/// The conda packages that commands of a stage name, in the order of the file.
fn conda_packages(declared: &Declared) -> Vec<&DeclaredPackage> {
    let is_named = |package: &&DeclaredPackage| package.manager == Manager::Conda && package.file.is_none();
    let mut packages: Vec<_> = declared.packages.iter().filter(is_named).collect();
    packages.sort_by_key(|package| package.span.start);
    packages
}

fn conda_cuda_packages(declared: &Declared) -> Vec<&CudaPackage> {
    let all = declared.cuda_packages.iter();
    let mut packages: Vec<_> = all.filter(|package| package.manager == Manager::Conda).collect();
    packages.sort_by_key(|package| package.span.start);
    packages
}

/// The items that start within a span, of some in the order of the file.
fn within<'c, 'a, T>(items: Option<&'c Vec<&'a T>>, span: Span, start: impl Fn(&T) -> usize) -> &'c [&'a T] {
    let items = items.map(Vec::as_slice).unwrap_or_default();
    let first = items.partition_point(|item| start(item) < span.start);
    let rest = items.part(first..);
    let count = rest.partition_point(|item| start(item) < span.end);
    rest.part(..count)
}

fn settings<'a>(build: &'a Build<'a>) -> HashMap<&'a str, Vec<StageSetting<'a>>> {
    let mut by_name: HashMap<&str, Vec<StageSetting<'_>>> = HashMap::new();
    for (stage, step) in build
        .stages
        .iter()
        .enumerate()
        .flat_map(|(stage, one)| one.steps.iter().map(move |step| (stage, step)))
    {
        let (settings, is_env) = match &step.kind {
            StepKind::Env(settings) => (settings, true),
            StepKind::Arg(settings) => (settings, false),
            _ => continue,
        };
        for setting in settings {
            by_name.entry(&setting.name).or_default().push(StageSetting { stage, is_env, setting });
        }
    }
    by_name
}
