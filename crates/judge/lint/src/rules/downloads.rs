//! Downloads of a build: scripts, models, sources.

use cudock_base::text::truncate;
use cudock_dockerfile::Command;
use cudock_facts::finding::Severity;

use crate::context::LintContext;
use crate::rule::{Report, Rule};

pub(super) static RULES: &[Rule] = &[
    Rule {
        code: "CD0780",
        name: "piped-script",
        severity: Severity::Note,
        also: &[],
        is_fixable: false,
        bad: "FROM ubuntu:22.04\nRUN curl -fsSL https://ollama.com/install.sh | sh\n",
        good: "FROM ubuntu:22.04\nRUN curl -fsSL https://astral.sh/uv/0.9.2/install.sh | sh\n",
        check: piped_script,
    },
    Rule {
        code: "CD0781",
        name: "model-in-layer",
        severity: Severity::Note,
        also: &[],
        is_fixable: false,
        bad: "FROM python:3.12-slim\nRUN hf download meta-llama/Llama-3.1-8B --local-dir /models\n",
        good: "\
FROM python:3.12-slim
RUN --mount=type=cache,target=/root/.cache/huggingface hf download meta-llama/Llama-3.1-8B
",
        check: model_in_layer,
    },
    Rule {
        code: "CD0782",
        name: "moving-source",
        severity: Severity::Note,
        also: &[],
        is_fixable: false,
        bad: "FROM ubuntu:22.04\nRUN git clone https://github.com/ggml-org/llama.cpp && make -C llama.cpp\n",
        good: "FROM ubuntu:22.04\nRUN git clone -b b4300 https://github.com/ggml-org/llama.cpp && make -C llama.cpp\n",
        check: moving_source,
    },
];

fn piped_script(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (_, _, run) in context.runs().filter(|(stage, _, _)| context.needed.get(*stage) == Some(&true)) {
        for pair in run.commands.windows(2) {
            let [download, shell] = pair else { continue };
            let runs = ["sh", "bash", "zsh", "python", "python3"].contains(&&*shell.program);
            let is_download = ["curl", "wget"].contains(&&*download.program) && download.operator == "|";
            let url = download.args.iter().find(|arg| arg.text.contains("://"));
            let Some(url) = url.filter(|url| runs && is_download && !url.is_unresolved) else { continue };
            let is_version = |part: &str| {
                let part = part.strip_prefix('v').unwrap_or(part);
                part.starts_with(|first: char| first.is_ascii_digit())
            };
            // `--default-toolchain 1.85.1` pins what the script installs, and a variable may do so.
            let is_pinned = shell.args.iter().any(|arg| arg.is_unresolved || is_version(&arg.text));
            if is_pinned || url.text.split('/').skip(3).any(is_version) {
                continue;
            }
            let message = format!("the build runs whatever `{}` is that day", address(&url.text));
            report.add(download.span, message, "download a pinned version, and compare its checksum");
        }
    }
}

fn model_in_layer(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (run, command) in context.image_commands() {
        let is_kept = !run.mounts.iter().any(|mount| ["cache", "tmpfs"].contains(&mount.kind.as_str()));
        if let Some(what) = downloaded_model(command).filter(|_| is_kept) {
            let message = format!("{what} puts a model into a layer, which every host pulls with the image");
            report.add(command.span, message, "mount models, or download them at the start to a volume");
        }
    }
}

/// Describes the download of a command, if it downloads a model.
fn downloaded_model(command: &Command<'_>) -> Option<&'static str> {
    let is_hub = |text: &str| text.contains("huggingface.co/");
    match &*command.program {
        "huggingface-cli" | "hf" if command.subcommand()?.0 == "download" => {
            Some("the download from Hugging Face")
        }
        "ollama" if command.subcommand()?.0 == "pull" => Some("`ollama pull`"),
        "git" if command.subcommand()?.0 == "clone" => {
            let is_model =
                |text: &str| is_hub(text) && !text.contains("/spaces/") && !text.contains("/datasets/");
            command.args.iter().any(|arg| is_model(&arg.text)).then_some("the clone from Hugging Face")
        }
        "wget" | "curl" | "aria2c" => {
            let weights = [".safetensors", ".ckpt", ".gguf", ".pth", ".onnx", ".pt"];
            let is_model = |text: &str| {
                let path = text.split('?').next().unwrap_or_default();
                text.contains("://")
                    && (weights.iter().any(|end| path.ends_with(end))
                        || is_hub(text) && path.ends_with(".bin"))
            };
            command.args.iter().any(|arg| is_model(&arg.text)).then_some("the download of weights")
        }
        program if program.starts_with("python") && command.has("-c") => {
            let calls = ["snapshot_download(", "hf_hub_download(", "from_pretrained("];
            let is_call = |text: &str| calls.iter().any(|call| text.contains(call));
            command.args.iter().any(|arg| is_call(&arg.text)).then_some("the download from Hugging Face")
        }
        _ => None,
    }
}

fn moving_source(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    for (_, _, run) in context.runs().filter(|(stage, _, _)| context.needed.get(*stage) == Some(&true)) {
        let is_build = |command: &Command<'_>| match &*command.program {
            "make" | "cmake" | "ninja" | "nvcc" | "bazel" | "cargo" => true,
            program => {
                program.starts_with("pip")
                    && command.is(program, "install")
                    && command.args.iter().any(|arg| arg.text.starts_with('.'))
                    || program.starts_with("python") && command.has("setup.py")
            }
        };
        let is_pinned = run.commands.iter().any(|command| {
            command.program == "git"
                && command
                    .subcommand()
                    .is_some_and(|(name, _)| ["checkout", "reset", "switch", "submodule"].contains(&name))
        });
        let last_build = run.commands.iter().rposition(is_build);
        for command in run.commands.iter().take(last_build.unwrap_or(0)) {
            let branch = ["-b", "--branch", "--revision"].iter().find_map(|option| command.value_of(option));
            let is_moving =
                branch.is_none_or(|branch| ["main", "master", "develop", "dev"].contains(&branch));
            let url =
                command.args.iter().find(|arg| arg.text.contains("://") || arg.text.starts_with("git@"));
            // A build argument can name a tag.
            let is_moving = is_moving && !context.source(command.span).contains('$');
            let Some(url) = url.filter(|_| !is_pinned && is_moving) else { continue };
            if command.is("git", "clone") && !command.is_conditional {
                let message = format!("what is compiled is whatever `{}` holds that day", address(&url.text));
                report.add(command.span, message, "clone a tag with `--branch`, or check out a commit");
            }
        }
    }
}

/// A URL without its scheme, and without what could be a secret: credentials and the query.
fn address(url: &str) -> String {
    let path = url.split("://").nth(1).unwrap_or(url);
    let path = path.split('?').next().unwrap_or(path);
    truncate(path.rsplit('@').next().unwrap_or(path), 60)
}
