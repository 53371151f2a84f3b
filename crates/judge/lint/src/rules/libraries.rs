//! Where the loader finds libraries: search paths, stubs, copied libraries.

use std::collections::HashSet;

use cudock_base::Span;
use cudock_base::text::path::{absolute, parent};
use cudock_dockerfile::{Command, Copy, Setting, StepKind};
use cudock_facts::finding::Severity;
use cudock_facts::version::CudaRelease;

use super::packages::installed;
use crate::context::LintContext;
use crate::rule::{Report, Rule};

pub(super) static RULES: &[Rule] = &[
    Rule {
        code: "CD0764",
        name: "library-path-overwritten",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nENV LD_LIBRARY_PATH=\"/opt/app/lib\"\n",
        good: "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nENV LD_LIBRARY_PATH=/opt/app/lib:$LD_LIBRARY_PATH\n",
        check: library_path_overwritten,
    },
    Rule {
        code: "CD0765",
        name: "stubs-in-library-path",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04
ENV LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs:${LD_LIBRARY_PATH}
",
        good: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04
ENV LIBRARY_PATH=/usr/local/cuda/lib64/stubs
",
        check: stubs_in_library_path,
    },
    Rule {
        code: "CD0766",
        name: "stub-library-installed",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04
RUN ln -s /usr/local/cuda/lib64/stubs/libcuda.so /usr/lib/x86_64-linux-gnu/libcuda.so.1
",
        good: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04
RUN ln -s /usr/local/cuda/lib64/stubs/libcuda.so /usr/local/cuda/lib64/stubs/libcuda.so.1
",
        check: stub_library_installed,
    },
    Rule {
        code: "CD0767",
        name: "library-outside-loader-path",
        severity: Severity::Warning,
        also: &[],
        is_fixable: false,
        bad: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
COPY . /src
RUN nvcc -shared -o /src/libfilter.so /src/filter.cu && nvcc -o /src/app /src/app.cu -L/src -lfilter
FROM nvidia/cuda:12.4.1-base-ubuntu22.04
COPY --from=build /src/libfilter.so /opt/app/lib/
COPY --from=build /src/app /opt/app/app
CMD [\"/opt/app/app\"]
",
        good: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build
COPY . /src
RUN nvcc -shared -o /src/libfilter.so /src/filter.cu && nvcc -o /src/app /src/app.cu -L/src -lfilter
FROM nvidia/cuda:12.4.1-base-ubuntu22.04
COPY --from=build /src/libfilter.so /usr/local/lib/
RUN ldconfig
COPY --from=build /src/app /opt/app/app
CMD [\"/opt/app/app\"]
",
        check: library_outside_loader_path,
    },
];

/// The limit for libraries that are followed through the steps, since each command is compared with each of them.
const MAX_TRACKED: usize = 32;

/// Where hosts without the NVIDIA Container Toolkit mount the driver, such as those of GKE.
const DRIVER_MOUNT: &str = "/usr/local/nvidia/lib64";

fn library_path_overwritten(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let release = context.image_base().and_then(|image| image.cuda.parse::<CudaRelease>().ok());
    let Some(base) = release.and_then(|release| context.facts.images().library_path(release)) else { return };
    if !base.value.split(':').any(|path| path == DRIVER_MOUNT) {
        return;
    }
    let overwrites = |setting: &&Setting| {
        setting.name == "LD_LIBRARY_PATH" && !context.source(setting.value_span).contains("LD_LIBRARY_PATH")
    };
    let settings = context.image_steps().iter().flat_map(|step| match &step.kind {
        StepKind::Env(settings) => settings.as_slice(),
        _ => &[],
    });
    let Some(setting) = settings.filter(overwrites).last() else { return };
    let Some(value) = setting.value.as_ref().filter(|value| value.unknown.is_none()) else { return };
    if value.text.split(':').any(|path| path.trim_end_matches('/') == DRIVER_MOUNT) {
        return;
    }
    let message = format!(
        "LD_LIBRARY_PATH loses `{DRIVER_MOUNT}` of the base image: hosts that mount the driver there, as GKE does, \
        fail with libcuda.so.1 not found"
    );
    let mut finding = report.finding(setting.span, message, "append `:${LD_LIBRARY_PATH}`");
    let written = context.source(setting.value_span);
    let end = if written.ends_with('"') { setting.value_span.end - 1 } else { setting.value_span.end };
    if !written.is_empty() && !written.ends_with('\'') {
        let colon = if value.text.is_empty() || value.text.ends_with(':') { "" } else { ":" };
        let edit = context.insert(end, format!("{colon}${{LD_LIBRARY_PATH}}"));
        finding = finding.suggest("keep the paths of the base image", vec![edit]);
    }
    report.push(finding);
}

fn is_stubs(path: &str) -> bool {
    path.trim_end_matches('/').ends_with("/stubs")
}

fn stubs_in_library_path(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let settings = context.image_settings();
    let Some((_, setting)) = settings.get("LD_LIBRARY_PATH") else { return };
    let Some(value) = &setting.value else { return };
    if !value.text.split(':').any(is_stubs) {
        return;
    }
    let message = "LD_LIBRARY_PATH holds CUDA's stubs: programs that load libcuda.so or libnvidia-ml.so from there \
        stop with error 34 (cudaErrorStubLibrary)";
    let mut finding = report.finding(setting.span, message, "use LIBRARY_PATH, or `-L` when linking");
    if let Some(bytes) = stubs_entry(context.source(setting.value_span)) {
        let start = setting.value_span.start;
        let span = context.build.lines.span(start + bytes.start..start + bytes.end);
        finding = finding.suggest("remove the stubs", vec![context.edit(span, "")]);
    }
    report.push(finding);
}

/// The bytes of the only entry with stubs in a list of paths, with one colon.
fn stubs_entry(written: &str) -> Option<std::ops::Range<usize>> {
    // A colon in braces does not separate paths, and one in an inherited value is not visible here.
    if written.contains(['\\', '\'']) || written.split("${").skip(1).any(|part| !is_plain_variable(part)) {
        return None;
    }
    let list = written.trim_matches('"');
    let first = written.find(list)?;
    let mut start = first;
    let mut found = None;
    for entry in list.split(':') {
        let end = start + entry.len();
        if is_stubs(entry) && found.replace(start..end).is_some() {
            return None;
        }
        start = end + 1;
    }
    let found = found?;
    if found.end < first + list.len() {
        Some(found.start..found.end + 1)
    } else {
        (found.start > first).then(|| found.start - 1..found.end)
    }
}

fn is_plain_variable(after_brace: &str) -> bool {
    let name = after_brace.split('}').next().unwrap_or_default();
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_stub_library(path: &str) -> bool {
    ["/stubs/libcuda.so", "/stubs/libnvidia-ml.so"].iter().any(|stub| path.contains(stub))
}

/// A stub that gets to a path where the loader may find it.
struct InstalledStub {
    target: String,
    span: Span,
}

fn stub_library_installed(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let mut stubs: Vec<InstalledStub> = Vec::new();
    for step in context.image_steps() {
        match &step.kind {
            StepKind::Copy(copy) if !copy.target.text.contains("/stubs") => {
                let source = copy.sources.iter().find(|source| is_stub_library(&source.text));
                stubs.extend(
                    source
                        .map(|source| InstalledStub { target: copy.target.text.clone(), span: source.span }),
                );
            }
            StepKind::Run(run) => {
                for command in &run.commands {
                    stubs.truncate(MAX_TRACKED);
                    if ["rm", "unlink"].contains(&&*command.program) {
                        stubs.retain(|stub| !removes(command, &stub.target));
                    } else if !command.is_conditional {
                        stubs.extend(installed_stub(command));
                    }
                }
            }
            _ => {}
        }
    }
    for stub in stubs {
        let message = format!(
            "a stub of the driver is left at `{}`: where it comes before the real library, programs stop with error 34 \
            (cudaErrorStubLibrary)",
            stub.target
        );
        report.add(
            stub.span,
            message,
            "link with `-L/usr/local/cuda/lib64/stubs`, or remove it in the same RUN",
        );
    }
}

fn installed_stub(command: &Command<'_>) -> Option<InstalledStub> {
    let span = command.span;
    match &*command.program {
        "ln" | "cp" | "mv" | "install" => {
            let (target, sources) = command.args.split_last()?;
            let is_stub = sources.iter().any(|arg| is_stub_library(&arg.text));
            let target = absolute(&command.workdir, &target.text);
            (is_stub && !target.contains("/stubs")).then_some(InstalledStub { target, span })
        }
        "echo" | "printf" => {
            let file = command.outputs.iter().find(|file| file.starts_with("/etc/ld.so.conf"))?;
            let names_stubs = command.args.iter().any(|arg| is_stubs(arg.text.trim_end_matches("\\n")));
            names_stubs.then(|| InstalledStub { target: file.clone(), span })
        }
        _ => None,
    }
}

/// Whether `rm` takes away a file; a pattern is compared up to its first `*`.
fn removes(command: &Command<'_>, target: &str) -> bool {
    command.args.iter().filter(|arg| !arg.text.starts_with('-')).any(|arg| {
        let path = absolute(&command.workdir, &arg.text);
        let start = path.split('*').next().unwrap_or_default();
        target == path || start.len() < path.len() && target.starts_with(start) || path.starts_with(target)
    })
}

/// Directories that the loader searches by default.
const LOADER_DIRECTORIES: [&str; 8] = [
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
];

fn library_outside_loader_path(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let linked = linked_libraries(context);
    let settings = context.image_settings();
    let search_path = settings.get("LD_LIBRARY_PATH").and_then(|(_, setting)| setting.value.as_ref());
    if linked.is_empty() || sets_library_path_at_start(context) {
        return;
    }
    let is_searched = |directory: &str| {
        LOADER_DIRECTORIES.contains(&directory)
            || search_path
                .is_some_and(|path| path.text.split(':').any(|own| own.trim_end_matches('/') == directory))
    };
    let mut open: Vec<(String, String, Span)> = Vec::new();
    let mut configured: HashSet<String> = HashSet::from(["/usr/local/lib".to_owned()]);
    for step in context.image_steps() {
        match &step.kind {
            StepKind::Copy(copy) => {
                let copied = copied_libraries(copy).filter(|(name, _, _)| linked.contains(name));
                open.extend(copied.filter(|(_, directory, _)| !is_searched(directory)));
                open.truncate(MAX_TRACKED);
            }
            StepKind::Run(run) => {
                for command in &run.commands {
                    configured.extend(configured_directories(command));
                    let refreshes = command.program == "ldconfig" || installed(command).next().is_some();
                    if refreshes {
                        let own = |directory: &str| command.args.iter().any(|arg| arg.text == directory);
                        open.retain(|(_, directory, _)| !configured.contains(directory) && !own(directory));
                    }
                }
            }
            _ => {}
        }
    }
    for (name, directory, span) in open {
        // The toolkit's hook refreshes the cache when it mounts the driver.
        let is_configured = configured.contains(&directory);
        let message = if is_configured {
            format!("`lib{name}.so` is not in the loader's cache: no `ldconfig` follows")
        } else {
            format!(
                "the loader does not search `{directory}`: programs that link `lib{name}.so` will not start"
            )
        };
        let fix = if is_configured {
            "add `RUN ldconfig` after it".to_owned()
        } else {
            format!("copy it to /usr/local/lib and run `ldconfig`, or set `ENV LD_LIBRARY_PATH={directory}`")
        };
        let mut finding = report.finding(span, message, fix);
        if is_configured {
            finding.severity = Severity::Note;
        }
        report.push(finding);
    }
}

/// The libraries that programs are linked with, without those whose program knows where they are.
fn linked_libraries(context: &LintContext<'_>) -> HashSet<String> {
    let compilers = ["nvcc", "gcc", "g++", "cc", "c++", "clang", "clang++"];
    let mut linked = HashSet::new();
    for (_, command) in context.needed_commands() {
        if ["patchelf", "chrpath"].contains(&&*command.program) {
            return HashSet::new();
        }
        let knows = || command.args.iter().any(|arg| arg.text.contains("rpath"));
        if compilers.contains(&&*command.program) && !knows() {
            let names = command.args.iter().filter_map(|arg| arg.text.strip_prefix("-l"));
            linked.extend(names.filter(|name| !name.is_empty()).map(str::to_owned));
        }
    }
    linked
}

/// The libraries that a `COPY` puts into a directory: name, directory, span.
fn copied_libraries(copy: &Copy) -> impl Iterator<Item = (String, String, Span)> {
    let target = copy.target.text.as_str();
    let is_directory = target.ends_with('/') || copy.sources.len() > 1;
    let directory = if is_directory { target } else { parent(target) };
    let directory = directory.trim_end_matches('/').to_owned();
    let is_known = !copy.target.is_unresolved;
    copy.sources.iter().filter(move |_| is_known).filter_map(move |source| {
        let file = source.text.rsplit('/').next()?;
        let (name, _) = file.strip_prefix("lib")?.split_once(".so")?;
        Some((name.to_owned(), directory.clone(), source.span))
    })
}

/// The directories that a command writes to the loader's configuration.
fn configured_directories(command: &Command<'_>) -> impl Iterator<Item = String> {
    let writes = command.outputs.iter().any(|file| file.starts_with("/etc/ld.so.conf"));
    let args = command.args.iter().filter(move |_| writes);
    args.flat_map(|arg| arg.text.split(|ch: char| ch.is_whitespace() || ch == '\\'))
        .filter(|path| path.starts_with('/'))
        .map(|path| path.trim_end_matches('/').to_owned())
}

/// Whether the program may be started with a search path of its own, by a script or by its command.
fn sets_library_path_at_start(context: &LintContext<'_>) -> bool {
    context.image_steps().iter().any(|step| match &step.kind {
        StepKind::Cmd(start) | StepKind::Entrypoint(start) => start.commands.iter().any(|command| {
            let is_script = |text: &str| text.ends_with(".sh");
            let sets = command.set.iter().any(|(name, _)| name == "LD_LIBRARY_PATH");
            sets || is_script(&command.program) || command.args.iter().any(|arg| is_script(&arg.text))
        }),
        _ => false,
    })
}
