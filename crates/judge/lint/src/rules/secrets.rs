//! Secrets that end up in an image or in its history.

use std::collections::HashMap;

use cudock_base::Span;
use cudock_dockerfile::StepKind;
use cudock_facts::finding::Severity;

use crate::context::LintContext;
use crate::rule::{Report, Rule};

pub(super) static RULES: &[Rule] = &[Rule {
    code: "CD0779",
    name: "secret-in-image",
    severity: Severity::Warning,
    also: &["SecretsUsedInArgOrEnv"],
    is_fixable: false,
    bad: "FROM ubuntu:22.04\nARG HF_TOKEN\nRUN hf auth login --token $HF_TOKEN\n",
    good: "FROM ubuntu:22.04\nRUN --mount=type=secret,id=HF_TOKEN,env=HF_TOKEN hf auth whoami\n",
    check: secret_in_image,
}];

/// How access tokens of Hugging Face, GitHub and NGC begin.
const TOKENS: [&str; 4] = ["hf_", "ghp_", "github_pat_", "nvapi-"];
/// The length of a token after its prefix.
const SHORTEST_TOKEN: usize = 30;

/// Whether a variable of this name holds a secret.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let ends =
        ["_TOKEN", "_API_KEY", "_APIKEY", "_SECRET", "_PASSWORD", "_PASSWD", "_ACCESS_KEY", "_SECRET_KEY"];
    let whole = ["TOKEN", "PASSWORD", "API_KEY", "SECRET"];
    // Special tokens of language models are no secrets.
    let is_model_token =
        ["PAD_TOKEN", "EOS_TOKEN", "BOS_TOKEN", "STOP_TOKEN", "IMAGE_TOKEN"].contains(&name.as_str());
    !is_model_token && (whole.contains(&name.as_str()) || ends.iter().any(|end| name.ends_with(end)))
}

fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let words =
        ["your", "change", "xxx", "dummy", "example", "placeholder", "todo", "none", "empty", "fake", "test"];
    value.len() < 6 || value.starts_with('<') || words.iter().any(|word| lower.contains(word))
}

fn secret_in_image(context: &LintContext<'_>, report: &mut Report<'_, '_>) {
    const FIX: &str =
        "mount it where it is used: `RUN --mount=type=secret,id=NAME,env=NAME`, or pass it at the start";
    let mut arguments: HashMap<&str, Span> = HashMap::new();
    // One search in the file is faster than one in each argument.
    let has_tokens = TOKENS.iter().any(|prefix| context.build.text().contains(prefix));
    for step in context.image_steps() {
        match &step.kind {
            StepKind::Arg(settings) => {
                let secret = settings.iter().filter(|setting| is_secret_name(&setting.name));
                arguments.extend(secret.map(|setting| (setting.name.as_str(), setting.span)));
            }
            StepKind::Env(settings) => {
                for setting in settings.iter().filter(|setting| is_secret_name(&setting.name)) {
                    let Some(value) = &setting.value else { continue };
                    let written = context.source(setting.value_span);
                    let from_argument =
                        variables(written).filter(|name| arguments.remove(name).is_some()).count() > 0;
                    if from_argument
                        || value.unknown.is_none()
                            && !is_placeholder(&value.text)
                            && value.text != setting.name
                    {
                        let message = format!(
                            "{} is stored in the image: anyone who pulls it can read it",
                            setting.name
                        );
                        report.add(setting.span, message, FIX);
                    }
                }
            }
            StepKind::Run(run) => {
                let here_docs = step.instruction.here_docs.iter().map(|here_doc| here_doc.span);
                let texts = std::iter::once(step.instruction.span).chain(here_docs);
                for name in texts.flat_map(|span| variables(context.source(span))) {
                    if let Some(span) = arguments.remove(name) {
                        let message =
                            format!("the value of ARG {name} is stored in the history of the image");
                        report.add(span, message, FIX);
                    }
                }
                let args = run.commands.iter().flat_map(|command| &command.args);
                for arg in args.filter(|arg| has_tokens && is_token(&arg.text)) {
                    let message =
                        "an access token is written in the command: it is in the history of the image";
                    report.add(arg.span, message, FIX);
                }
            }
            _ => {}
        }
    }
}

/// The names of the variables in a text: `$NAME`, `${NAME}`.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let end = rest.find(|next: char| !next.is_ascii_alphanumeric() && next != '_');
        rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()
    })
}

/// Whether a text holds an access token of Hugging Face, GitHub or NGC.
fn is_token(text: &str) -> bool {
    TOKENS.iter().any(|prefix| {
        text.split_once(prefix).is_some_and(|(_, rest)| {
            let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            rest.bytes().take_while(is_part).count() >= SHORTEST_TOKEN
        })
    })
}
