//! Variables that the NVIDIA Container Toolkit and CUDA read when a container starts.

use cudock_base::Span;
use cudock_base::bug::Parts;
use cudock_dockerfile::{Setting, Step, StepKind};
use cudock_facts::finding::{Finding, Severity};
use cudock_facts::version::{CudaRelease, CudaVersion};

use super::packages::installed;
use crate::LintTarget;
use crate::context::LintContext;
use crate::rule::{Report, Rule};

pub(super) static RULES: &[Rule] = &[
    Rule {
        code: "CD0604",
        name: "hidden-gpus",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nENV NVIDIA_VISIBLE_DEVICES=void\n",
        good: "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nENV CUDA_DEVICE_ORDER=PCI_BUS_ID\n",
        check: hidden_gpus,
    },
    Rule {
        code: "CD0605",
        name: "no-compute-capability",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nENV NVIDIA_DRIVER_CAPABILITIES=video,utility\n",
        good: "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nENV NVIDIA_DRIVER_CAPABILITIES=video,compute,utility\n",
        check: no_compute_capability,
    },
    Rule {
        code: "CD0768",
        name: "fixed-devices",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "FROM python:3.12-slim\nENV CUDA_VISIBLE_DEVICES=0\n",
        good: "FROM python:3.12-slim\nENV NVIDIA_VISIBLE_DEVICES=all\n",
        check: fixed_devices,
    },
    Rule {
        code: "CD0769",
        name: "redundant-nvidia-variable",
        severity: Severity::Note,
        also: &[],
        is_fixable: true,
        bad: "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nENV NVIDIA_VISIBLE_DEVICES=all\n",
        good: "FROM ubuntu:22.04\nENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility\n",
        check: redundant_nvidia_variable,
    },
    Rule {
        code: "CD0770",
        name: "missing-driver-capability",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility,display
RUN ./configure --enable-nvenc --enable-cuda-nvcc && make install
",
        good: "\
FROM nvidia/cuda:12.4.1-devel-ubuntu22.04
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility,video
RUN ./configure --enable-nvenc --enable-cuda-nvcc && make install
",
        check: missing_driver_capability,
    },
    Rule {
        code: "CD0771",
        name: "all-driver-capabilities",
        severity: Severity::Note,
        also: &[],
        is_fixable: false,
        bad: "\
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
ENV NVIDIA_DRIVER_CAPABILITIES=all
RUN pip install torch==2.5.1
",
        good: "\
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
ENV NVIDIA_DRIVER_CAPABILITIES=all
RUN apt-get update && apt-get install -y libgl1 ffmpeg
",
        check: all_driver_capabilities,
    },
    Rule {
        code: "CD0772",
        name: "driver-check-disabled",
        severity: Severity::Warning,
        also: &[],
        is_fixable: true,
        bad: "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nENV NVIDIA_DISABLE_REQUIRE=1\n",
        good: "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nENV NVIDIA_REQUIRE_CUDA=\"cuda>=12.4\"\n",
        check: driver_check_disabled,
    },
];

/// A setting of the image whose value is known.
struct Known<'a> {
    step: &'a Step<'a>,
    setting: &'a Setting,
    value: &'a str,
}

fn known<'a>(context: &LintContext<'a>, name: &str) -> Option<Known<'a>> {
    let (step, setting) = context.image_settings().get(name).copied()?;
    // It adds to what the base image sets.
    if context.source(setting.value_span).contains(name) {
        return None;
    }
    let value = setting.value.as_ref().filter(|value| value.unknown.is_none())?;
    Some(Known { step, setting, value: value.text.as_str() })
}

impl Known<'_> {
    fn list(&self) -> impl Iterator<Item = &str> {
        self.value.split(',').map(str::trim)
    }
}

/// Suggests to delete an `ENV` that sets nothing else.
fn without_setting(context: &LintContext<'_>, known: &Known<'_>, finding: Finding) -> Finding {
    let StepKind::Env(settings) = &known.step.kind else { return finding };
    if settings.len() != 1 {
        return finding;
    }
    let Span { start, end, .. } = known.step.instruction.span;
    let behind = context.build.text().part(end..);
    let newline = if behind.starts_with("\r\n") { 2 } else { usize::from(behind.starts_with('\n')) };
    let span = context.build.lines.span(start..end + newline);
    finding.suggest(format!("remove {}", known.setting.name), vec![context.edit(span, "")])
}

/// Suggests to add a capability to the list of a variable.
fn with_capability(context: &LintContext<'_>, known: &Known<'_>, more: &str, finding: Finding) -> Finding {
    let (written, span) = (context.source(known.setting.value_span), known.setting.value_span);
    // What is written must be the list itself, not a variable that holds it.
    let quotes = written.len().saturating_sub(written.trim_end_matches(['"', '\'']).len());
    if known.value.is_empty() || !written.contains(known.value) {
        return finding;
    }
    let edit = context.insert(span.end - quotes, format!(",{more}"));
    finding.suggest(format!("add {more}"), vec![edit])
}

/// Whether the image has CUDA, as far as the file says so.
fn has_cuda(context: &LintContext<'_>) -> bool {
    let declared = context.declared.get(context.build.last());
    context.image_base().is_some() || declared.is_some_and(|declared| !declared.cuda_packages.is_empty())
}

fn hidden_gpus(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let Some(known) = known(context, "NVIDIA_VISIBLE_DEVICES") else { return };
    // Infrastructure images without CUDA hide the GPUs on purpose.
    if !["", "void", "none"].contains(&known.value) || !has_cuda(context) {
        return;
    }
    let message = format!(
        "NVIDIA_VISIBLE_DEVICES=`{}` gives containers no GPU unless it is overridden at the start",
        known.value
    );
    let finding = report.finding(known.setting.span, message, "remove it");
    report.push(without_setting(context, &known, finding));
}

fn no_compute_capability(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let Some(known) = known(context, "NVIDIA_DRIVER_CAPABILITIES") else { return };
    // An empty value means the default.
    let is_open = known.value.is_empty() || !has_cuda(context);
    if is_open || known.list().any(|capability| ["all", "compute"].contains(&capability)) {
        return;
    }
    let message = format!(
        "NVIDIA_DRIVER_CAPABILITIES=`{}` lacks compute: containers get no libcuda.so.1, and CUDA fails with error 35",
        known.value
    );
    let finding = report.finding(known.setting.span, message, "add `compute`");
    report.push(with_capability(context, &known, "compute", finding));
}

fn fixed_devices(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let is_for_cpu = matches!(context.target, Some(LintTarget::Cpu));
    for name in ["NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"] {
        let Some(known) = known(context, name) else { continue };
        let is_cuda = name.starts_with("CUDA");
        let hides_all = ["", "-1", "none", "void"].contains(&known.value);
        let is_usual = known.value == "all" || hides_all && (!is_cuda || is_for_cpu);
        if is_usual {
            continue;
        }
        let message = if hides_all {
            format!("{name}=`{}` hides every GPU from CUDA programs (error 100)", known.value)
        } else {
            format!(
                "{name}=`{}` fixes the GPUs in the image: other GPUs of the host stay unused",
                known.value
            )
        };
        let finding = report.finding(
            known.setting.span,
            message,
            "remove it, and choose GPUs at the start: `docker run --gpus`",
        );
        report.push(without_setting(context, &known, finding));
    }
}

fn redundant_nvidia_variable(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    if context.image_base().is_none() {
        return;
    }
    for name in ["NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"] {
        let Some(known) = known(context, name) else { continue };
        let mut list: Vec<&str> = known.list().collect();
        list.sort_unstable();
        let is_default =
            if name == "NVIDIA_VISIBLE_DEVICES" { list == ["all"] } else { list == ["compute", "utility"] };
        if is_default {
            let message = format!("nvidia/cuda images set {name}={} already", known.value);
            let finding = report.finding(known.setting.span, message, "remove it");
            report.push(without_setting(context, &known, finding));
        }
    }
}

/// The first evidence in a file for a capability of the driver besides compute and utility.
fn evidence<'a>(context: &LintContext<'a>, capability: &str) -> Option<(&'a str, Span)> {
    let is_video = capability == "video";
    for (_, command) in context.needed_commands() {
        let options = ["--enable-nvenc", "--enable-nvdec", "--enable-cuvid", "--enable-cuda-nvcc"];
        let is_codec = |text: &str| options.contains(&text) || text.contains("nv-codec-headers");
        let arg = command.args.iter().find(|arg| is_video && is_codec(&arg.text));
        if let Some(arg) = arg {
            let is_option = arg.text.starts_with('-');
            return Some((if is_option { &*arg.text } else { "nv-codec-headers" }, arg.span));
        }
    }
    for (_, command) in context.image_commands() {
        let is_graphics =
            |name: &str| name.starts_with("libvulkan") || ["vulkan-tools", "virtualgl"].contains(&name);
        // On other base images, Vulkan may be for GPUs of other makers.
        let is_wanted = !is_video && context.image_base().is_some();
        let package = installed(command).find(|(_, name)| is_wanted && is_graphics(name));
        if let Some((arg, name)) = package {
            return Some((name, arg.span));
        }
    }
    let settings = context.image_settings();
    let renderer = ["MUJOCO_GL", "PYOPENGL_PLATFORM"].into_iter().filter_map(|name| settings.get(name));
    let is_egl = |setting: &Setting| setting.value.as_ref().is_some_and(|value| value.text == "egl");
    let mut egl = renderer.filter(|(_, setting)| !is_video && is_egl(setting));
    egl.next().map(|(_, setting)| (setting.name.as_str(), setting.span))
}

fn missing_driver_capability(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let own = known(context, "NVIDIA_DRIVER_CAPABILITIES");
    let is_set = context.image_settings().contains_key("NVIDIA_DRIVER_CAPABILITIES");
    // Only nvidia/cuda images are known to set nothing else.
    if own.is_none() && (is_set || context.image_base().is_none()) {
        return;
    }
    for capability in ["video", "graphics"] {
        let has = |known: &Known<'_>| known.list().any(|own| own == "all" || own == capability);
        if own.as_ref().is_some_and(has) {
            continue;
        }
        let Some((reason, span)) = evidence(context, capability) else { continue };
        let library = if capability == "video" { "libnvidia-encode.so.1" } else { "libGLX_nvidia.so.0" };
        let message = format!(
            "`{reason}` needs the driver capability {capability}, which is not asked for: containers get no {library}"
        );
        let at = own.as_ref().map_or(span, |known| known.setting.span);
        let fix = format!("set `NVIDIA_DRIVER_CAPABILITIES=compute,utility,{capability}`");
        let mut finding = report.finding(at, message, fix);
        if let Some(known) = &own {
            finding = with_capability(context, known, capability, finding);
        }
        report.push(finding);
    }
}

/// Starts of the names of packages that may draw, encode or show something.
const GRAPHICS: [&str; 16] = [
    "ffmpeg",
    "freeglut",
    "gstreamer",
    "libavcodec",
    "libegl",
    "libgl",
    "libopengl",
    "libsdl",
    "libvulkan",
    "libx11",
    "libxext",
    "mesa",
    "ros-",
    "vulkan",
    "x11",
    "xvfb",
];

fn all_driver_capabilities(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    let Some(known) = known(context, "NVIDIA_DRIVER_CAPABILITIES").filter(|known| known.value == "all")
    else {
        return;
    };
    let is_graphics = |name: &str| GRAPHICS.iter().any(|start| name.starts_with(start));
    let has_graphics = context
        .needed_commands()
        .flat_map(|(_, command)| installed(command))
        .any(|(_, name)| is_graphics(name) || name.contains("opencv"));
    let evident = ["video", "graphics"].iter().any(|capability| evidence(context, capability).is_some());
    // The contents of other base images are unknown.
    if has_graphics || evident || context.image_base().is_none() {
        return;
    }
    report.add(
        known.setting.span,
        "NVIDIA_DRIVER_CAPABILITIES=`all` mounts graphics, video and display libraries that nothing here uses",
        "set `compute,utility`, or remove it",
    );
}

fn driver_check_disabled(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    // An image that hides the GPUs has no use for the check.
    if known(context, "NVIDIA_VISIBLE_DEVICES").is_some_and(|known| known.value == "void") {
        return;
    }
    if let Some(known) = known(context, "NVIDIA_DISABLE_REQUIRE")
        && ["1", "t", "true"].contains(&known.value.to_ascii_lowercase().as_str())
    {
        let message = "NVIDIA_DISABLE_REQUIRE lets containers start on drivers that are too old, where CUDA fails with \
            error 35 or 222";
        let finding =
            report.finding(known.setting.span, message, "remove it, and set it at the start if it must be");
        report.push(without_setting(context, &known, finding));
    }
    let image = context.image_base().and_then(|image| image.cuda.parse::<CudaRelease>().ok());
    let (Some(image), Some(known)) = (image, known(context, "NVIDIA_REQUIRE_CUDA")) else { return };
    let first = known.value.split([' ', ',']).next().unwrap_or_default();
    let asked: Option<CudaVersion> = first.strip_prefix("cuda>=").and_then(|version| version.parse().ok());
    let image = image.version();
    let message = match asked {
        None if known.value.is_empty() => format!(
            "an empty NVIDIA_REQUIRE_CUDA lets containers start on drivers that are too old for CUDA {image}"
        ),
        Some(asked) if asked < image => format!(
            "NVIDIA_REQUIRE_CUDA asks for CUDA {asked}, and the image has {image}: containers start on drivers that are \
            too old for it"
        ),
        Some(asked) if asked > image => format!(
            "NVIDIA_REQUIRE_CUDA asks for CUDA {asked}, and the image has {image}: containers do not start on drivers \
            that would do"
        ),
        _ => return,
    };
    let finding =
        report.finding(known.setting.span, message, "remove it: the base image sets what its CUDA needs");
    report.push(without_setting(context, &known, finding));
}
